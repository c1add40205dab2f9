// `gleaner up --demo`: a fresh install is alive within a minute, and everything in it came the way real things come.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Server, closeBrowser, open, until } from './support.ts';

let server: Server;
const began = Date.now();
before(async () => { server = await Server.start(['--demo']); });
after(async () => { await closeBrowser(); await server.remove(); });

test('a demo shows signed messages of every kind within a minute', async () => {
    const ada = await open(server);
    await ada.signIn(undefined, '/activity');
    await ada.page.locator('article[data-state=done]').nth(9).waitFor();
    await until('every channel to be heard', () => server.sql('select count(distinct provider_id) from activities') === '7');
    await until('the documents to be read', () => server.sql(`select count(*) from agent_processing_queue where processing_state = 'completed'`) === '2');
    await until('a wrong signature to be refused', () => server.sql('select count(*) > 0 from gleaner.ingest_refusal') === 't');
    assert.ok(Date.now() - began < 60_000, `${Date.now() - began} ms`);
    await ada.go('/activity');
    await ada.picture('demo-activity', { fullPage: false });
    await ada.page.getByLabel('Search text or sender').fill('offer seat');
    await until('only what matches', async () => { const all = await ada.page.getByRole('article').allTextContents(); return all.length > 0 && all.every(text => /offer/i.test(text)); });
    for (const path of ['/dumps', '/followups', '/channels']) {
        await ada.go(path);
        await ada.picture(`demo${path.replace('/', '-')}`, { fullPage: false });
    }
    await ada.go('/overview');
    await ada.page.locator('figure canvas').first().waitFor();
    await ada.picture('demo-overview', { fullPage: false });
    assert.deepEqual(ada.trouble, []);
    await ada.close();
});
