// What a page may do: in a frame, only for configured parents; as a member, not what only administrators may.
import assert from 'node:assert/strict';
import { createServer, type Server as Http } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { Server, closeBrowser, open } from './support.ts';

/** A page of another origin that shows ours in a frame, and keeps what it is sent. */
async function parent(): Promise<{ http: Http; origin: string; shows: (url: string) => void }> {
    let shown = '';
    const http = createServer((_, response) => response.setHeader('content-type', 'text/html').end(
        `<!doctype html><script>window.heard = []; addEventListener('message', event => window.heard.push({ origin: event.origin, data: event.data }))</script><iframe src="${shown}"></iframe>`));
    await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve));
    return { http, origin: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, shows: url => { shown = url; } };
}

let server: Server;
let known: Awaited<ReturnType<typeof parent>>;
let stranger: typeof known;
before(async () => {
    [known, stranger] = [await parent(), await parent()];
    server = await Server.start(['--no-agent'], { GLEANER_FRAME_ORIGINS: known.origin });
});
after(async () => { await closeBrowser(); await server.remove(); known.http.close(); stranger.http.close(); });

test('in a frame it tells a configured parent where the project is, and no other page may show it', async () => {
    const ada = await open(server);
    known.shows(`${server.url}/sign-in`);
    await ada.page.goto(known.origin);
    await ada.page.waitForFunction(() => (window as any).heard.length > 0);
    assert.deepEqual(await ada.page.evaluate(() => (window as any).heard[0]), { origin: server.url, data: { type: 'SUPABASE_CONFIG', payload: {
        appName: 'gleaner', url: server.url, anonKey: server.anonKey, tables: ['activities'], filters: { activities: 'processing_status=eq.raw' },
    } } });
    assert.deepEqual(ada.trouble, []);
    stranger.shows(`${server.url}/sign-in`);
    await ada.page.goto(stranger.origin);
    await ada.page.waitForEvent('console', { predicate: message => /frame-ancestors/.test(message.text()), timeout: 5_000 }).catch(() => {});
    assert.ok(ada.trouble.some(text => /frame-ancestors/.test(text)), ada.trouble.join());
    assert.deepEqual(await ada.page.evaluate(() => (window as any).heard), []);
    await ada.close();
});

test('a member cannot do what only an administrator may, also not by calling the API', async () => {
    const bob = server.addPerson('bob@example.com');
    const answer = await fetch(`${server.url}/auth/v1/token?grant_type=password`, { method: 'POST', headers: { apikey: server.anonKey, 'content-type': 'application/json' }, body: JSON.stringify(bob) });
    const { access_token } = await answer.json() as { access_token: string };
    const status = async (method: string, path: string, body?: object) =>
        (await fetch(server.url + path, { method, headers: { apikey: server.anonKey, authorization: `Bearer ${access_token}`, 'content-type': 'application/json' }, body: body && JSON.stringify(body) })).status;
    const refused: [string, string, object?][] = [
        ['POST', '/v1/queues/jobs/pause', {}], ['POST', '/v1/queues/jobs/resume', {}], ['GET', '/v1/people'], ['POST', '/v1/people/invite', { email: 'eve@example.com' }],
        ['POST', '/v1/people/administrator', { email: 'bob@example.com', administrator: true }], ['GET', '/v1/keys'], ['POST', '/v1/keys', { name: 'mine', role: 'worker' }],
        ['POST', '/v1/channels', { name: 'mine', provider: 'generic', settings: { scheme: 'none' } }], ['GET', '/metrics'],
    ];
    for (const [method, path, body] of refused) assert.equal(await status(method, path, body), 403, `${method} ${path}`);
    await status('PATCH', '/rest/v1/sales?email=eq.bob@example.com', { administrator: true });
    assert.equal(server.sql(`select administrator from sales where email = 'bob@example.com'`), 'f');
    assert.equal(server.sql('select count(*) from gleaner.pause'), '0');

    const page = await open(server);
    await page.signIn(bob, '/settings/keys');
    await page.page.getByText('Only administrators can change this.').waitFor();
    await page.go('/queues/jobs');
    assert.equal(await page.page.getByRole('button', { name: 'Pause queue' }).isDisabled().catch(() => true), true);
    await page.close();
});
