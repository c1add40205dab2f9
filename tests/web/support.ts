// The product as a process of its own with a home of its own, and real browsers that look at it.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';

function required(name: string): string {
    const value = process.env[name];
    if (!value) throw new Error(`${name} is not set; scripts/web-test sets it`);
    return value;
}

/** Waits until `test` is true, and says what it waited for when it never is. */
export async function until<T>(what: string, test: () => T | Promise<T>, seconds = 20): Promise<NonNullable<T>> {
    for (const end = Date.now() + seconds * 1000; Date.now() < end;) {
        const result = await Promise.resolve().then(test).catch(() => undefined);
        if (result) return result as NonNullable<T>;
        await new Promise(resolve => setTimeout(resolve, 25));
    }
    throw new Error(`waited in vain: ${what}`);
}

export class Server {
    url = '';
    database = '';
    serviceKey = '';
    anonKey = '';
    admin = { email: '', password: '' };
    readonly home: string;
    private readonly folder: string;
    private readonly options: string[];
    private readonly variables: Record<string, string>;
    private child: ChildProcess | undefined;

    private constructor(options: string[], variables: Record<string, string>) {
        this.options = options;
        this.variables = variables;
        // Short, since the path of a socket may have a hundred bytes; for root, PostgreSQL runs as another account.
        this.folder = mkdtempSync(join(tmpdir(), 'gleaner-web-'));
        chmodSync(this.folder, 0o711);
        this.home = join(this.folder, 'home');
    }

    static async start(options: string[] = ['--no-agent'], variables: Record<string, string> = {}): Promise<Server> {
        const server = new Server(options, variables);
        await server.run(['--listen', '127.0.0.1:0']);
        return server;
    }

    /** The same home again: it keeps its port, its keys and its data. */
    async restart(): Promise<void> { await this.run([]); }

    private async run(more: string[]): Promise<void> {
        const child = spawn(required('GLEANER'), ['up', '--json', ...this.options, ...more], { env: this.environment(), stdio: ['ignore', 'pipe', 'pipe'] });
        this.child = child;
        let said = '';
        let complained = '';
        child.stdout!.setEncoding('utf8').on('data', text => { said += text; });
        child.stderr!.setEncoding('utf8').on('data', text => { complained += text; });
        const told = await until('the server to start', () => {
            return JSON.parse(said);
        }, 120).catch(async error => { await this.stop(); throw new Error(`${error.message}: ${said} ${complained}`); });
        this.url = told.API_URL;
        this.database = told.DB_URL;
        if (told.administrator) this.admin = told.administrator;
        const keys = this.gleaner(['status', '-o', 'env']);
        this.serviceKey = /SERVICE_ROLE_KEY="?([^"\n]+)/.exec(keys)![1]!;
        this.anonKey = /ANON_KEY="?([^"\n]+)/.exec(keys)![1]!;
    }

    private environment(): NodeJS.ProcessEnv {
        const { DATABASE_URL, GLEANER_LISTEN, PUBLIC_BASE_URL, JWT_SECRET, ...inherited } = process.env;
        return { ...inherited, GLEANER_HOME: this.home, ...this.variables };
    }

    /** Ends the program; its home stays. */
    async stop(): Promise<void> {
        const child = this.child;
        if (!child || child.exitCode !== null) return;
        const exited = once(child, 'exit');
        child.kill('SIGTERM');
        await exited;
    }

    async remove(): Promise<void> {
        await this.stop();
        rmSync(this.folder, { recursive: true, force: true });
    }

    gleaner(args: string[], input = ''): string {
        return execFileSync(required('GLEANER'), args, { input, encoding: 'utf8', stdio: 'pipe', env: this.environment() });
    }

    sql(statements: string): string {
        return execFileSync('psql', [this.database, '-qXAtv', 'ON_ERROR_STOP=1', '-c', statements], { encoding: 'utf8', stdio: 'pipe' }).trim();
    }

    /** A member of the team with a password. */
    addPerson(email: string, administrator = false): { email: string; password: string } {
        const password = randomUUID();
        this.gleaner(['users', 'add', email, '--password-stdin', ...(administrator ? ['--admin'] : [])], password);
        return { email, password };
    }
}

let browser: Browser | undefined;

async function launch(): Promise<Browser> {
    // Its own sandbox cannot be had as root, nor in most containers; what is under test here is the page.
    const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
        '--disable-component-update', '--disable-sync', '--hide-scrollbars'];
    return browser ??= await chromium.launch({ executablePath: required('CHROMIUM'), args });
}

export const closeBrowser = async () => { await browser?.close(); browser = undefined; };

export type View = 'light' | 'dark' | 'phone';

/** A browser of its own, with nothing remembered. Everything the page complains about is kept. */
export async function open(server: Server, view: View = 'light'): Promise<Visitor> {
    const context = await (await launch()).newContext({
        viewport: view === 'phone' ? { width: 390, height: 780 } : { width: 1280, height: 820 },
        colorScheme: view === 'dark' ? 'dark' : 'light', timezoneId: 'Europe/Berlin', locale: 'en-GB', reducedMotion: 'reduce',
        permissions: ['clipboard-read', 'clipboard-write'],
    });
    return new Visitor(server, context, await context.newPage());
}

export class Visitor {
    readonly trouble: string[] = [];
    readonly server: Server;
    readonly context: BrowserContext;
    readonly page: Page;

    constructor(server: Server, context: BrowserContext, page: Page) {
        this.server = server;
        this.context = context;
        this.page = page;
        page.setDefaultTimeout(15_000);
        page.on('console', message => { if (message.type() === 'error' || message.type() === 'warning') this.trouble.push(`${message.text()} ${message.location().url}`); });
        page.on('pageerror', error => this.trouble.push(String(error)));
        page.on('dialog', dialog => { this.trouble.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
    }

    async signIn(person: { email: string; password: string } = this.server.admin, to = '/'): Promise<void> {
        await this.page.goto(this.server.url + to);
        await this.page.getByLabel('E-mail').fill(person.email);
        await this.page.getByLabel('Password').fill(person.password);
        await this.page.getByRole('button', { name: 'Sign in' }).click();
        await this.isLive();
    }

    async isLive(): Promise<void> {
        await this.page.getByRole('status', { name: 'Connection' }).getByText('Live', { exact: true }).waitFor();
    }

    async go(path: string): Promise<void> {
        await this.page.goto(this.server.url + path);
        await this.isLive();
        await this.settled();
    }

    /** Nothing is being loaded any more. */
    async settled(): Promise<void> {
        await until('the page to settle', async () => await this.page.locator('main h1').count() > 0 && await this.page.locator('[aria-busy=true]').count() === 0);
    }

    /** A picture for a person to look at. */
    async picture(name: string, { fullPage = true } = {}): Promise<void> {
        const folder = required('WEB_PICTURES');
        mkdirSync(folder, { recursive: true });
        await this.page.screenshot({ path: join(folder, `${name}.png`), fullPage });
    }

    /** Serious problems that axe finds. Script tags are blocked by the page's policy, so it is evaluated. */
    async barriers(): Promise<string[]> {
        await this.page.evaluate(axe);
        const found = await this.page.evaluate(async () => {
            const result = await (window as any).axe.run(document, { resultTypes: ['violations'] });
            return result.violations.map((one: any) => ({ impact: one.impact, id: one.id, nodes: one.nodes.map((node: any) => `${node.target.join(' ')} ${node.failureSummary}`) }));
        });
        return found.filter((one: any) => one.impact === 'serious' || one.impact === 'critical').map((one: any) => `${one.id}: ${one.nodes.slice(0, 3).join(' | ')}`);
    }

    /** How far the content reaches beyond the right edge. */
    async overflow(): Promise<number> {
        return await this.page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - innerWidth));
    }

    async close(): Promise<void> { await this.context.close(); }
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A webhook as Twilio signs it: HMAC-SHA1 over the URL and the sorted fields. */
export async function twilio(url: string, token: string, fields: Record<string, string>): Promise<Response> {
    const signed = url + Object.keys(fields).sort().map(name => name + fields[name]).join('');
    const signature = createHmac('sha1', token).update(signed).digest('base64');
    return await fetch(url, { method: 'POST', body: new URLSearchParams(fields), headers: { 'x-twilio-signature': signature } });
}
