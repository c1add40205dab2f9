// Runners of test runs and the agent for dumps (docs/reference/systems), with the service key.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, describe, test } from 'node:test';
import { AdaptivePoller, claimByTime, claimByVersion, JobPoller, RealtimePoller, type ExecutionJob, type PollerConfig } from './programs/pollers.ts';
import { Inbox, releases, service, subscribed, until, type Client } from './support.ts';

for (const { name, createClient } of releases) {
    describe(`${name}: runners`, () => {
        const db: Client = service(createClient);
        const mark = randomUUID();
        const executed: string[] = [];
        const errors: unknown[] = [];

        const config = (workerId: string): PollerConfig => ({
            supabase: db,
            workerId,
            executeJob: async (job) => {
                executed.push(job.id);
                const { error } = await db.from('execution_jobs').update({ status: 'completed', result: { by: workerId } }).eq('id', job.id);
                assert.equal(error, null);
            },
            sleep: () => new Promise((resolve) => setTimeout(resolve, 10)),
            console: { error: (...what) => errors.push(what) },
        });
        const queue = async (count = 1): Promise<ExecutionJob[]> => {
            const { data, error } = await db.from('execution_jobs').insert(Array.from({ length: count }, () => ({ recording_id: mark }))).select();
            assert.equal(error, null);
            return data!;
        };
        const done = (jobs: ExecutionJob[]) => until('the jobs are done', async () => {
            const { data } = await db.from('execution_jobs').select('id, worker_id').in('id', jobs.map((job) => job.id)).eq('status', 'completed');
            return data!.length === jobs.length && data!;
        });

        after(async () => {
            await db.from('execution_jobs').delete().eq('recording_id', mark);
            await db.removeAllChannels();
            await db.realtime.disconnect();
        });

        test('pollers run each job once, however many they are', async () => {
            const jobs = await queue(8);
            const pollers = ['one', 'two', 'three'].map((worker) => new JobPoller(config(worker)));
            const loops = pollers.map((poller) => poller.start());
            await done(jobs);
            await Promise.all(pollers.map((poller) => poller.stop()));
            await Promise.all(loops);
            assert.deepEqual(executed.splice(0).sort(), jobs.map((job) => job.id).sort());
            assert.deepEqual(errors, []);
        });

        test('of two claims one counts, and the other learns so', async () => {
            for (const claim of [claimByVersion, claimByTime, (_: Client, job: ExecutionJob) => new JobPoller(config('x')).claimJob(job)]) {
                const [job] = await queue();
                assert.deepEqual((await Promise.all([claim(db, job), claim(db, job)])).sort(), [false, true]);
                const { data } = await db.from('execution_jobs').select('status, version').eq('id', job.id).single();
                assert.deepEqual(data, { status: 'running', version: job.version + 1 });
            }
        });

        test('an adaptive poller slows down, and is back at once', async () => {
            const poller = new AdaptivePoller(config('adaptive'));
            for (const interval of [7500, 11250, 16875, 25312.5, 30000, 30000]) {
                assert.equal(await poller.pollOnce(), false);
                assert.equal(poller.currentInterval, interval);
            }
            const jobs = await queue();
            assert.equal(await poller.pollOnce(), true);
            assert.deepEqual([poller.currentInterval, poller.consecutiveEmptyPolls], [5000, 0]);
            assert.equal((await done(jobs))[0].worker_id, 'adaptive');
        });

        test('the hybrid: pushed jobs are run as they come, and no job twice', async () => {
            executed.length = 0;
            // Who joins while a change is on its way may still receive it: the early job must have been sent before.
            const sent = new Inbox<unknown>();
            const witness = db.channel(randomUUID());
            witness.on('postgres_changes', { event: 'INSERT', schema: 'public', table: 'execution_jobs', filter: `recording_id=eq.${mark}` }, sent.put);
            await subscribed(witness);
            const early = await queue();
            await sent.next();
            const pushed = new RealtimePoller(config('pushed'));
            await pushed.start();
            await until('it listens', async () => pushed.subscription!.state === ('joined' as string));
            const jobs = await queue(3);
            assert.deepEqual([...new Set((await done(jobs)).map((job) => job.worker_id))], ['pushed']);
            const polls = new AdaptivePoller(config('polls'));
            const loop = polls.start();
            assert.equal((await done(early))[0].worker_id, 'polls');
            const more = await queue(5);
            await done(more);
            await polls.stop();
            await loop;
            await pushed.stop();
            await db.removeChannel(witness);
            assert.deepEqual(executed.sort(), [...early, ...jobs, ...more].map((job) => job.id).sort());
            assert.deepEqual(errors, []);
        });
    });

    describe(`${name}: dumps`, () => {
        test('captured text is claimed in batches and worked through in stages', async () => {
            const db: Client = service(createClient);
            const mark = randomUUID();
            const workspace = await db.from('workspaces').insert({ name: mark }).select('id').single();
            const basket = await db.from('baskets').insert({ workspace_id: workspace.data!.id }).select('id').single();
            const dumps = await db.from('raw_dumps').insert([1, 2, 3].map((n) => ({ basket_id: basket.data!.id, body_md: `note ${n}` }))).select('id');
            assert.equal(dumps.error, null);
            const claim = (p_worker_id: string, p_limit: number) => db.rpc('fn_claim_next_dumps', { p_worker_id, p_limit });
            const [first, second] = await Promise.all([claim('one', 2), claim('two', 2)]);
            assert.deepEqual([first.error, second.error], [null, null]);
            const claimed = [...first.data, ...second.data];
            assert.deepEqual(claimed.map((row) => row.dump_id).sort(), dumps.data!.map((row) => row.id).sort());
            assert.ok(claimed.every((row) => row.processing_state === 'claimed' && row.attempts === 0));
            const set = async (id: string, row: object) => assert.equal((await db.from('agent_processing_queue').update(row).eq('id', id)).error, null);
            for (const entry of claimed) {
                await set(entry.id, { processing_state: 'processing' });
                const dump = await db.from('raw_dumps').select('*').eq('id', entry.dump_id).single();
                const block = await db.rpc('fn_block_create', {
                    p_basket_id: dump.data!.basket_id, p_title: dump.data!.body_md, p_content: 'x', p_semantic_type: 'insight', p_confidence_score: 0.9,
                });
                assert.match(block.data, /^[0-9a-f-]{36}$/);
                await set(entry.id, { processing_state: 'completed' });
            }
            const states = await db.from('agent_processing_queue').select('processing_state, claimed_by, completed_at').eq('basket_id', basket.data!.id);
            assert.ok(states.data!.every((row) => row.processing_state === 'completed' && ['one', 'two'].includes(row.claimed_by) && row.completed_at));
            assert.equal((await db.from('blocks').select('id').eq('basket_id', basket.data!.id)).data!.length, 3);
        });
    });
}
