// The native API of the server, as the signed-in person.
import { Failure, failure, sentence } from './failure';
import { key } from './settings';
import { supabase } from './supabase';

export async function token(): Promise<string> {
    const { data } = await supabase.auth.getSession();
    return data.session?.access_token ?? key;
}

export async function call<T = unknown>(method: string, path: string, body?: unknown): Promise<T> {
    let response: Response;
    try {
        const headers: Record<string, string> = { apikey: key, authorization: `Bearer ${await token()}` };
        const isFile = body instanceof Blob || body instanceof FormData;
        if (body !== undefined && !isFile) headers['content-type'] = 'application/json';
        response = await fetch(path, { method, headers, body: body === undefined ? undefined : isFile ? body : JSON.stringify(body), cache: 'no-store' });
    } catch (error) {
        throw failure(error);
    }
    const text = await response.text();
    let answer: any = null;
    try { answer = text ? JSON.parse(text) : null; } catch { /* not JSON: a proxy's page, say */ }
    if (response.ok) return answer as T;
    const message = answer?.message ?? answer?.error ?? `The server answered ${response.status}`;
    const mistakes = (answer?.mistakes ?? []).map((one: unknown) => typeof one === 'string' ? one : (one as { message?: string }).message ?? JSON.stringify(one));
    throw new Failure(sentence(String(message)), response.status, answer?.code ?? '', answer?.hint ?? '', mistakes, response.headers.get('x-request-id') ?? '');
}

export const get = <T = unknown>(path: string) => call<T>('GET', path);
export const post = <T = unknown>(path: string, body: unknown = {}) => call<T>('POST', path, body);
export const patch = <T = unknown>(path: string, body: unknown) => call<T>('PATCH', path, body);
export const remove = <T = unknown>(path: string, body?: unknown) => call<T>('DELETE', path, body);

type Answered = { data: unknown; error: unknown; status?: number };

/** The rows of a supabase-js query, or its error thrown. */
export async function rows<T>(query: PromiseLike<Answered>): Promise<T> {
    const { data, error, status } = await query;
    if (error) throw failure(Object.assign(error as object, { status }));
    return data as T;
}
