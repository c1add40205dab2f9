// Many rows: no page asks for what takes long. A million activities and 100,000 jobs with GLEANER_TEST_FULL, fewer otherwise.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Server, closeBrowser, open } from './support.ts';

const isFull = Boolean(process.env.GLEANER_TEST_FULL);
const [activities, jobs] = isFull ? [1_000_000, 100_000] : [30_000, 5_000];
/** In milliseconds, by PostgreSQL's own clock. Only where nothing else runs: beside other tests a short statement waits for a processor. */
const LONGEST = 50;
/** In pages that a statement reads on average: what does not depend on the machine. */
const MOST_PAGES = 2_000;

let server: Server;
before(async () => {
    server = await Server.start();
    server.sql(`alter system set shared_preload_libraries = 'pg_stat_statements'`);
    await server.stop();
    await server.restart();
    server.gleaner(['channels', 'add', 'Support line', '--provider', 'twilio', '--set', 'auth_token=secret']);
    server.sql(`create extension pg_stat_statements;
        insert into contacts (first_name, last_name, email) select 'First' || n, 'Last' || n, 's' || n || '@example.com' from generate_series(0, 999) n;
        set session_replication_role = replica;
        insert into activities (type, raw_data, processed_data, processing_status, created_at, sender_kind, sender_address, contact_id, provider_id, due_at)
            select (array['email', 'call', 'sms', 'note'])[1 + n % 4], jsonb_build_object('source_type', 'text', 'content', 'Message ' || n || ' about order w' || n % 5000, 'subject', 'Order ' || n, 'sender', 's' || n % 1000 || '@example.com'),
                jsonb_build_object('summary', 'Order w' || n % 5000), case n % 1000 when 0 then 'failed' when 1 then 'raw' else 'completed' end, now() - n * interval '10 seconds', 'email', 's' || n % 1000 || '@example.com',
                case when n % 20 <> 0 then 1 + n % 1000 end, (select id from ingestion_providers), case n % 1000 when 1 then now() + interval '1 day' end
            from generate_series(1, ${activities}) n;
        insert into gleaner.activity_words select id, created_at, gleaner.words_of(concat_ws(' ', raw_data ->> 'sender', sender_address, raw_data ->> 'subject', processed_data ->> 'summary', raw_data ->> 'content')) from activities;
        insert into gleaner.jobs (kind, status, due_at, created_at, finished_at, error)
            select (array['mail', 'print', 'sync'])[1 + n % 3], case when n % 50 = 0 then 'failed' when n % 10 = 0 then 'ready' else 'done' end, case when n % 10 = 0 and n % 50 <> 0 then now() + n * interval '1 second' end,
                now() - n * interval '5 seconds', case when n % 10 <> 0 then now() - n * interval '5 seconds' + interval '3 seconds' end, case when n % 50 = 0 then jsonb_build_object('type', 'Timeout', 'message', 'no answer within ' || n || ' s') end
            from generate_series(1, ${jobs}) n`);
    for (const table of ['activities', 'contacts', 'gleaner.activity_words', 'gleaner.jobs']) server.sql(`vacuum analyze ${table}`);
});
after(async () => { await closeBrowser(); await server.remove(); });

const paths = ['/activity', '/activity?state=failed', '/activity?state=waiting', '/activity?state=cancelled', '/activity?type=call', '/activity?type=meeting', '/activity?owner=none', '/activity?owner=me',
    '/activity?q=w77', '/activity?q=message', '/activity?q=nothing', '/activity?q=order&type=call&state=failed', '/activity?before=2020-01-01', '/unmatched', '/contacts', '/contacts?q=last7', '/contacts/7', '/followups', '/channels',
    '/dumps', '/overview', '/overview?range=7d', '/queues', '/queues/jobs', '/queues/jobs?state=dead', '/queues/jobs?kind=mail', '/queues/activities', '/queues/activities?state=failed', '/dead', '/agents', '/audit'];

test('no page asks for what takes longer than 50 ms, or reads many pages', async () => {
    const ada = await open(server);
    await ada.signIn();
    // Once to fill PostgreSQL's cache, as it is on every other day, and once to measure.
    for (const pass of [1, 2]) {
        if (pass === 2) server.sql('select pg_stat_statements_reset()');
        for (const path of paths) await ada.go(path);
        await ada.go('/activity');
        for (let shown = 50; shown < 200; shown += 50) {
            await ada.page.evaluate(() => scrollTo(0, document.body.scrollHeight));
            await ada.page.getByRole('article').nth(shown).waitFor();
        }
    }
    const cost = isFull ? 'max_exec_time' : '(shared_blks_hit + shared_blks_read) / calls';
    const list = (condition: string) => server.sql(`select round((${cost})::numeric) || ': ' || left(regexp_replace(query, '\\s+', ' ', 'g'), 400) from pg_stat_statements
        where query !~ '^(select pg_stat|create|vacuum|insert into gleaner.activity_words|--)|claim_poll' and ${condition} order by ${cost} desc limit 5`);
    // The queries that begin with a comment read the catalogue, once after it changed.
    const slow = list(`${cost} > ${isFull ? LONGEST : MOST_PAGES}`);
    assert.equal(slow, '');
    assert.deepEqual(ada.trouble, []);
    await ada.close();
});

test('every filter of the feed is read from an index, in its order', () => {
    const plan = (condition: string) => server.sql(`explain select id from activities where ${condition} order by created_at desc, id desc limit 50`);
    for (const condition of ['true', `processing_status = 'cancelled'`, `type = 'meeting'`, 'contact_id = 7', 'contact_id is null', 'sales_id = 1', `provider_id = (select id from ingestion_providers)`,
        `created_at <= now() and (created_at < now() or id < gen_random_uuid())`]) {
        const text = plan(condition);
        assert.match(text, /Index/, `${condition}: ${text}`);
        assert.doesNotMatch(text, /Seq Scan on activities|Sort/, `${condition}: ${text}`);
    }
});

test('the overview of an idle system costs less than a statement a second, however many look', async () => {
    const visitors = await Promise.all(['light', 'light', 'dark', 'phone'].map(view => open(server, view as 'light')));
    for (const visitor of visitors) { await visitor.signIn(undefined, '/overview'); await visitor.settled(); }
    server.sql('select pg_stat_statements_reset()');
    const began = Date.now();
    // Three rounds of looks of each page, by the server's answers.
    await Promise.all(visitors.map(async visitor => { for (let n = 0; n < 3; n++) await visitor.page.waitForResponse(answer => answer.url().includes('/v1/figures'), { timeout: 60_000 }); }));
    const seconds = (Date.now() - began) / 1000;
    // Without the server's claims of mailboxes to poll, which it makes whether or not a page is open.
    const calls = Number(server.sql(`select sum(calls) from pg_stat_statements where query !~ 'pg_stat_statements|claim_poll'`));
    console.log(`${calls} statements in ${seconds.toFixed(0)} s, ${visitors.length} look`);
    assert.ok(calls / seconds < 1, server.sql(`select calls || ' ' || left(regexp_replace(query, '\\s+', ' ', 'g'), 160) from pg_stat_statements order by calls desc limit 12`));
    for (const visitor of visitors) await visitor.close();
});
