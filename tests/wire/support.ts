// Both releases of supabase-js, clients for each kind of caller, the product's command line, and ways to wait.
import { execFileSync } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import * as newest from '@supabase/supabase-js';
import * as oldest from 'supabase-js-2.58';

function required(name: string): string {
    const value = process.env[name];
    if (!value) throw new Error(`${name} is not set; scripts/wire-test sets it`);
    return value;
}

export const url = required('API_URL');
export const anonKey = required('ANON_KEY');
export const serviceKey = required('SERVICE_ROLE_KEY');
/** With it a test is anybody at any time, without a password. */
const secret = required('JWT_SECRET');

/** The types of the two releases differ in nothing we use. */
export type Client = newest.SupabaseClient;
export type Create = typeof newest.createClient;
export type Channel = newest.RealtimeChannel;

export const releases: { name: string; createClient: Create }[] = [
    { name: 'supabase-js 2.119', createClient: newest.createClient },
    { name: 'supabase-js 2.58', createClient: oldest.createClient as unknown as Create },
];

const quiet = { auth: { persistSession: false, autoRefreshToken: false } };

export function service(createClient: Create): Client {
    return createClient(url, serviceKey, quiet);
}

export function anonymous(createClient: Create): Client {
    return createClient(url, anonKey, quiet);
}

/** A client of somebody who signed in elsewhere and brought the token along. */
export function signedIn(createClient: Create, user: string, claims: object = {}): Client {
    const token = tokenOf(user, claims);
    return createClient(url, anonKey, { accessToken: async () => token });
}

export function tokenOf(user: string, claims: object = {}): string {
    const now = Math.floor(Date.now() / 1000);
    return sign({ role: 'authenticated', aud: 'authenticated', sub: user, session_id: randomUUID(), iat: now, exp: now + 3600, ...claims });
}

function sign(claims: object): string {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const content = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`;
    return `${content}.${createHmac('sha256', secret).update(content).digest('base64url')}`;
}

/** What a command of the product says, on the server under test. */
export function gleaner(args: string[], input = ''): string {
    return execFileSync(required('GLEANER'), args, { input, encoding: 'utf8', stdio: 'pipe' });
}

/** What only the owner of the database can do: psql, beside the server. */
export function sql(statements: string): void {
    execFileSync('psql', [required('DB_URL'), '-qXv', 'ON_ERROR_STOP=1', '-c', statements], { encoding: 'utf8', stdio: 'pipe' });
}

export type Person = { id: string; email: string; sales_id: number; password: string };

/** A member of the team, made as its administrator would. */
export function addPerson(): Person {
    const password = randomUUID();
    const made = gleaner(['users', 'add', `${randomUUID()}@example.com`, '--password-stdin', '--json'], password);
    return { ...JSON.parse(made), password };
}

export async function signIn(client: Client, { email, password }: Person): Promise<void> {
    const { error } = await client.auth.signInWithPassword({ email, password });
    if (error) throw error;
}

/** What arrives, in order, and a way to wait for more. */
export class Inbox<T> {
    readonly items: T[] = [];
    #wake = () => {};

    put = (item: T) => {
        this.items.push(item);
        this.#wake();
    };

    /** Takes the oldest out. */
    async next(): Promise<T> {
        while (this.items.length === 0) await within(new Promise<void>((resolve) => (this.#wake = resolve)), 'nothing arrived');
        return this.items.shift()!;
    }
}

/** A test that waits for ever says nothing. */
export async function within<T>(promise: Promise<T>, otherwise: string): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new Error(otherwise)), 15_000)));
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Asks again until there is an answer, and gives it. */
export async function until<T>(what: string, ask: () => PromiseLike<T | null | undefined | false>): Promise<T> {
    const end = Date.now() + 15_000;
    while (Date.now() < end) {
        const answer = await ask();
        if (answer) return answer;
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`waited in vain: ${what}`);
}

/** Resolves with SUBSCRIBED, and calls `then` before anything else can happen. */
export function subscribed(channel: Channel, then: () => void = () => {}): Promise<Channel> {
    const joined = new Promise<Channel>((resolve, reject) => {
        channel.subscribe((status, error) => {
            if (status === 'SUBSCRIBED') {
                then();
                resolve(channel);
            } else {
                reject(error ?? new Error(status));
            }
        });
    });
    return within(joined, 'no answer to a join');
}
