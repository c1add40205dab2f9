// Rows of any queue, in the words that are the same for all of them.
import { get } from './api';
import { ofEngine, type State } from './words';

export type Item = {
    id: string; state: string; status: string; kind: string | null; owner: string | number | null; attempts: number; lost: number;
    due_at: string | null; created_at: string | null; agent: string | null;
    payload: unknown; progress: { stage?: string; percent?: number; partial?: unknown } | null; result: unknown; error: unknown;
};
export type Noted = { at: string; act: string; caller: string; detail: Record<string, unknown> | null };
export type Late = { at: string; lease: number; caller: string | null; result: unknown };
export type Shown = Item & { row: Record<string, unknown>; audit: Noted[]; late_results: Late[] };
export type Queue = { name: string; table: string; owners: boolean; kinds: boolean; paused: { at: string; caller: string; reason: string | null } | null; broken: string | null };
export type Count = { state: string; count: number; capped: boolean; oldest_seconds: number | null };
export type Counted = { count: number; capped: boolean; states: Record<string, number> };
export type Cause = { cause: string; count: number; sample: string; message: string | null; newest: string | null };

/** What the URL and the API filter by. */
export const names = ['state', 'kind', 'owner', 'key', 'cause'] as const;
export type Filters = Partial<Record<typeof names[number], string>>;

export const path = (queue: string, rest = '') => `/v1/queues/${encodeURIComponent(queue)}${rest}`;
export const link = (queue: string, key?: string) => `/queues/${encodeURIComponent(queue)}${key === undefined ? '' : `/${encodeURIComponent(key)}`}`;
export const stateOf = (item: { state: string }): State => ofEngine[item.state] ?? 'waiting';

export function query(filters: Filters, more: Record<string, string> = {}): string {
    const given = Object.entries({ ...filters, ...more }).filter(([, value]) => value);
    return given.length ? `?${new URLSearchParams(given as [string, string][])}` : '';
}

/** The message of an error, however the queue stores it. */
export function reason(error: unknown): string {
    if (error === null || error === undefined) return '';
    if (typeof error !== 'object') return String(error);
    const { message, type } = error as { message?: unknown; type?: unknown };
    return [type, message].filter(Boolean).map(String).join(': ') || JSON.stringify(error);
}

/** One line about a row. */
export function brief(value: unknown): string {
    if (value === null || value === undefined) return '';
    if (typeof value !== 'object') return String(value);
    const text = Object.values(value).find(one => typeof one === 'string' && one.length > 0);
    const whole = JSON.stringify(value);
    return whole.length <= 120 || typeof text !== 'string' ? whole : text;
}

export const counts = (queue: string) => get<Count[]>(path(queue, '/stats'));

/** Counts of some states together. */
export function sum(list: Count[], ...states: string[]): { count: number; capped: boolean; oldest: number | null } {
    const some = list.filter(one => states.includes(one.state));
    const ages = some.map(one => one.oldest_seconds).filter(age => age !== null);
    return { count: some.reduce((n, one) => n + one.count, 0), capped: some.some(one => one.capped), oldest: ages.length ? Math.max(...ages) : null };
}
