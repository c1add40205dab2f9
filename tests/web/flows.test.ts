// What people do with the web interface, from one end to the other, with an agent at work.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { Server, closeBrowser, open, twilio, until, type Visitor } from './support.ts';

let server: Server;
const visitors: Visitor[] = [];
async function visit(...args: [('light' | 'dark' | 'phone')?]): Promise<Visitor> {
    const visitor = await open(server, ...args);
    visitors.push(visitor);
    return visitor;
}
before(async () => { server = await Server.start([]); });
afterEach(async () => {
    const trouble = visitors.flatMap(visitor => visitor.trouble);
    for (const visitor of visitors.splice(0)) await visitor.close();
    assert.deepEqual(trouble, [], 'the page complained');
});
after(async () => { await closeBrowser(); await server.remove(); });

test('a channel is added, its first signed message appears without a reload, and the result follows', async () => {
    const ada = await visit();
    await ada.signIn();
    const { page } = ada;
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Channels' }).click();
    await page.getByText('No channel yet.').waitFor();
    await page.getByRole('button', { name: 'Add a channel' }).click();
    await page.getByRole('button', { name: 'Twilio' }).click();

    // All mistakes are told at once, and nothing is lost.
    await page.getByLabel('Name', { exact: true }).fill('Support line');
    await page.getByRole('button', { name: 'Add channel' }).click();
    await page.getByRole('alert').getByText('auth_token', { exact: false }).first().waitFor();
    // The browser itself reports a refused request.
    assert.deepEqual(ada.trouble.splice(0).filter(text => !text.includes('400 (Bad Request)')), []);
    await page.getByLabel('Auth token', { exact: false }).first().fill('twilio-token');
    await page.getByRole('button', { name: 'Add channel' }).click();
    const dialog = page.getByRole('dialog', { name: 'Support line is ready' });
    const url = (await dialog.locator('code').first().textContent())!;
    await dialog.getByRole('button', { name: 'Copy Webhook URL' }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), url);
    await dialog.getByRole('button', { name: 'Test' }).click();
    await dialog.getByText('The test passed.').waitFor();
    await dialog.getByText('Waiting for the first real event').waitFor();

    const bare = url.split('#')[0]!;
    const body = { MessageSid: `SM${'0'.repeat(31)}1`, AccountSid: `AC${'0'.repeat(31)}1`, From: '+14158675309', To: '+14150000000', Body: 'Please call Grace Hopper back tomorrow at 3 pm.', NumMedia: '0' };
    assert.equal((await twilio(bare, 'wrong', body)).status, 401);
    assert.equal((await twilio(bare, 'twilio-token', body)).status, 200);
    await dialog.getByText('The first event has arrived.').waitFor();
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByText(/Last event|Rejecting/).waitFor();

    await page.getByRole('link', { name: 'Activity' }).first().click();
    const card = page.getByRole('feed', { name: 'Activity' }).getByRole('article', { name: '+14158675309' });
    await card.and(page.locator('[data-state=done]')).waitFor();

    // Seen from an open page: the card arrives within a second, and its result without a reload.
    const second = { ...body, MessageSid: `SM${'0'.repeat(31)}2`, Body: 'The second message, from an open page.' };
    assert.equal((await twilio(bare, 'twilio-token', second)).status, 200);
    await page.getByRole('article').filter({ hasText: 'The second message' }).first().waitFor({ timeout: 1_000 });
    await page.locator('article[data-state=done]').filter({ hasText: 'second message' }).first().waitFor();
    await card.first().getByRole('link', { name: '+14158675309' }).click();
    await page.getByRole('heading', { name: 'Original' }).waitFor();
});

test('unmatched messages are linked to a candidate, all of a sender at once, and undone', async () => {
    server.sql(`insert into contacts (first_name, last_name, email) values ('Ann', 'Lee', 'lee@example.com'), ('Bob', 'Lee', 'lee@example.com');
        insert into activities (type, raw_data, metadata, processing_status) select 'email', jsonb_build_object('source_type', 'text', 'content', 'Hello ' || n, 'subject', 'Deal ' || n, 'sender', 'lee@example.com'),
            '{"from": "lee@example.com"}', 'completed' from generate_series(1, 3) n`);
    const ada = await visit();
    await ada.signIn(undefined, '/unmatched');
    const { page } = ada;
    const sender = page.getByRole('region', { name: 'From lee@example.com' });
    await sender.getByText('3 messages').waitFor();
    await sender.getByRole('button', { name: 'Ann Lee same address' }).click();
    await page.getByText('3 messages linked to Ann Lee.').waitFor();
    await until('the row to leave', async () => await sender.count() === 0);
    const linked = () => server.sql(`select count(*) from activities a join contacts c on c.id = a.contact_id where c.first_name = 'Ann'`);
    assert.equal(linked(), '3');
    await page.getByRole('button', { name: 'Undo' }).click();
    await sender.getByText('3 messages').waitFor();
    assert.equal(linked(), '0');
});

test('a sender becomes a contact, and the timeline shows what it wrote', async () => {
    const ada = await visit();
    await ada.signIn(undefined, '/unmatched');
    const { page } = ada;
    await page.getByRole('region', { name: 'From +14158675309' }).getByRole('button', { name: 'New contact' }).click();
    await page.getByLabel('First name').fill('Grace');
    await page.getByLabel('Last name').fill('Hopper');
    await page.getByRole('button', { name: 'Add and link' }).click();
    await page.getByText(/messages? linked to Grace Hopper/).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search or go to' }).fill('grace');
    await page.getByRole('option', { name: /Grace Hopper/ }).click();
    await page.getByRole('heading', { name: 'Grace Hopper', level: 1 }).waitFor();
    await page.getByRole('feed').getByRole('article').first().waitFor();

    // A note by hand is an activity like everything else.
    await page.getByRole('button', { name: 'Add note, task or meeting' }).click();
    await page.getByLabel('Text', { exact: true }).fill('Grace prefers mornings.');
    await page.getByRole('button', { name: 'Add note', exact: true }).click();
    await page.getByRole('article').filter({ hasText: 'Grace prefers mornings.' }).waitFor();
});

test('a follow-up is moved and called off, and what failed asks before it is sent again', async () => {
    server.sql(`insert into scheduled_actions (prospect_id, action_type, scheduled_for, payload) values ('ann', 'follow_up', now() + interval '2 days', '{"text": "Hello Ann"}');
        insert into scheduled_actions (prospect_id, action_type, scheduled_for, status, error_message) values ('eve', 'follow_up', now() - interval '1 day', 'failed', 'the line broke while sending')`);
    const ada = await visit();
    await ada.signIn(undefined, '/followups');
    const { page } = ada;
    const ann = page.getByRole('listitem').filter({ hasText: 'Hello Ann' });
    await ann.getByRole('button', { name: 'Reschedule' }).click();
    await page.getByRole('dialog', { name: 'Reschedule' }).getByLabel('Another time').fill('2035-05-04T09:00');
    await page.getByRole('dialog').getByRole('button', { name: 'Reschedule' }).click();
    await until('the new time', () => server.sql(`select scheduled_for = '2035-05-04T09:00+02' from scheduled_actions where prospect_id = 'ann'`) === 't');
    await page.getByText('4 May 2035', { exact: false }).first().waitFor();
    await ann.getByRole('button', { name: 'Cancel' }).click();
    await until('it to be cancelled', () => server.sql(`select status from scheduled_actions where prospect_id = 'ann'`) === 'cancelled');
    await page.getByRole('button', { name: 'Undo' }).click();
    await until('it to be planned again', () => server.sql(`select status || ' ' || (scheduled_for = '2035-05-04T09:00+02') from scheduled_actions where prospect_id = 'ann'`) === 'pending true');

    await page.getByRole('group', { name: 'View' }).getByRole('button', { name: 'Failed' }).click();
    await page.getByRole('listitem').filter({ hasText: 'the line broke' }).getByRole('button', { name: 'Send again' }).click();
    const dialog = page.getByRole('dialog', { name: 'Send again?' });
    await dialog.getByText('This may already have been sent to eve.', { exact: false }).waitFor();
    await dialog.getByRole('button', { name: 'Leave it' }).click();
    assert.equal(server.sql(`select status from scheduled_actions where prospect_id = 'eve'`), 'failed');
});

test('a follow-up is planned for a contact, asks for approval, and is let go', async () => {
    const contact = server.sql(`insert into contacts (first_name, last_name, email) values ('Clara', 'Zetkin', 'clara@example.com') returning id`);
    server.sql(`insert into contact_preferences (contact_id, time_zone) values (${contact}, 'America/New_York')`);
    const ada = await visit();
    await ada.signIn(undefined, `/contacts/${contact}`);
    const { page } = ada;
    await page.getByRole('button', { name: 'Plan a follow-up' }).click();
    const dialog = page.getByRole('dialog', { name: 'Plan a follow-up' });
    await dialog.getByText('Clara Zetkin').waitFor();
    await dialog.getByLabel('When', { exact: true }).fill('2035-05-04T15:00');
    await dialog.getByLabel('Text', { exact: true }).fill('Shall we talk, Clara?');
    await dialog.getByLabel('Ask me before it is sent').check();
    assert.deepEqual(await ada.barriers(), []);
    await dialog.getByRole('button', { name: 'Plan it' }).click();
    await page.getByText('Planned for Clara Zetkin', { exact: false }).waitFor();
    const status = (columns: string) => server.sql(`select ${columns} from scheduled_actions where contact_id = ${contact}`);
    assert.equal(status(`status || ' ' || (scheduled_for = '2035-05-04T15:00+02') || ' ' || (payload ->> 'text')`), 'pending true Shall we talk, Clara?');

    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: /^Follow-ups/ }).click();
    await page.getByRole('link', { name: '1 follow-up waits for approval.' }).click();
    const card = page.getByRole('listitem').filter({ hasText: 'Shall we talk, Clara?' });
    await card.getByText('09:00 for Clara Zetkin, 15:00 for you').waitFor();
    await ada.picture('followups-approve-light');
    await card.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('Approved: it goes out', { exact: false }).waitFor();
    await page.getByText('Nothing waits for approval.').waitFor();
    assert.equal(status('approved_at is not null'), 't');
});
