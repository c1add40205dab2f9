// Activities as the feed shows them, from a query or from a change that was pushed.
import { supabase } from './supabase';
import type { State } from './words';

export type Activity = {
    id: string; type: string; direction: string | null; sales_id: number | null; contact_id: number | null; provider_id: string | null;
    processing_status: string; created_at: string; due_at: string | null; open_at: string | null; lease: number; attempts: number; lost: number; agent: string | null;
    progress: { stage?: string; percent?: number; partial?: unknown } | null; sender_kind: string | null; sender_address: string | null;
    subject: string | null; content: string | null; source: string | null; sender: string | null; summary: string | null;
    facts: string[] | null; error: string | null; test: boolean;
};

const plain = 'id,type,direction,sales_id,contact_id,provider_id,processing_status,created_at,due_at,open_at,lease,attempts,lost,agent,progress,sender_kind,sender_address';
export const columns = `${plain},subject:raw_data->>subject,content:raw_data->>content,source:raw_data->>source_type,sender:raw_data->>sender,`
    + 'summary:processed_data->>summary,facts:processed_data->facts,error:metadata->error->>message,test:metadata->test';

/** The part of a whole row that the feed needs. */
export function fromRow(row: Record<string, any>): Activity {
    const { raw_data: raw, processed_data: done, metadata } = row;
    const text = (value: unknown) => typeof value === 'string' ? value : null;
    const kept = Object.fromEntries(plain.split(',').map(name => [name, row[name] ?? null]));
    return {
        ...kept, subject: text(raw?.subject), content: text(raw?.content), source: text(raw?.source_type), sender: text(raw?.sender), summary: text(done?.summary),
        facts: Array.isArray(done?.facts) ? done.facts : null, error: text(metadata?.error?.message), test: metadata?.test === true,
    } as Activity;
}

export function stateOf(activity: { processing_status: string; due_at: string | null }, now = Date.now()): State {
    switch (activity.processing_status) {
        case 'raw': return activity.due_at && Date.parse(activity.due_at) > now + 2000 ? 'scheduled' : 'waiting';
        case 'processing': return 'busy';
        case 'completed': return 'done';
        case 'failed': return activity.due_at ? 'failed' : 'dead';
        default: return 'cancelled';
    }
}

export type Filters = { state: string; type: string; owner: string; channel: string; q: string; contact: string; before: string };

const statuses: Record<string, string> = { waiting: 'raw', busy: 'processing', done: 'completed', failed: 'failed', dead: 'failed', cancelled: 'cancelled' };

/** Whether a pushed row belongs into the list. */
export function fits(activity: Activity, filters: Filters, mine: number | undefined): boolean {
    if (filters.state && stateOf(activity) !== filters.state && !(filters.state === 'waiting' && activity.processing_status === 'raw')) return false;
    if (filters.type && activity.type !== filters.type) return false;
    if (filters.owner === 'none' && activity.sales_id !== null) return false;
    if (filters.owner && filters.owner !== 'none' && activity.sales_id !== (filters.owner === 'me' ? mine : Number(filters.owner))) return false;
    if (filters.channel && activity.provider_id !== filters.channel) return false;
    if (filters.contact && activity.contact_id !== Number(filters.contact)) return false;
    if (!filters.q) return true;
    const text = words([activity.subject, activity.content, activity.summary, activity.sender_address, activity.sender].join(' '));
    return words(filters.q).every(word => text.some(one => one.startsWith(word)));
}

const words = (text: string) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);

/** Words are found by an index of their own, below a function: the other filters go along with them. */
function searched(filters: Filters, owner: number | undefined, last: Activity | undefined) {
    return supabase.rpc('search_activities', {
        p_text: filters.q, p_status: statuses[filters.state] ?? null, p_type: filters.type || null, p_owner: owner ?? null, p_unowned: filters.owner === 'none',
        p_channel: filters.channel || null, p_contact: filters.contact ? Number(filters.contact) : null, p_before: last?.created_at ?? (filters.before ? endOf(filters.before) : null), p_id: last?.id ?? null,
    }).select(columns);
}

/** One page, the newest first, after the row `last`. The bound on the time alone is what an index can use. */
export function page(filters: Filters, mine: number | undefined, last: Activity | undefined, limit: number) {
    const owner = filters.owner && filters.owner !== 'none' ? (filters.owner === 'me' ? mine ?? -1 : Number(filters.owner)) : undefined;
    const asked = filters.q.trim() ? searched(filters, owner, last) : supabase.from('activities').select(columns);
    let query = asked.order('created_at', { ascending: false }).order('id', { ascending: false }).limit(limit);
    if (filters.state) query = query.eq('processing_status', statuses[filters.state] ?? filters.state);
    if (filters.state === 'dead') query = query.is('due_at', null);
    if (filters.state === 'failed') query = query.not('due_at', 'is', null);
    if (filters.type) query = query.eq('type', filters.type);
    if (filters.owner === 'none') query = query.is('sales_id', null);
    else if (owner !== undefined) query = query.eq('sales_id', owner);
    if (filters.channel) query = query.eq('provider_id', filters.channel);
    if (filters.contact) query = query.eq('contact_id', Number(filters.contact));
    if (last) query = query.lte('created_at', last.created_at).or(`created_at.lt.${last.created_at},id.lt.${last.id}`);
    else if (filters.before) query = query.lt('created_at', endOf(filters.before));
    return query;
}

const endOf = (day: string) => new Date(new Date(`${day}T00:00:00`).getTime() + 86_400_000).toISOString();
