// Agents for docs/reference/systems/activities.md, from sign-in and webhook to completed work.
import assert from 'node:assert/strict';
import { createHmac, randomUUID } from 'node:crypto';
import { after, afterEach, before, describe, test } from 'node:test';
import { processingLoop, realtimeApp, startAgent, type Activity, type Host } from './programs/stealing.ts';
import { addPerson, anonKey, anonymous, gleaner, releases, service, signIn, until, url, type Client, type Create, type Person } from './support.ts';

const authToken = 'a token that Twilio and the server share';
const account = `AC${'0'.repeat(31)}1`;

/** What a provider is given: where to send. */
function addChannel(...args: string[]): { id: string; webhook_url: string } {
    return JSON.parse(gleaner(['channels', 'add', `Wire ${randomUUID()}`, ...args, '-o', 'json']));
}

/** As Twilio sends a message: a form, signed together with the URL. */
async function twilio(to: string, form: Record<string, string>): Promise<Response> {
    const signed = to + Object.keys(form).sort().map((key) => key + form[key]).join('');
    const signature = createHmac('sha1', authToken).update(signed).digest('base64');
    return fetch(to, { method: 'POST', headers: { 'x-twilio-signature': signature }, body: new URLSearchParams(form) });
}

/** A program of one's own: JSON, signed in the header that docs/how-to/channels.md names. */
async function generic(to: string, body: object): Promise<string> {
    const text = JSON.stringify(body);
    const signature = `sha256=${createHmac('sha256', authToken).update(text).digest('hex')}`;
    const answer = await fetch(to, { method: 'POST', headers: { 'content-type': 'application/json', 'x-webhook-signature': signature }, body: text });
    const { success, id } = await answer.json();
    assert.deepEqual([answer.status, success], [202, true]);
    return id;
}

/** Ends a loop that sleeps. */
const enough = new Error('enough');

for (const { name, createClient } of releases) {
    describe(`${name}: agents`, () => {
        const db: Client = service(createClient);
        let ada: Person;
        let bob: Person;
        let line: { id: string; webhook_url: string };
        let forms: { id: string; webhook_url: string };
        let running = true;
        let used: Client[] = [];
        const errors: unknown[] = [];

        const host: Host = {
            fetchAudio: async (from) => `audio of ${from}`,
            whisper: { transcribe: async (audio) => `heard ${audio}` },
            llm: {
                summarize: async (text) => {
                    if (text.includes('unbearable')) throw new Error('the model gave up');
                    return `about ${text}`;
                },
                extractFacts: async (text) => [text.toUpperCase()],
            },
            sleep: () => (running ? new Promise((resolve) => setTimeout(resolve, 50)) : Promise.reject(enough)),
            console: { log: () => {}, error: (...what) => errors.push(what) },
        };
        const signedIn = async (who: Person): Promise<Client> => {
            const client = anonymous(createClient);
            await signIn(client, who);
            used.push(client);
            return client;
        };
        /** Lets agents work until the check is through, then stops them. */
        const working = async (agents: Promise<void>[], check: () => Promise<void>): Promise<void> => {
            const ended = Promise.allSettled(agents);
            const work = Promise.race([check(), ...agents]);
            await work.finally(() => (running = false));
            for (const end of await ended) assert.equal(end.status === 'rejected' && end.reason, enough);
        };
        const completed = (id: string) => until(`activity ${id} is completed`, async () => {
            const { data } = await db.from('activities').select('*').eq('id', id).eq('processing_status', 'completed').maybeSingle();
            return data as (Activity & Record<string, unknown>) | null;
        });
        const channelOf = async (id: string) => (await db.from('activities').select('id').eq('provider_id', id)).data!;

        before(() => {
            ada = addPerson();
            bob = addPerson();
            line = addChannel('--provider', 'twilio', '--set', `auth_token=${authToken}`, '--set', `account_sid=${account}`, '--owner', ada.email);
            forms = addChannel('--provider', 'generic', '--set', `secret=${authToken}`);
        });
        afterEach(async () => {
            running = true;
            for (const client of used) {
                await client.removeAllChannels();
                await client.realtime.disconnect();
            }
            used = [];
        });
        after(async () => {
            for (const channel of [line, forms]) await db.from('activities').delete().eq('provider_id', channel.id);
            for (const who of [ada, bob]) await db.from('activities').delete().eq('sales_id', who.sales_id);
            await db.from('ingestion_providers').delete().in('id', [line.id, forms.id]);
        });

        test('the agent that polls: a message by webhook becomes completed work', async () => {
            const form = { AccountSid: account, MessageSid: `SM${randomUUID().replaceAll('-', '')}`, From: '+14155550123', To: '+14155550199', Body: 'Call me back', NumMedia: '0' };
            const forged = await fetch(line.webhook_url, { method: 'POST', headers: { 'x-twilio-signature': 'forged' }, body: new URLSearchParams(form) });
            assert.equal(forged.status, 401);
            assert.ok((await twilio(line.webhook_url, form)).ok);
            const [{ id }] = await channelOf(line.id);
            const raw = await db.from('activities').select('type, sales_id, processing_status').eq('id', id).single();
            assert.deepEqual(raw.data, { type: 'sms', sales_id: ada.sales_id, processing_status: 'raw' });
            const recording = await generic(forms.webhook_url, { type: 'call', url: 'https://example.com/a.wav' });
            await working([startAgent(await signedIn(ada), host)], async () => {
                const done = await completed(id);
                assert.deepEqual(done.processed_data, { transcript: 'Call me back', summary: 'about Call me back', facts: ['CALL ME BACK'] });
                assert.deepEqual([done.locked_by, done.locked_at], [null, null]);
                const heard = await completed(recording);
                assert.equal((heard.processed_data as { transcript: string }).transcript, 'heard audio of https://example.com/a.wav');
            });
            assert.deepEqual(errors, []);
        });

        test('work that fails is marked, and tried again later', async () => {
            const id = await generic(forms.webhook_url, { type: 'note', content: 'unbearable' });
            await working([startAgent(await signedIn(ada), host)], async () => {
                await until('it has failed', async () => errors.length > 0);
                const { data } = await db.from('activities').select('processing_status, locked_by').eq('id', id).single();
                assert.deepEqual(data, { processing_status: 'failed', locked_by: null });
            });
            assert.equal(errors.length, 1);
            await db.from('activities').delete().eq('id', id);
        });

        test('two agents share what belongs to nobody, each piece once', async () => {
            const done: string[] = [];
            const ids: string[] = [];
            for (let n = 0; n < 12; n++) ids.push(await generic(forms.webhook_url, { type: 'note', content: `piece ${n}` }));
            const think = async (raw: { content: string }) => {
                done.push(raw.content);
                return { transcript: raw.content };
            };
            const sleep = (milliseconds: number) => host.sleep(milliseconds);
            await working([processingLoop(await signedIn(ada), think, sleep), processingLoop(await signedIn(bob), think, sleep)], async () => {
                for (const id of ids) await completed(id);
            });
            assert.deepEqual(done.sort(), ids.map((_, n) => `piece ${n}`).sort());
        });

        test('what an owner left standing is taken over, unless the owner keeps it private', async () => {
            const hours = (n: number) => new Date(Date.now() - n * 3_600_000).toISOString();
            const leave = async (row: object) => {
                const made = await db.from('activities').insert({ type: 'note', sales_id: bob.sales_id, raw_data: { source_type: 'text', content: 'left' }, ...row }).select('id').single();
                assert.equal(made.error, null);
                return made.data!.id as string;
            };
            const [old, fresh] = [await leave({ created_at: hours(1) }), await leave({})];
            await working([startAgent(await signedIn(ada), host)], async () => {
                await completed(old);
            });
            const state = async (id: string) => (await db.from('activities').select('processing_status').eq('id', id).single()).data!.processing_status;
            assert.equal(await state(fresh), 'raw', 'its owner may still come for it');
            await db.from('sales').update({ allow_remote_processing: false }).eq('id', bob.sales_id);
            const hidden = await leave({ created_at: hours(2) });
            const agent = await signedIn(ada);
            assert.deepEqual((await agent.rpc('claim_stale_activity')).data, []);
            assert.deepEqual((await agent.rpc('claim_next_pending_activity', { p_agent_sales_id: ada.sales_id })).data, []);
            assert.deepEqual((await agent.from('activities').select('id').eq('id', hidden)).data, []);
            running = true;
            await working([startAgent(await signedIn(bob), host)], async () => {
                await completed(hidden);
                await completed(fresh);
            });
            await db.from('sales').update({ allow_remote_processing: true }).eq('id', bob.sales_id);
        });

        test('the app that listens: an event wakes it, and its fallback finds what it slept through', async () => {
            // As in a browser: whoever opens the app finds the session of the sign-in before.
            const kept = new Map<string, string>();
            const storage = {
                getItem: (key: string) => kept.get(key) ?? null,
                setItem: (key: string, value: string) => void kept.set(key, value),
                removeItem: (key: string) => void kept.delete(key),
            };
            let token: string | undefined;
            const open = ((at: string, key: string) => {
                const client = createClient(at, key, { auth: { storage, autoRefreshToken: false } });
                // The older release joins before it has read a stored session, and never tells it: its programs must.
                if (token && name.endsWith('2.58')) void client.realtime.setAuth(token);
                used.push(client);
                return client;
            }) as Create;
            const before = open(url, anonKey);
            await signIn(before, ada);
            token = (await before.auth.getSession()).data.session!.access_token;
            const window = new EventTarget();
            const fallbacks: (() => Promise<void>)[] = [];
            realtimeApp({ window, createClient: open, setInterval: (act) => fallbacks.push(act) }, host);
            const payload = { appName: 'atomic-crm', url, anonKey, tables: ['activities'], filters: { activities: 'processing_status=eq.raw' } };
            window.dispatchEvent(new MessageEvent('message', { data: { type: 'SUPABASE_CONFIG', payload } }));
            await until('the app has subscribed', async () => used[1]?.getChannels().some((channel) => channel.state === ('joined' as string)));
            const sent = Date.now();
            const first = await completed(await generic(forms.webhook_url, { type: 'note', content: 'wake up' }));
            assert.equal((first.processed_data as { summary: string }).summary, 'about wake up');
            assert.ok(Date.now() - sent < 5000, 'sooner than a poll');
            // A burst: the app leaves events alone while it is busy, as written; nothing is lost by that.
            const burst = await Promise.all([1, 2, 3, 4].map((n) => generic(forms.webhook_url, { type: 'note', content: `burst ${n}` })));
            for (const id of burst) {
                await until('the burst is worked off', async () => {
                    await fallbacks[0]();
                    return (await db.from('activities').select('id').eq('id', id).eq('processing_status', 'completed')).data!.length > 0;
                });
            }
        });
    });
}
