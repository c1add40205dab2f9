// Both releases of supabase-js, and clients for each kind of caller.
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
/** Only a server of our own tells it; without it nobody can be signed in without a password. */
export const secret = process.env.JWT_SECRET;

/** The types of the two releases differ in nothing we use. */
export type Client = newest.SupabaseClient;
type Create = typeof newest.createClient;

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
    const now = Math.floor(Date.now() / 1000);
    const token = sign({ role: 'authenticated', aud: 'authenticated', sub: user, session_id: randomUUID(), iat: now, exp: now + 3600, ...claims });
    return createClient(url, anonKey, { accessToken: async () => token });
}

export function sign(claims: object): string {
    if (!secret) throw new Error('JWT_SECRET is not set');
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const content = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`;
    return `${content}.${createHmac('sha256', secret).update(content).digest('base64url')}`;
}
