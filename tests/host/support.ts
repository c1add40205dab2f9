// The host page as a process of its own, apps and a model behind real sockets, and a real browser.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import puppeteer, { type Browser, type Frame, type Page } from 'puppeteer-core';

function required(name: string): string {
    const value = process.env[name];
    if (!value) throw new Error(`${name} is not set; scripts/host-test sets it`);
    return value;
}

export const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms));

/** Waits until `test` is true, and says what it waited for when it never is. */
export async function until(what: string, test: () => unknown): Promise<void> {
    for (let tries = 0; tries < 400; tries++) {
        try {
            if (await test()) return;
        } catch { /* not yet */ }
        await pause(25);
    }
    throw new Error(`waited in vain: ${what}`);
}

export type Event = { serve?: string; stop?: string; url?: string; tables?: string[] };

export class Host {
    url = '';
    readonly events: Event[] = [];
    readonly home: string;
    private child;

    private constructor(home: string, models: string[]) {
        this.home = home;
        this.child = spawn(required('HOST_PROGRAM'), [home, ...models], { stdio: ['pipe', 'pipe', 'inherit'] });
    }

    static async start(models: string[] = [], home = mkdtempSync(join(tmpdir(), 'gleaner-host-'))): Promise<Host> {
        const host = new Host(home, models);
        const lines = createInterface({ input: host.child.stdout });
        lines.on('line', line => line.startsWith('URL=') ? host.url = line.slice(4) : host.events.push(JSON.parse(line)));
        await until('the host to listen', () => host.url);
        return host;
    }

    /** Ends the program; its home stays. */
    async stop(): Promise<void> {
        if (this.child.exitCode !== null) return;
        const exited = once(this.child, 'exit');
        this.child.stdin.end();
        await exited;
    }

    async remove(): Promise<void> {
        await this.stop();
        rmSync(this.home, { recursive: true });
    }
}

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

async function listen(answer: Answer): Promise<{ url: string; close: () => void }> {
    const server = createServer(async (request, response) => {
        let body = '';
        for await (const chunk of request.setEncoding('latin1')) body += chunk;
        answer(request, response, body);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const close = () => { server.closeAllConnections(); server.close(); };
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

export const anonKey = 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJyb2xlIjoiYW5vbiJ9.c2lnbmF0dXJlLW9mLXRoZS10ZXN0';

/** What a CRM sends (docs/how-to/host-apps.md). */
export function config(change: object = {}): { type: string; payload: Record<string, unknown> } {
    const filters = { activities: 'processing_status=eq.raw' };
    return {
        type: 'SUPABASE_CONFIG',
        payload: { appName: 'atomic-crm', url: 'https://project.supabase.co', anonKey, tables: ['activities'], filters, ...change },
    };
}

/** An app on an origin of its own. On mount it sends its configuration, as a CRM does; it keeps the messages it receives. */
export class App {
    sends: unknown = null;
    /** A frame inside the app. */
    inner = '';
    url = '';
    close = () => {};

    static async start(sends: unknown = config()): Promise<App> {
        const app = new App();
        app.sends = sends;
        Object.assign(app, await listen((_, response) => {
            response.setHeader('content-type', 'text/html; charset=utf-8');
            response.end(app.page());
        }));
        return app;
    }

    private page(): string {
        return `<!doctype html><title>An app</title><body style="font:16px sans-serif;padding:2rem"><h1>Contacts</h1><p>Ada Lovelace</p>
            <script>
                window.heard = [];
                addEventListener('message', event => heard.push({ origin: event.origin, data: event.data }));
                if (window.parent !== window && ${this.sends !== null}) window.parent.postMessage(${JSON.stringify(this.sends)}, '*');
            </script>${this.inner ? `<iframe src="${this.inner}"></iframe>` : ''}`;
    }
}

/** A model behind an OpenAI-compatible endpoint. */
export class Model {
    readonly requests: { path: string; authorization?: string; body: string }[] = [];
    url = '';
    close = () => {};

    static async start(): Promise<Model> {
        const model = new Model();
        Object.assign(model, await listen((request, response, body) => {
            model.requests.push({ path: request.url ?? '', authorization: request.headers.authorization, body });
            const usage = { prompt_tokens: 5, completion_tokens: 2 };
            if (body.includes('"stream":true')) {
                response.setHeader('content-type', 'text/event-stream');
                for (const word of ['good', ' day']) response.write(`data: ${JSON.stringify({ choices: [{ delta: { content: word } }] })}\n\n`);
                response.end(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`);
                return;
            }
            response.setHeader('content-type', 'application/json');
            const text = request.url?.includes('audio') ? { text: 'hello' } : { choices: [{ message: { content: 'good day' } }], usage };
            response.end(JSON.stringify(text));
        }));
        return model;
    }
}

let browser: Browser | undefined;

export async function open(host: Host, dark = false): Promise<Page> {
    // Its own sandbox cannot be had as root, nor in most containers; what is under test here is the page.
    const args = ['--no-sandbox', '--disable-dev-shm-usage', '--hide-scrollbars'];
    browser ??= await puppeteer.launch({ executablePath: required('CHROMIUM'), args, headless: true });
    const page = await browser.newPage();
    await page.setViewport({ width: 1100, height: 720 });
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }]);
    await page.goto(`${host.url}/host`);
    return page;
}

export const closeBrowser = async () => { await browser?.close(); browser = undefined; };

/** A picture for a person to look at. */
export async function picture(page: Page, name: string): Promise<void> {
    const folder = required('HOST_PICTURES');
    mkdirSync(folder, { recursive: true });
    await page.screenshot({ path: join(folder, `${name}.png`) as `${string}.png` });
}

/** Puts an app on the page the way a person does, with the keyboard alone. */
export async function add(page: Page, name: string, url: string): Promise<void> {
    await page.focus('#open-add');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#add[open]');
    await page.keyboard.type(name);
    await page.keyboard.press('Tab');
    await page.keyboard.type(url);
    await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
    await page.waitForSelector(`[data-app="${name}"]`);
}

/** The frame that shows `url`. */
export async function frame(page: Page, url: string): Promise<Frame> {
    let found: Frame | undefined;
    await until(`a frame of ${url}`, () => found = page.frames().find(frame => frame.url().startsWith(url)));
    return found as Frame;
}

/** What the app in the frame has heard from the page so far. */
export async function heard(page: Page, app: App): Promise<any[]> {
    return await (await frame(page, app.url)).evaluate(() => (window as any).heard);
}

/** The next thing the app hears of that kind. */
export async function hears(page: Page, app: App, what: string, test: (payload: any) => unknown): Promise<any> {
    let found: any;
    await until(`the app hears: ${what}`, async () => found = (await heard(page, app)).map(one => one.data.payload).find(test));
    return found;
}

export const asked = (page: Page) => page.waitForSelector('#ask[open]', { timeout: 10_000 });
export const isAsking = (page: Page) => page.$('#ask[open]').then(Boolean);

export async function press(page: Page, id: string): Promise<void> {
    await page.click(`#${id}`);
}

export const state = (page: Page, name: string) => page.$eval(`[data-app="${name}"]`, node => (node as HTMLElement).dataset.state);
