// What the host page promises, in a real browser.
import assert from 'node:assert/strict';
import { statSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import {
    App, Host, Model, add, anonKey, asked, closeBrowser, config, frame, heard, hears, isAsking, open, pause, picture, press, state, until,
} from './support.ts';

const opened: (() => unknown)[] = [];
const keep = <T extends { close?: () => unknown; remove?: () => unknown }>(one: T): T => {
    opened.push(() => one.remove ? one.remove() : one.close?.());
    return one;
};
afterEach(async () => { for (const close of opened.splice(0).reverse()) await close(); });
after(closeBrowser);

const served = (host: Host) => host.events.filter(event => event.serve).map(event => `${event.serve} ${event.url}`);

/** A request from within the app, as its own program would make it. */
async function ask(page: any, app: App, url: string, token: string, body: unknown): Promise<{ status: number; text: string } | string> {
    return await (await frame(page, app.url)).evaluate(async (url: string, token: string, body: unknown) => {
        try {
            const headers: Record<string, string> = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-stainless-lang': 'js' };
            const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
            return { status: answer.status, text: await answer.text() };
        } catch (error) {
            return String(error);
        }
    }, url, token, body);
}

test('an app is shown with what it asks for, and nothing is served before the yes', async () => {
    const host = keep(await Host.start());
    const crm = keep(await App.start());
    const page = keep(await open(host));
    const trouble: string[] = [];
    page.on('console', message => { if (message.type() === 'error') trouble.push(message.text()); });
    page.on('pageerror', error => trouble.push(String(error)));
    await picture(page, 'empty-light');
    await add(page, 'Atomic CRM', crm.url);
    await asked(page);
    const shown = await page.$eval('#ask', node => (node as HTMLElement).innerText);
    for (const part of ['Atomic CRM', 'atomic-crm', crm.url, 'https://project.supabase.co', 'activities', 'processing_status=eq.raw']) {
        assert.ok(shown.includes(part), `${part} is not in: ${shown}`);
    }
    assert.ok(!(await page.content()).includes(anonKey), 'the key is never shown whole');
    await picture(page, 'ask-light');

    // Whoever types away when the question appears agrees to nothing.
    await page.keyboard.press('Enter');
    await page.keyboard.press('Space');
    await pause(300);
    assert.deepEqual([host.events, await isAsking(page), await heard(page, crm)], [[], true, []]);

    // With the keyboard: past "Don't allow" to "Allow".
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    const granted = await hears(page, crm, 'granted', payload => payload.granted);
    assert.deepEqual(served(host), ['Atomic CRM https://project.supabase.co']);
    assert.equal(granted.state, 'serving');
    assert.match(granted.ai.token, /^gleaner_app_/);
    assert.equal(granted.ai.baseUrl, `${host.url}/v1`);
    assert.equal((await heard(page, crm))[0].origin, host.url);
    await until('the page shows it', async () => await state(page, 'Atomic CRM') === 'serving');
    await picture(page, 'serving-light');

    const file = join(host.home, 'host.json');
    assert.equal(statSync(file).mode & 0o777, 0o600, 'only its owner reads what was agreed to');
    assert.ok(!readFileSync(file, 'utf8').includes(granted.ai.token), 'the token is kept as a hash');
    assert.deepEqual(trouble, []);
});

test('a no serves nothing, and the same question is not asked over and over', async () => {
    const host = keep(await Host.start());
    const crm = keep(await App.start());
    const page = keep(await open(host));
    await add(page, 'crm', crm.url);
    await asked(page);
    await press(page, 'no');
    await hears(page, crm, 'declined', payload => payload.reason === 'declined');
    const inside = await frame(page, crm.url);
    await inside.evaluate((message: unknown) => { for (let n = 0; n < 20; n++) parent.postMessage(message, '*'); }, config());
    await page.waitForSelector('#review:not([hidden])');
    await pause(200);
    assert.deepEqual([host.events, await isAsking(page)], [[], false]);
    // The person can still come back to it.
    await press(page, 'review');
    await press(page, 'yes');
    await hears(page, crm, 'granted', payload => payload.granted);
    assert.equal(served(host).length, 1);
});

test('messages of other origins, and of other windows of the right origin, are ignored', async () => {
    const host = keep(await Host.start());
    const [crm, evil] = [keep(await App.start(null)), keep(await App.start(null))];
    const page = keep(await open(host));
    crm.inner = `${evil.url}/evil`;
    await add(page, 'crm', crm.url);
    const send = (message: unknown) => { top!.postMessage(message, '*'); };
    // Another origin, in a frame of the app's.
    await (await frame(page, `${evil.url}/evil`)).evaluate(send, config({ appName: 'evil' }));
    // The app's own origin, but not its frame.
    crm.inner = `${crm.url}/inner`;
    await (await frame(page, `${evil.url}/evil`)).evaluate(() => { location.href = 'about:blank'; });
    await press(page, 'reload');
    await (await frame(page, `${crm.url}/inner`)).evaluate(send, config({ appName: 'inner' }));
    // The right frame, while it shows another app.
    const notes = keep(await App.start(null));
    await add(page, 'notes', notes.url);
    await page.click('[data-app="crm"]');
    notes.sends = config({ appName: 'strayed' });
    await (await frame(page, crm.url)).evaluate((url: string) => { location.href = url; }, `${notes.url}/strayed`);
    await frame(page, `${notes.url}/strayed`);
    await pause(300);
    assert.equal(await isAsking(page), false);
    notes.sends = null;
    crm.inner = '';
    await press(page, 'reload');
    // A window that somebody else opened.
    await page.evaluate((url: string) => { window.open(url); }, evil.url);
    const popup = await page.browser().waitForTarget(target => target.url().startsWith(evil.url) && target.type() === 'page');
    await (await popup.page())!.evaluate((message: unknown) => { window.opener.postMessage(message, '*'); }, config({ appName: 'popup' }));
    await page.bringToFront();
    await pause(300);
    assert.equal(await isAsking(page), false);
    // Messages come in order: when the right one is asked, the others were passed over.
    await (await frame(page, crm.url)).evaluate(send, config({ appName: 'right-one' }));
    await asked(page);
    const shown = await page.$eval('#ask', node => (node as HTMLElement).innerText);
    assert.ok(shown.includes('right-one') && !/evil|inner|strayed|popup/.test(shown), shown);
    assert.deepEqual(host.events, []);
    // Whoever the frame shows by the time of the yes, the answer is for the app alone.
    await (await frame(page, crm.url)).evaluate((url: string) => { location.href = url; }, `${notes.url}/later`);
    const later = await frame(page, `${notes.url}/later`);
    await press(page, 'yes');
    await until('it is served', () => served(host).length === 1);
    await page.waitForSelector('#ask:not([open])');
    await pause(200);
    assert.deepEqual(await later.evaluate(() => (window as any).heard), []);
});

test('what does not fit is not asked, and the app is told why', async () => {
    const host = keep(await Host.start());
    const crm = keep(await App.start(config({ anonKey: 'sb_secret_abc' })));
    const page = keep(await open(host));
    await add(page, 'crm', crm.url);
    const told = await hears(page, crm, 'invalid', payload => payload.reason === 'invalid');
    assert.match(told.problem, /anonKey.*secret/);
    const inside = await frame(page, crm.url);
    for (const wrong of [config({ more: 1 }), config({ url: 'http://elsewhere.example' }), config({ tables: ['a b'] }), { type: 'SUPABASE_CONFIG' }]) {
        const before = (await heard(page, crm)).length;
        await inside.evaluate((message: unknown) => parent.postMessage(message, '*'), wrong);
        await until('an answer', async () => (await heard(page, crm)).length > before);
    }
    assert.ok((await heard(page, crm)).every(one => one.data.payload.reason === 'invalid'));
    assert.deepEqual([host.events, await isAsking(page)], [[], false]);
});

test('several apps are served at once, each with a token that nobody else can use', async () => {
    const model = keep(await Model.start());
    const host = keep(await Host.start([`chat=${model.url}/v1`, `transcription=${model.url}/v1`]));
    const [crm, notes] = [keep(await App.start()), keep(await App.start(config({ appName: 'notes', url: 'https://notes.supabase.co' })))];
    const page = keep(await open(host, true));
    await add(page, 'crm', crm.url);
    await asked(page);
    await picture(page, 'ask-dark');
    await press(page, 'yes');
    await hears(page, crm, 'granted', payload => payload.granted);
    await add(page, 'notes', notes.url);
    await asked(page);
    await press(page, 'yes');
    const { ai } = await hears(page, notes, 'granted', payload => payload.granted);
    // Loaded anew with the page, the first is known, and got another token without a question.
    const first = (await hears(page, crm, 'granted', payload => payload.granted)).ai;
    assert.deepEqual(served(host), ['crm https://project.supabase.co', 'notes https://notes.supabase.co']);
    assert.notEqual(first.token, ai.token);
    assert.deepEqual(ai.models, ['local-chat', 'local-transcription']);

    const chat = { model: 'local-chat', messages: [{ role: 'user', content: 'hello' }] };
    const url = `${ai.baseUrl}/chat/completions`;
    const answer = await ask(page, crm, url, first.token, chat) as { status: number; text: string };
    assert.equal(answer.status, 200, JSON.stringify(answer));
    assert.equal(JSON.parse(answer.text).choices[0].message.content, 'good day');
    assert.equal(model.requests[0].authorization, 'Bearer the-agents-own-key', 'the model sees our key, and the app never does');
    assert.equal(JSON.parse(model.requests[0].body).model, 'real-name');
    const streamed = await ask(page, notes, url, ai.token, { ...chat, stream: true }) as { status: number; text: string };
    assert.match(streamed.text, /good.*day.*DONE/s);
    const spoken = await (await frame(page, crm.url)).evaluate(async (base: string, token: string) => {
        const form = new FormData();
        form.set('model', 'local-transcription');
        form.set('file', new Blob(['RIFF'], { type: 'audio/wav' }), 'call.wav');
        const answer = await fetch(`${base}/audio/transcriptions`, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: form });
        return await answer.json();
    }, ai.baseUrl, first.token);
    assert.deepEqual(spoken, { text: 'hello' });
    assert.match(model.requests[2].body, /real-name[^]*call\.wav[^]*RIFF/);

    // Another app's token is of no use, and another origin does not even get to read the refusal.
    const before = model.requests.length;
    const stolen = await ask(page, notes, url, first.token, chat) as { status: number; text: string };
    assert.equal(stolen.status, 403);
    const stranger = keep(await App.start(null));
    const elsewhere = keep(await page.browser().newPage());
    await elsewhere.goto(stranger.url);
    const refused = await elsewhere.evaluate(async (url: string, token: string) => {
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
        return fetch(url, { method: 'POST', headers, body: '{}' }).then(answer => answer.status, error => String(error));
    }, url, first.token);
    assert.equal(refused, 'TypeError: Failed to fetch');
    assert.equal(model.requests.length, before, 'no model was asked');

    await page.bringToFront();
    await until('what it has used', async () => /1 request, 0 failed, 7 tokens/.test(await page.$eval('#app-usage', node => node.textContent ?? '')));
    await picture(page, 'two-dark');
});

test('revoking ends the work and the token, and the app has to ask again', async () => {
    const model = keep(await Model.start());
    const host = keep(await Host.start([`chat=${model.url}/v1`]));
    const crm = keep(await App.start());
    const page = keep(await open(host));
    await add(page, 'crm', crm.url);
    await asked(page);
    await press(page, 'yes');
    const { ai } = await hears(page, crm, 'granted', payload => payload.granted);
    await page.waitForSelector('#stop:not([hidden])');
    await press(page, 'stop');
    await until('it is stopped', async () => await state(page, 'crm') === 'stopped');
    assert.deepEqual(host.events.at(-1), { stop: 'crm' });
    await press(page, 'start');
    await until('it is served again', () => served(host).length === 2);

    await press(page, 'revoke');
    await page.waitForSelector('#sure[open]');
    await picture(page, 'revoke-light');
    await press(page, 'sure-yes');
    await hears(page, crm, 'revoked', payload => payload.reason === 'revoked');
    assert.deepEqual(host.events.at(-1), { stop: 'crm' });
    await until('the page shows it', async () => await state(page, 'crm') === 'new');
    const headers = { authorization: `Bearer ${ai.token}`, origin: crm.url };
    assert.equal((await fetch(`${ai.baseUrl}/models`, { headers })).status, 401, 'the token has died with it');
    const inside = await ask(page, crm, `${ai.baseUrl}/chat/completions`, ai.token, {});
    assert.equal(inside, 'TypeError: Failed to fetch', 'and its origin is nobody here');

    await press(page, 'reload');
    await asked(page);
    assert.equal(served(host).length, 2, 'not before another yes');
});

test('an app that asks for another project, key or table asks again, and until then nothing changes', async () => {
    const host = keep(await Host.start());
    const crm = keep(await App.start());
    const page = keep(await open(host));
    await add(page, 'crm', crm.url);
    await asked(page);
    await press(page, 'yes');
    await hears(page, crm, 'granted', payload => payload.granted);
    await page.waitForSelector('#ask:not([open])');
    const others: [string, object][] = [
        ['Project', { url: 'https://other.supabase.co' }],
        ['Anon key', { url: 'https://other.supabase.co', anonKey: `${anonKey}2` }],
        ['Tables', { url: 'https://other.supabase.co', anonKey: `${anonKey}2`, tables: ['activities', 'deals'] }],
    ];
    for (const [n, [label, change]] of others.entries()) {
        crm.sends = config(change);
        await press(page, 'reload');
        await asked(page);
        const marked = await page.$$eval('dd.changed', nodes => nodes.map(node => node.previousElementSibling?.textContent));
        assert.deepEqual(marked, [label]);
        if (n === 0) await picture(page, 'changed-light');
        assert.equal(served(host).length, n + 1, 'the old one goes on, the new one waits');
        await press(page, 'yes');
        await until('the new one is served', () => served(host).length === n + 2);
        await page.waitForSelector('#ask:not([open])');
    }
    assert.deepEqual(host.events.at(-1), { serve: 'crm', url: 'https://other.supabase.co', tables: ['activities', 'deals'] });
});

test('what was agreed to is served after a restart without a question, and trouble is told', async () => {
    let host = await Host.start();
    const crm = keep(await App.start(config({ url: 'https://away.supabase.co' })));
    let page = await open(host);
    await add(page, 'crm', crm.url);
    await asked(page);
    await press(page, 'yes');
    const told = await hears(page, crm, 'trouble', payload => payload.granted);
    assert.deepEqual([told.state, told.problem], ['failed', 'https://away.supabase.co does not answer']);
    await until('the page tells it', async () => await page.$eval('#app-problem', node => !(node as HTMLElement).hidden));
    await picture(page, 'failed-light');
    await page.close();
    await host.stop();

    host = keep(await Host.start([], host.home));
    assert.deepEqual(served(host), ['crm https://away.supabase.co']);
    page = keep(await open(host));
    await hears(page, crm, 'granted', payload => payload.granted);
    assert.equal(await isAsking(page), false);
});

test('the page holds nothing from elsewhere and only frames of its apps, and cannot be framed itself', async () => {
    const host = keep(await Host.start());
    const [crm, other] = [keep(await App.start(null)), keep(await App.start(null))];
    const page = keep(await open(host));
    const asked: string[] = [];
    page.on('request', request => asked.push(request.url()));
    await add(page, 'crm', crm.url);
    const answer = await page.reload();
    const policy = answer?.headers()['content-security-policy'] ?? '';
    assert.match(policy, new RegExp(`default-src 'none'.*frame-src ${crm.url};.*frame-ancestors 'none'`));
    assert.ok(asked.every(url => url.startsWith(host.url) || url.startsWith(crm.url) || url.startsWith('data:')), asked.join(' '));
    const sandbox = await page.$eval('iframe', node => node.getAttribute('sandbox'));
    assert.ok(sandbox?.includes('allow-scripts') && !sandbox.includes('top-navigation'), String(sandbox));
    // An app cannot lead its frame, or the page, elsewhere.
    const inside = await frame(page, crm.url);
    await inside.evaluate((url: string) => { try { top!.location.href = url; } catch { /* refused */ } }, other.url);
    await pause(200);
    assert.ok(page.url().startsWith(host.url));
    // Nor can anybody put the page into a frame and have a person click on it unknowingly.
    const outside = keep(await page.browser().newPage());
    other.inner = `${host.url}/host`;
    await outside.goto(other.url);
    await pause(300);
    const framed = outside.frames().find(one => one !== outside.mainFrame());
    const text = await framed?.evaluate(() => document.body?.innerText ?? '').catch(() => '');
    assert.ok(!text?.includes('Apps'), text);
});
