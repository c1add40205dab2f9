// The functions in docs/reference/systems, as agents call them.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { anonymous, releases, service, signedIn, type Client } from './support.ts';

for (const { name, createClient } of releases) {
    describe(`${name}: functions`, () => {
        const db: Client = service(createClient);
        const mark = randomUUID();
        let owner: { id: number; user_id: string };

        before(async () => {
            const made = await db.from('sales').insert({ first_name: 'Rpc', last_name: mark, user_id: randomUUID() }).select('id, user_id').single();
            assert.equal(made.error, null);
            owner = made.data!;
        });

        after(async () => {
            await db.from('activities').delete().eq('sales_id', owner.id);
            await db.from('crm_processing_nodes').delete().eq('sales_id', owner.id);
            await db.from('sales').delete().eq('id', owner.id);
        });

        test('a bare number, an empty list, and arguments with defaults', async () => {
            const unlocked = await db.rpc('unlock_stale_locks');
            assert.equal(unlocked.error, null);
            assert.equal(typeof unlocked.data, 'number');
            const dumps = await db.rpc('fn_claim_next_dumps', { p_worker_id: mark, p_limit: 1 });
            assert.deepEqual([dumps.status, dumps.data, dumps.error], [200, [], null]);
        });

        test('what is not there, what may not be called, what may not be got', async () => {
            const missing = await db.rpc('no_such_function', { a: 1 });
            assert.deepEqual([missing.status, missing.error!.code], [404, 'PGRST202']);
            const wrong = await db.rpc('claim_next_pending_activity', { p_agent: 1 });
            assert.deepEqual([wrong.status, wrong.error!.code], [404, 'PGRST202']);
            const denied = await anonymous(createClient).rpc('claim_stale_activity');
            assert.deepEqual([denied.status, denied.error!.code], [401, '42501']);
            const got = await db.rpc('claim_next_pending_activity', { p_agent_sales_id: owner.id }, { get: true });
            assert.deepEqual([got.status, got.error!.code], [405, '25006']);
        });

        test('an agent signs in, claims, completes', async () => {
            const agent = signedIn(createClient, owner.user_id);
            const me = await agent.from('sales').select('id').eq('user_id', owner.user_id).single();
            assert.equal(me.data!.id, owner.id);
            const raw_data = { source_type: 'text', content: 'call me back' };
            const made = await agent.from('activities').insert({ type: 'note', sales_id: owner.id, raw_data }).select('id').single();
            assert.equal(made.error, null);
            const claim = () => agent.rpc('claim_next_pending_activity', { p_agent_sales_id: me.data!.id });
            const { data, error } = await claim();
            assert.equal(error, null);
            assert.equal(data.length, 1);
            assert.deepEqual([data[0].id, data[0].raw_data, data[0].is_global], [made.data!.id, raw_data, false]);
            const held = await agent.from('activities').select('processing_status, locked_by').eq('id', data[0].id).single();
            assert.deepEqual(held.data, { processing_status: 'processing', locked_by: owner.user_id });
            const done = { processing_status: 'completed', processed_data: { summary: 'ok' }, locked_by: null, locked_at: null };
            const ended = await agent.from('activities').update(done).eq('id', data[0].id);
            assert.deepEqual([ended.status, ended.error], [204, null]);
            const after = await agent.from('activities').select('processing_status, processed_data').eq('id', data[0].id).single();
            assert.deepEqual(after.data, { processing_status: 'completed', processed_data: { summary: 'ok' } });
            assert.deepEqual((await claim()).data, []);
            const filtered = await agent.rpc('claim_stale_activity').select('id').limit(1);
            assert.deepEqual(filtered.data, []);
        });

        test('an expired token is told as such', async () => {
            const late = signedIn(createClient, owner.user_id, { exp: 1_000_000_000, iat: 999_999_000 });
            const { status, error } = await late.from('sales').select('id');
            assert.deepEqual([status, error!.code, error!.message], [401, 'PGRST303', 'JWT expired']);
        });
    });
}
