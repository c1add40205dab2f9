// Runners for docs/reference/systems/runs.md, as a program with supabase-js writes them. How a job is executed and how long
// a poller sleeps between two polls are parameters; a `sleep` that rejects ends a loop.
import type { Channel, Client } from '../support.ts';

export type ExecutionJob = { id: string; status: string; version: number; updated_at: string; config: unknown };
export type PollerConfig = {
    supabase: Client;
    pollInterval?: number;
    maxPollInterval?: number;
    backoffMultiplier?: number;
    workerId: string;
    executeJob(job: ExecutionJob): Promise<void>;
    sleep(milliseconds: number): Promise<void>;
    console: Pick<Console, 'error'>;
};

/** Polls at a fixed interval and claims by a plain update. */
export class JobPoller {
    protected supabase: Client;
    protected pollInterval: number;
    protected isRunning: boolean = false;
    protected config: PollerConfig;

    constructor(config: PollerConfig) {
        this.supabase = config.supabase;
        this.pollInterval = config.pollInterval || 5000;
        this.config = config;
    }

    async start(): Promise<void> {
        this.isRunning = true;

        while (this.isRunning) {
            try {
                await this.pollOnce();
            } catch (error) {
                this.config.console.error('❌ Polling error:', error);
            }

            await this.config.sleep(this.pollInterval);
        }
    }

    async stop(): Promise<void> {
        this.isRunning = false;
    }

    async pollOnce(): Promise<boolean> {
        // Query for queued jobs
        const { data: jobs, error } = await this.supabase
            .from('execution_jobs')
            .select('*')
            .eq('status', 'queued')
            .order('created_at', { ascending: true })
            .limit(1);

        if (error) {
            throw error;
        }

        if (jobs && jobs.length > 0) {
            const job = jobs[0];

            // Attempt to claim job
            const claimed = await this.claimJob(job);

            if (claimed) {
                await this.config.executeJob(job);
            }
            return claimed;
        }
        return false;
    }

    async claimJob(job: ExecutionJob): Promise<boolean> {
        const workerId = this.config.workerId;

        // Atomic claim using WHERE clause
        const { data, error } = await this.supabase
            .from('execution_jobs')
            .update({
                status: 'running',
                started_at: new Date().toISOString(),
                worker_id: workerId
            })
            .eq('id', job.id)
            .eq('status', 'queued')  // ← CRITICAL: Only update if still queued
            .select()
            .single();

        if (error) {
            if (error.code === 'PGRST116') {
                // No rows updated (already claimed)
                return false;
            }
            throw error;
        }

        return !!data;
    }
}

/** Polls less often while nothing is found. */
export class AdaptivePoller extends JobPoller {
    currentInterval: number;
    private maxInterval: number;
    private backoffMultiplier: number;
    consecutiveEmptyPolls: number = 0;

    constructor(config: PollerConfig) {
        super(config);
        this.currentInterval = config.pollInterval || 5000;
        this.maxInterval = config.maxPollInterval || 30000;
        this.backoffMultiplier = config.backoffMultiplier || 1.5;
    }

    async pollOnce(): Promise<boolean> {
        const { data: jobs, error } = await this.supabase
            .from('execution_jobs')
            .select('*')
            .eq('status', 'queued')
            .order('created_at', { ascending: true })
            .limit(1);

        if (error) {
            throw error;
        }

        if (jobs && jobs.length > 0) {
            // Jobs found - reset to base interval
            this.currentInterval = this.pollInterval;
            this.consecutiveEmptyPolls = 0;

            const job = jobs[0];
            const claimed = await this.claimJob(job);

            if (claimed) {
                await this.config.executeJob(job);
            }
            return claimed;
        } else {
            // No jobs - increase backoff
            this.consecutiveEmptyPolls++;
            this.currentInterval = Math.min(
                this.currentInterval * this.backoffMultiplier,
                this.maxInterval
            );
            return false;
        }
    }

    async start(): Promise<void> {
        this.isRunning = true;

        while (this.isRunning) {
            try {
                await this.pollOnce();
            } catch (error) {
                this.config.console.error('❌ Polling error:', error);
            }

            // Use adaptive interval
            await this.config.sleep(this.currentInterval);
        }
    }
}

/** Subscribes to changes, and polls as a fallback. */
export class RealtimePoller extends JobPoller {
    subscription: Channel | undefined;

    async start(): Promise<void> {
        // Subscribe to INSERT events on execution_jobs
        this.subscription = this.supabase
            .channel('execution_jobs_insert')
            .on(
                'postgres_changes',
                {
                    event: 'INSERT',
                    schema: 'public',
                    table: 'execution_jobs',
                    filter: 'status=eq.queued'
                },
                async (payload) => {
                    const job = payload.new as ExecutionJob;

                    const claimed = await this.claimJob(job);
                    if (claimed) {
                        await this.config.executeJob(job);
                    }
                }
            )
            .subscribe();
    }

    async stop(): Promise<void> {
        if (this.subscription) {
            await this.subscription.unsubscribe();
        }
    }
}

/** An optimistic claim: fails if the version changed. */
export async function claimByVersion(supabase: Client, job: ExecutionJob): Promise<boolean> {
    const { data } = await supabase
        .from('execution_jobs')
        .update({
            status: 'running',
            version: job.version + 1
        })
        .eq('id', job.id)
        .eq('version', job.version)  // Only if version matches
        .select()
        .single();

    if (!data) {
        // Version mismatch (concurrent update)
        return false;
    }
    return true;
}

/** An optimistic claim: fails if the row was updated since it was read. */
export async function claimByTime(supabase: Client, job: ExecutionJob): Promise<boolean> {
    const { data } = await supabase
        .from('execution_jobs')
        .update({
            status: 'running',
            updated_at: new Date().toISOString()
        })
        .eq('id', job.id)
        .eq('updated_at', job.updated_at)  // Only if not modified
        .select()
        .single();
    return !!data;
}
