// What an open page knows: others' changes, a server that restarts, and content that wants to be code.
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
before(async () => { server = await Server.start(); });
afterEach(async () => { for (const visitor of visitors.splice(0)) await visitor.close(); });
after(async () => { await closeBrowser(); await server.remove(); });

test('two browsers see each other’s changes', async () => {
    const bob = server.addPerson('bob@example.com');
    const [first, second] = [await visit(), await visit()];
    await first.signIn();
    await second.signIn(bob);
    await first.go('/activity');
    await second.go('/activity');
    await first.page.getByRole('button', { name: 'Add note, task or meeting' }).click();
    await first.page.getByLabel('Text', { exact: true }).fill('Seen by both.');
    await first.page.getByRole('button', { name: 'Add note', exact: true }).click();
    await second.page.getByRole('article').filter({ hasText: 'Seen by both.' }).waitFor();
    assert.deepEqual([...first.trouble, ...second.trouble], []);
});

test('an open page says that the server is away, and recovers by itself', async () => {
    const ada = await visit();
    await ada.signIn();
    await ada.go('/activity');
    await server.stop();
    await ada.page.getByRole('status', { name: 'Connection' }).getByText('Reconnecting, as of').waitFor();
    await server.restart();
    // Written while the page knew nothing.
    server.sql(`insert into activities (type, raw_data) values ('note', '{"source_type": "text", "content": "Written meanwhile."}')`);
    await ada.isLive();
    await ada.page.getByRole('article').filter({ hasText: 'Written meanwhile.' }).waitFor();
    server.sql(`insert into activities (type, raw_data) values ('note', '{"source_type": "text", "content": "Written afterwards."}')`);
    await ada.page.getByRole('article').filter({ hasText: 'Written afterwards.' }).waitFor();
});

test('a reader who is not at the top is told how many are new, and nothing moves', async () => {
    server.sql(`insert into activities (type, raw_data) select 'note', jsonb_build_object('source_type', 'text', 'content', 'Filler ' || n) from generate_series(1, 120) n`);
    const ada = await visit();
    await ada.signIn();
    await ada.go('/activity');
    const { page } = ada;
    assert.equal(await page.getByRole('article').count(), 50);
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await until('older ones', async () => await page.getByRole('article').count() > 50);
    server.sql(`insert into activities (type, raw_data) values ('note', '{"source_type": "text", "content": "A new one."}')`);
    await page.getByRole('button', { name: '1 new' }).click();
    await page.getByRole('article').filter({ hasText: 'A new one.' }).waitFor();
    assert.deepEqual(ada.trouble, []);
});

test('stored script in every field does nothing', async () => {
    const script = `<script>window.hit=1</script><img src=x onerror="window.hit=1">javascript:alert(1)`;
    const value = script.replaceAll("'", "''");
    const json = JSON.stringify({ source_type: 'text', content: script, subject: script, sender: script }).replaceAll("'", "''");
    server.sql(`insert into contacts (first_name, last_name, title, email, tags) values ('${value}', '${value}', '${value}', 'x@example.com', array['${value}']);
        insert into activities (type, contact_id, raw_data, processed_data, metadata, processing_status) select 'email', id, '${json}',
            jsonb_build_object('summary', '${value}'::text, 'facts', jsonb_build_array('${value}'::text), 'transcript', '${value}'::text), jsonb_build_object('error', jsonb_build_object('message', '${value}'::text)), 'completed' from contacts where title is not null`);
    const id = server.sql(`select id from activities where processed_data ->> 'summary' like '<script>%'`);
    const contact = server.sql('select id from contacts where title is not null');
    const ada = await visit();
    await ada.signIn();
    for (const path of ['/activity', `/activity/${id}`, '/contacts', `/contacts/${contact}`, '/unmatched']) {
        await ada.go(path);
        await until(`the text on ${path}`, async () => path === '/unmatched' || (await ada.page.content()).includes('window.hit=1'));
        assert.equal(await ada.page.evaluate(() => (window as any).hit), undefined, path);
    }
    assert.deepEqual(ada.trouble, []);
});
