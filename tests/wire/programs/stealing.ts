// Agents for docs/reference/systems/activities.md, as a program with supabase-js writes them. Models, clock and window are
// parameters; a `sleep` that rejects ends a loop.
import type { Client, Create } from '../support.ts';

export type Activity = { id: string; raw_data: any; type: string };
export type Host = {
    fetchAudio(url: string): Promise<string>;
    whisper: { transcribe(audio: string): Promise<string> };
    llm: { summarize(text: string): Promise<string>; extractFacts(text: string): Promise<string[]> };
    sleep(milliseconds: number): Promise<void>;
    console: Pick<Console, 'log' | 'error'>;
};
export type App = { window: EventTarget; createClient: Create; setInterval(act: () => Promise<void>, milliseconds: number): void };

// Get current user's sales_id
async function getMySalesId(supabase: Client): Promise<number> {
    const { data: { user } } = await supabase.auth.getUser();
    const { data } = await supabase
        .from('sales')
        .select('id')
        .eq('user_id', user!.id)
        .single();
    return data!.id;
}

// Claim work from my queue
async function claimMyWork(supabase: Client, salesId: number): Promise<Activity | null> {
    const { data } = await supabase.rpc('claim_next_pending_activity', {
        p_agent_sales_id: salesId
    });
    return data && data.length > 0 ? data[0] : null;
}

// Claim stale work from anyone
async function claimStaleWork(supabase: Client): Promise<Activity | null> {
    const { data } = await supabase.rpc('claim_stale_activity');
    return data && data.length > 0 ? data[0] : null;
}

// Process activity with local AI
async function processActivity(supabase: Client, activity: Activity, { fetchAudio, whisper, llm, console }: Host) {
    const result: any = {};

    try {
        // Step 1: ASR (if audio)
        if (activity.raw_data.source_type === 'url') {
            const audioBuffer = await fetchAudio(activity.raw_data.content);
            result.transcript = await whisper.transcribe(audioBuffer);
        } else {
            result.transcript = activity.raw_data.content;
        }

        // Step 2: LLM Summarization
        result.summary = await llm.summarize(result.transcript);

        // Step 3: Fact Extraction
        result.facts = await llm.extractFacts(result.transcript);

        // Update as completed
        await supabase
            .from('activities')
            .update({
                processing_status: 'completed',
                processed_data: result,
                locked_by: null,
                locked_at: null
            })
            .eq('id', activity.id);

        console.log(`✓ Processed activity ${activity.id}`);
    } catch (error) {
        // Mark as failed
        await supabase
            .from('activities')
            .update({
                processing_status: 'failed',
                locked_by: null,
                locked_at: null
            })
            .eq('id', activity.id);

        console.error(`✗ Failed to process activity ${activity.id}:`, error);
    }
}

/** "Complete Agent Example". */
export async function startAgent(supabase: Client, host: Host) {
    const mySalesId = await getMySalesId(supabase);
    host.console.log(`Agent started for sales_id: ${mySalesId}`);

    while (true) {
        // Priority 1: My work
        let activity = await claimMyWork(supabase, mySalesId);

        // Priority 2: Stale work
        if (!activity) {
            activity = await claimStaleWork(supabase);
        }

        // Process if found
        if (activity) {
            await processActivity(supabase, activity, host);
        } else {
            // No work available, wait a bit
            await host.sleep(5000);
        }
    }
}

/** Own work, then the rest, in one loop. */
export async function processingLoop(supabase: Client, processWithAI: (raw_data: any) => Promise<any>, sleep: Host['sleep']) {
    const mySalesId = await getMySalesId(supabase);

    while (true) {
        let activity = null;

        // Priority 1: My own work (fresh or stale)
        const { data: myWork } = await supabase.rpc('claim_next_pending_activity', {
            p_agent_sales_id: mySalesId
        });
        activity = myWork?.[0];

        // Priority 2: Anyone's stale work (timeout fallback)
        if (!activity) {
            const { data: staleWork } = await supabase.rpc('claim_stale_activity');
            activity = staleWork?.[0];
        }

        // Process if found
        if (activity) {
            const result = await processWithAI(activity.raw_data);

            await supabase.from('activities').update({
                processing_status: 'completed',
                processed_data: result,
                locked_by: null,
                locked_at: null
            }).eq('id', activity.id);
        }

        await sleep(5000);
    }
}

/** An app that receives its configuration by message, subscribes to changes, and polls as a fallback. */
export function realtimeApp({ window, createClient, setInterval }: App, host: Host) {
    const appConfigs = new Map();
    let processing = false;

    const tryClaimAndProcess = async (supabase: Client, mySalesId: number) => {
        // Priority 1: My work
        let activity = await claimMyWork(supabase, mySalesId);

        // Priority 2: Stale work
        if (!activity) {
            activity = await claimStaleWork(supabase);
        }

        if (activity) {
            await processActivity(supabase, activity, host);
        }
    };

    // Listen for Supabase config from Local Apps
    window.addEventListener('message', async (event: any) => {
        if (event.data.type === 'SUPABASE_CONFIG') {
            const { appName, url, anonKey, filters } = event.data.payload;

            // Store config
            appConfigs.set(appName, { url, anonKey });

            // Initialize Supabase client
            const supabase = createClient(url, anonKey);

            // Get current user's sales_id
            const mySalesId = await getMySalesId(supabase);

            host.console.log(`[${appName}] Subscribed to Realtime for sales_id: ${mySalesId}`);

            // Subscribe to new activities (instant processing)
            supabase
                .channel(`${appName}-new-activities`)
                .on('postgres_changes', {
                    event: 'INSERT',
                    schema: 'public',
                    table: 'activities',
                    filter: filters.activities
                }, async (payload: any) => {
                    host.console.log(`[${appName}] New activity detected:`, payload.new.id);

                    if (!processing) {
                        processing = true;
                        await tryClaimAndProcess(supabase, mySalesId);
                        processing = false;
                    }
                })
                .subscribe();

            // Polling fallback (every 30s to catch missed events)
            setInterval(async () => {
                if (!processing) {
                    processing = true;
                    await tryClaimAndProcess(supabase, mySalesId);
                    processing = false;
                }
            }, 30000);
        }
    });
}
