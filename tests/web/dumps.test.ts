// Documents: dropped, read while the page is open, and shared with the people of a workspace.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { Server, closeBrowser, open, until, type Visitor } from './support.ts';

let server: Server;
const visitors: Visitor[] = [];
async function visit(): Promise<Visitor> {
    const visitor = await open(server);
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

const trial = '# Pump trial\n\nAda Lovelace of Meyer AG tested the pumps.\nPlease send Ada Lovelace the invoice by Friday.\nWho pays for the pumps?\n';
const file = (name: string, text: string) => ({ name, mimeType: 'text/markdown', buffer: Buffer.from(text) });

test('a dropped file is stored at once, and its insights arrive without a reload', async () => {
    const ada = await visit();
    await ada.signIn(undefined, '/dumps');
    const { page } = ada;
    await page.getByText('No workspace yet.').waitFor();
    await page.getByRole('button', { name: 'New workspace' }).click();
    await page.getByLabel('Name').fill('Research');
    await page.getByRole('button', { name: 'Make workspace' }).click();
    await page.getByText('Nothing was dropped here yet.').waitFor();
    await page.getByLabel('Files').setInputFiles(file('trial.md', trial));
    const card = page.getByRole('feed', { name: 'Dumps' }).getByRole('article', { name: /^trial\.md/ });
    await card.getByText('Upload complete').waitFor();
    await card.getByText('Analysis complete').waitFor();
    const counts = (await card.getByText(/\d+ insights?, \d+ entit(y|ies), \d+ connections?/).textContent())!;
    await ada.picture('dumps-full-light');
    assert.deepEqual(await ada.barriers(), []);

    // The same file again is the one that is there; what nobody can read is refused with the reason.
    await page.getByLabel('Files').setInputFiles([file('again.md', trial), { name: 'program.exe', mimeType: 'application/octet-stream', buffer: Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2, 0xff]) }]);
    await page.getByText('trial.md is here already.').waitFor();
    await page.locator('[data-upload]').filter({ hasText: 'program.exe' }).getByRole('alert').waitFor();
    assert.deepEqual(ada.trouble.splice(0).filter(text => !text.includes('415')), []);
    assert.equal(server.sql('select count(*) from raw_dumps'), '1');

    await card.getByRole('link', { name: /^trial\.md/ }).click();
    await page.getByRole('heading', { name: /^trial\.md/, level: 1 }).waitFor();
    await page.getByText(counts, { exact: true }).waitFor();
    await page.getByRole('region', { name: 'Insights' }).getByRole('listitem').first().waitFor();
    await page.getByRole('region', { name: 'Entities' }).getByText('Ada Lovelace').first().waitFor();
    await ada.settled();
    await ada.picture('dumps-item-full-light');
    assert.deepEqual(await ada.barriers(), []);
    assert.equal(await ada.overflow(), 0);
});

test('early results are shown while an agent works, and a document that failed says why', async () => {
    const basket = server.sql('select id from baskets limit 1');
    const ada = await visit();
    await ada.signIn(undefined, '/dumps');
    const { page } = ada;
    const put = (name: string, change: string) => server.sql(`set session_replication_role = replica; insert into raw_dumps (id, basket_id, body_md, file_name, file_size, media_type, file_sha256)
        values (md5('${name}')::uuid, '${basket}', '', '${name}', 2300000, 'application/pdf', encode(sha256('${name}'), 'hex'));
        insert into agent_processing_queue (dump_id, basket_id, workspace_id) select md5('${name}')::uuid, '${basket}', workspace_id from baskets where id = '${basket}';
        update agent_processing_queue set ${change} where dump_id = md5('${name}')::uuid`);
    put('paper.pdf', `processing_state = 'processing', lease = 77, due_at = now() + interval '1 hour', progress = '{"stage": "Extracting relationships", "percent": 60}', result = '{"context_items": [{"kind": "topic", "label": "a"}, {"kind": "topic", "label": "b"}, {"kind": "topic", "label": "c"}]}'`);
    put('scan.pdf', `processing_state = 'failed', due_at = null, error_message = 'the file has no text layer'`);
    await ada.go('/dumps');
    const early = page.getByRole('article', { name: 'paper.pdf (2.3 MB)' });
    await early.getByText('3 themes so far').waitFor();
    await early.getByText('Extracting relationships, 60 %').waitFor();
    const failed = page.getByRole('article', { name: 'scan.pdf (2.3 MB)' });
    await failed.getByText('the file has no text layer').waitFor();
    await ada.picture('dumps-states-light');
    await failed.getByRole('button', { name: 'Retry' }).click();
    await until('it to wait again or to be worked', () => server.sql(`select processing_state <> 'failed' or attempts > 0 from agent_processing_queue where dump_id = md5('scan.pdf')::uuid`) === 't');
});

test('a workspace is closed to others until they are invited', async () => {
    const bob = server.addPerson('bob@example.com');
    const [first, second] = [await visit(), await visit()];
    await second.signIn(bob, '/dumps');
    await second.page.getByText('No workspace yet.').waitFor();
    await first.signIn(undefined, '/dumps');
    await first.page.getByRole('button', { name: 'Members' }).click();
    const dialog = first.page.getByRole('dialog', { name: 'Members of Research' });
    await dialog.getByLabel('Invite by e-mail').fill('bob@example.com');
    await dialog.getByRole('button', { name: 'Invite', exact: true }).click();
    const link = (await dialog.locator('code').textContent())!;
    assert.deepEqual(await first.barriers(), []);
    await second.page.goto(link);
    await second.page.getByText('You belong to this workspace now.').waitFor();
    await second.page.getByRole('article', { name: /^trial\.md/ }).waitFor();
    await second.page.getByRole('button', { name: 'Members' }).click();
    await second.page.getByRole('dialog').getByText('Only owners of the workspace invite.', { exact: false }).waitFor();
    assert.equal(server.sql(`select m.role from workspace_members m join auth.users u on u.id = m.user_id where u.email = 'bob@example.com'`), 'member');
});
