// Every page, empty and with data, light, dark and on a phone: nothing is cut, no barrier, no complaint; and a picture of each.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Server, closeBrowser, open, type View } from './support.ts';

let server: Server;
before(async () => { server = await Server.start(['--no-agent'], { GLEANER_FRAME_ORIGINS: 'http://127.0.0.1:9' }); });
after(async () => { await closeBrowser(); await server.remove(); });

async function look(view: View, state: string, paths: string[]): Promise<void> {
    const visitor = await open(server, view);
    await visitor.signIn();
    const problems: string[] = [];
    for (const path of paths) {
        await visitor.go(path);
        const name = `${path.split('?')[0]!.split('/').slice(1).map((part, n) => n === 0 ? part : /^[a-z]+$/.test(part) ? part : 'item').join('-')}-${state}-${view}`;
        await visitor.picture(name);
        problems.push(...(await visitor.barriers()).map(barrier => `${name}: ${barrier}`));
        if (await visitor.overflow() > 0) problems.push(`${name} is wider than the screen`);
    }
    assert.deepEqual([...problems, ...visitor.trouble], []);
    await visitor.close();
}

const views: View[] = ['light', 'dark', 'phone'];
/** Pages for people who are not signed in. */
const outside = ['/sign-in', '/invite#token=x', '/invite', '/reset', '/reset#token=x', '/code'];
const lists = ['/activity', '/unmatched', '/contacts', '/followups', '/channels', '/dumps', '/queues', '/queues/jobs', '/dead', '/overview', '/agents', '/audit', '/settings', '/settings/keys', '/settings/retention', '/me'];

test('the pages before signing in are sound', async () => {
    for (const view of views) {
        const visitor = await open(server, view);
        for (const path of outside) {
            await visitor.page.goto('about:blank');
            await visitor.page.goto(server.url + path);
            await visitor.page.getByRole('heading', { level: 1 }).waitFor();
            await visitor.picture(`${path.slice(1).replace('#token=x', '-form')}-${view}`);
            assert.deepEqual([...await visitor.barriers(), ...visitor.trouble], [], path);
            assert.equal(await visitor.overflow(), 0, path);
        }
        await visitor.close();
    }
});

test('every page is sound while there is nothing', async () => {
    for (const view of ['light', 'phone'] as const) await look(view, 'empty', lists);
});

test('every page is sound with data, long words included', async () => {
    const long = 'Donaudampfschifffahrtsgesellschaftskapitän'.repeat(6);
    server.sql(`insert into contacts (first_name, last_name, title, email, phone_number, tags) values ('Grace', 'Hopper', 'Rear admiral', 'grace@example.com', '+14158675309', array['navy']),
            ('${long}', '${long}', '${long}', '${long}@example.com', null, array['${long}']), ('Ann', 'Lee', null, 'lee@example.com', null, null), ('Bob', 'Lee', null, 'lee@example.com', null, null);
        insert into activities (type, raw_data, processing_status, processed_data, contact_id) values
            ('call', '{"source_type": "url", "content": "https://example.com/r.wav"}', 'completed', '{"summary": "Grace asks for a demo next week.", "facts": ["Next step: demo"], "transcript": "Hello, this is Grace."}', 1),
            ('email', jsonb_build_object('source_type', 'text', 'content', '${long}', 'subject', '${long}', 'sender', 'lee@example.com'), 'completed', jsonb_build_object('summary', '${long}'), null);
        insert into activities (type, raw_data, metadata, sales_id) values
            ('sms', '{"source_type": "text", "content": "Call me back."}', '{"from": "+14150000001"}', (select min(id) from sales)), ('email', '{"source_type": "text", "content": "Invoice", "subject": "Invoice 7", "sender": "lee@example.com"}', '{"from": "lee@example.com"}', null)`);
    server.gleaner(['channels', 'add', 'Support line', '--provider', 'twilio', '--set', 'auth_token=secret']);
    server.sql(`insert into gleaner.jobs (kind, status, due_at, attempts, error, payload) values ('mail', 'ready', now(), 0, null, '{"to": "ada"}'), ('mail', 'done', null, 0, null, '{}'),
            ('${long}', 'failed', now() + interval '1 hour', 2, jsonb_build_object('type', 'Timeout', 'message', '${long}'), jsonb_build_object('text', '${long}')),
            ('print', 'failed', null, 3, jsonb_build_object('type', 'Refused', 'message', '${long}'), '{}'), ('print', 'cancelled', null, 0, null, '{}'), ('mail', 'ready', now() + interval '2 hours', 0, null, '{}')`);
    server.sql(`insert into crm_processing_nodes (sales_id, device_name, status, processed_count) select min(id), '${long}', 'ready', 12 from sales;
        insert into crm_processing_nodes (sales_id, device_name, status, last_heartbeat) select min(id), 'Old laptop', 'ready', now() - interval '3 days' from sales;
        insert into gleaner.audit (queue, key, act, caller, detail) values ('jobs', '1', 'requeue', 'role:service_role', jsonb_build_object('reason', '${long}'))`);
    server.sql(`insert into scheduled_actions (prospect_id, action_type, scheduled_for, payload, status, error_message) values ('1', 'follow_up', now() + interval '2 hours', '{"message": "Hello Grace, shall we talk?"}', 'pending', null),
            ('${long.slice(0, 200)}', 'follow_up', now() + interval '2 days', jsonb_build_object('message', '${long}'), 'pending', null), ('2', 'follow_up', now() - interval '1 day', '{}', 'failed', '${long}')`);
    server.sql(`insert into workspaces (id, name) values (md5('w')::uuid, 'Research'), (md5('v')::uuid, '${long}');
        insert into baskets (id, workspace_id, name) values (md5('b')::uuid, md5('w')::uuid, 'Inbox'), (md5('c')::uuid, md5('w')::uuid, '${long}');
        insert into raw_dumps (id, basket_id, body_md, file_name, file_size, media_type, file_sha256) select md5(n)::uuid, md5('b')::uuid, n, n, 2300000, 'application/pdf', encode(sha256(n::bytea), 'hex') from unnest(array['research_paper.pdf', 'trial.md', 'scan.pdf', 'notes.txt', 'Donaudampfschifffahrtsgesellschaft.repeat']) n;
        set session_replication_role = replica;
        update agent_processing_queue set processing_state = 'completed', due_at = null, result = '{"message": "12 insights, 8 entities, 15 connections"}' where dump_id = md5('trial.md')::uuid;
        update agent_processing_queue set processing_state = 'processing', due_at = now() + interval '1 hour', lease = 9, progress = '{"stage": "Extracting relationships", "percent": 60}', result = '{"context_items": [{"kind": "topic"}, {"kind": "topic"}, {"kind": "topic"}]}' where dump_id = md5('research_paper.pdf')::uuid;
        update agent_processing_queue set processing_state = 'failed', due_at = null, error_message = 'the file has no text layer' where dump_id = md5('scan.pdf')::uuid;
        insert into blocks (basket_id, dump_id, title, content, semantic_type, confidence_score) values (md5('b')::uuid, md5('trial.md')::uuid, 'The pumps passed', 'Ada tested the pumps.', 'insight', 0.8), (md5('b')::uuid, md5('trial.md')::uuid, '${long}', '${long}', 'question', null);
        insert into context_items (id, basket_id, kind, label) values (md5('i')::uuid, md5('b')::uuid, 'entity', 'Ada Lovelace'), (md5('j')::uuid, md5('b')::uuid, 'topic', '${long}');
        insert into context_item_sources (context_item_id, dump_id) values (md5('i')::uuid, md5('trial.md')::uuid), (md5('j')::uuid, md5('trial.md')::uuid);
        insert into substrate_relationships (basket_id, dump_id, from_type, from_id, to_type, to_id, relationship_type) values (md5('b')::uuid, md5('trial.md')::uuid, 'context_item', md5('i')::uuid, 'context_item', md5('j')::uuid, 'mentioned_with')`);
    server.gleaner(['keys', 'add', 'laptop']);
    const [failed, dead] = [server.sql(`select id from gleaner.jobs where attempts = 2`), server.sql(`select id from gleaner.jobs where attempts = 3`)];
    const [activity, channel] = [server.sql(`select id from activities where type = 'call'`), server.sql('select id from ingestion_providers')];
    const waiting = server.sql(`select id from activities where type = 'sms'`);
    for (const view of views) await look(view, 'full', [...lists, `/activity/${activity}`, '/contacts/1', '/contacts/2', `/channels/${channel}`, `/queues/jobs/${failed}`, `/dumps/${server.sql(`select md5('trial.md')::uuid`)}`]);
    await look('light', 'waiting', [`/activity/${waiting}`, `/queues/activities/${waiting}`]);
    await look('phone', 'failed', ['/followups?view=failed']);
    await look('light', 'dead', [`/queues/jobs/${dead}`, '/queues/activities']);
});

test('the first load is under 200 kB, and hashed files are kept for good', async () => {
    const visitor = await open(server);
    let bytes = 0;
    visitor.page.on('requestfinished', async request => { bytes += (await request.sizes()).responseBodySize; });
    await visitor.signIn();
    await visitor.go('/activity');
    assert.ok(bytes > 10_000 && bytes < 200_000, `${bytes} bytes`);
    const script = await visitor.page.locator('script[type=module]').getAttribute('src');
    const answer = await fetch(server.url + script, { headers: { 'accept-encoding': 'br' } });
    assert.equal(answer.headers.get('cache-control'), 'public, max-age=31536000, immutable');
    assert.equal(answer.headers.get('content-encoding'), 'br');
    await visitor.close();
});

test('a person who is not signed in is asked to, and comes back to where they were going', async () => {
    const visitor = await open(server, 'phone');
    await visitor.page.goto(`${server.url}/contacts?q=grace`);
    await visitor.page.getByLabel('E-mail').fill(server.admin.email);
    await visitor.page.getByLabel('Password').fill('wrong');
    await visitor.page.getByRole('button', { name: 'Sign in' }).click();
    await visitor.page.getByRole('alert').getByText('Invalid login credentials').waitFor();
    assert.deepEqual(await visitor.barriers(), []);
    await visitor.page.getByLabel('Password').fill(server.admin.password);
    await visitor.page.getByRole('button', { name: 'Sign in' }).click();
    await visitor.page.getByRole('heading', { name: 'Contacts' }).waitFor();
    assert.match(visitor.page.url(), /\/contacts\?q=grace$/);
    await visitor.close();
});
