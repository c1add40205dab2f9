// Queues: finding what is stuck, and putting it right, one row or many.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { Server, closeBrowser, open, until, type View, type Visitor } from './support.ts';

let server: Server;
const visitors: Visitor[] = [];
async function visit(view: View = 'light'): Promise<Visitor> {
    const visitor = await open(server, view);
    visitors.push(visitor);
    return visitor;
}
before(async () => { server = await Server.start(); });
afterEach(async () => {
    const trouble = visitors.flatMap(visitor => visitor.trouble);
    for (const visitor of visitors.splice(0)) await visitor.close();
    assert.deepEqual(trouble, [], 'the page complained');
});
after(async () => { await closeBrowser(); await server.remove(); });

test('five hundred dead rows are requeued by their cause, with the count first', async () => {
    server.sql(`insert into gleaner.jobs (kind, status, due_at, error)
            select 'mail', 'failed', null, jsonb_build_object('type', 'Timeout', 'message', 'no answer within ' || n || ' s') from generate_series(1, 500) n;
        insert into gleaner.jobs (kind, status, due_at, error) values ('mail', 'failed', null, '{"type": "Refused", "message": "wrong key"}')`);
    const ada = await visit();
    await ada.signIn(undefined, '/dead');
    const { page } = ada;
    const group = page.getByRole('region', { name: 'Dead letters of jobs' });
    await group.getByText('Timeout: no answer within … s').waitFor();
    await ada.settled();
    await ada.picture('dead-full-light');
    assert.deepEqual(await ada.barriers(), []);
    await group.getByRole('button', { name: 'Requeue 500 items' }).click();
    const dialog = page.getByRole('dialog', { name: 'Requeue 500 items' });
    await dialog.getByText('500 given up will wait').waitFor();
    await ada.picture('bulk-dialog-light');
    assert.deepEqual(await ada.barriers(), []);
    await dialog.getByRole('button', { name: 'Requeue 500 items' }).click();
    await page.getByText('500 rows done, 0 already, 0 failed.').waitFor();
    await until('the group to leave', async () => await group.getByText('Timeout').count() === 0);
    assert.equal(server.sql(`select count(*) filter (where status = 'ready') || ' ' || count(*) filter (where status = 'failed') from gleaner.jobs`), '500 1');
});

test('a failed row is found, explained, rescheduled and given up, and the audit says who did it', async () => {
    const id = server.sql(`insert into gleaner.jobs (kind, status, due_at, attempts, error, payload) values ('print', 'failed', now() + interval '1 hour', 2, '{"type": "Paper", "message": "the tray is empty"}', '{"pages": 3}') returning id`);
    const ada = await visit();
    await ada.signIn(undefined, '/queues');
    const { page } = ada;
    await page.getByRole('table', { name: 'Queues' }).getByRole('link', { name: 'jobs', exact: true }).click();
    await page.getByLabel('State', { exact: true }).selectOption('failed');
    await page.getByRole('table', { name: 'Items of jobs' }).getByRole('link', { name: id, exact: true }).click();
    await page.getByRole('heading', { name: id, level: 1 }).waitFor();
    await page.getByRole('region', { name: 'Why is this waiting?' }).getByText('the next try is in', { exact: false }).waitFor();
    await page.getByText('Paper: the tray is empty').waitFor();

    await page.getByRole('button', { name: 'Change due time' }).click();
    await page.getByRole('dialog', { name: 'Change due time' }).getByLabel('Due').fill('2035-05-04T09:00');
    await page.getByRole('dialog').getByRole('button', { name: 'Change due time' }).click();
    await until('the new time', () => server.sql(`select due_at = '2035-05-04T09:00+02' from gleaner.jobs where id = ${id}`) === 't');
    await page.getByRole('button', { name: 'Give up' }).click();
    await page.getByLabel('Reason (optional)').fill('nobody prints');
    await page.getByRole('dialog', { name: `Give up ${id}` }).getByRole('button', { name: 'Give up' }).click();
    await page.locator('main').getByText('Given up', { exact: true }).first().waitFor();
    const audit = page.getByRole('table', { name: 'Audit' });
    await audit.getByText('nobody prints').waitFor();
    assert.equal(await audit.getByRole('row').count(), 3);
    await page.getByRole('button', { name: 'Requeue' }).click();
    await until('it waits', () => server.sql(`select status from gleaner.jobs where id = ${id}`) === 'ready');
});

test('what ends much work asks for its number, and selected rows are changed by their keys', async () => {
    server.sql(`delete from gleaner.jobs; insert into gleaner.jobs (kind, payload) select 'mail', jsonb_build_object('n', n) from generate_series(1, 120) n`);
    const ada = await visit();
    await ada.signIn(undefined, '/queues/jobs?state=ready');
    const { page } = ada;
    await page.getByText('120 items match').waitFor();
    await page.getByRole('checkbox').nth(0).check();
    await page.getByRole('checkbox').nth(1).check();
    await page.getByRole('group', { name: 'Selected items' }).getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('2 items done, 0 already.').waitFor();
    await page.getByText('118 items match').waitFor();

    await page.getByRole('button', { name: 'Cancel all that match' }).click();
    const dialog = page.getByRole('dialog', { name: 'Cancel 118 items' });
    const sure = dialog.getByRole('button', { name: 'Cancel 118 items' });
    assert.equal(await sure.isDisabled(), true);
    await dialog.getByLabel('Type 118 to confirm').fill('118');
    await sure.click();
    await page.getByText('118 rows done, 0 already, 0 failed.').waitFor();
    await page.getByText('Nothing matches these filters.').waitFor();
    assert.equal(server.sql(`select count(*) from gleaner.jobs where status = 'cancelled'`), '120');
});

test('a member sees own queues, and is told what only administrators may do', async () => {
    const bob = server.addPerson('bob@example.com');
    server.sql(`insert into activities (type, sales_id, raw_data) values ('sms', (select min(id) from sales), '{"source_type": "text", "content": "Hello"}')`);
    const visitor = await visit();
    await visitor.signIn(bob, '/queues');
    const { page } = visitor;
    await page.getByText('Only administrators see its counts.').first().waitFor();
    const key = server.sql(`select id from activities where sales_id is not null limit 1`);
    await visitor.go(`/queues/activities/${key}`);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('alert').getByText('only administrators', { exact: false }).waitFor();
    assert.equal(server.sql(`select processing_status from activities where id = '${key}'`), 'raw');
    // The browser itself reports refused requests.
    assert.deepEqual(visitor.trouble.splice(0).filter(text => !text.includes('403 (Forbidden)')), []);
});

test('a paused queue says so everywhere, and is resumed from the row that waits', async () => {
    const id = server.sql(`insert into gleaner.jobs (kind) values ('paused') returning id`);
    const ada = await visit();
    await ada.signIn(undefined, '/queues/jobs');
    const { page } = ada;
    await page.getByRole('button', { name: 'Pause queue' }).click();
    await page.getByLabel('Reason (optional)').fill('the printer burns');
    await page.getByRole('dialog', { name: 'Pause jobs' }).getByRole('button', { name: 'Pause' }).click();
    await page.getByText('nothing is handed out. the printer burns', { exact: false }).waitFor();
    await ada.settled();
    await ada.picture('queues-paused-light');
    assert.deepEqual(await ada.barriers(), []);
    const claim = async () => (await (await fetch(`${server.url}/v1/queues/jobs/claim`, { method: 'POST', body: '{"agent": "a", "kinds": ["paused"]}', headers: { authorization: `Bearer ${server.serviceKey}` } })).json()).items.length;
    assert.equal(await claim(), 0);
    await ada.go(`/queues/jobs/${id}`);
    const why = page.getByRole('region', { name: 'Why is this waiting?' });
    await why.getByText('the printer burns', { exact: false }).waitFor();
    await why.getByRole('button', { name: 'Resume queue' }).click();
    await until('the row to be handed out', async () => await claim() === 1);
});
