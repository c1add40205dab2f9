// Documents that people drop in, and what agents make of them.
import { rows } from './api';
import { size, type State } from './words';
import { supabase } from './supabase';

export type Result = { message?: string; summary?: string; blocks?: unknown[]; context_items?: { kind?: string }[]; relationships?: unknown[]; counts?: { insights: number; entities: number; connections: number } };
export type Queued = {
    id: string; dump_id: string; processing_state: string; progress: { stage?: string; percent?: number } | null; result: Result | null;
    error_message: string | null; due_at: string | null; created_at: string; attempts: number;
};
export type Dump = { id: string; basket_id: string; file_name: string | null; file_size: number | null; media_type: string | null; created_at: string };
export type Workspace = { id: string; name: string; baskets: { id: string; name: string }[] };
export type Added = { id: string; name: string; size: number; known: boolean };

const queued = 'id,dump_id,processing_state,progress,result,error_message,due_at,created_at,attempts';
const listed = 'id,basket_id,file_name,file_size,media_type,created_at';

export const PAGE = 30;

export async function workspaces(): Promise<Workspace[]> {
    const [spaces, baskets] = await Promise.all([
        rows<{ id: string; name: string }[]>(supabase.from('workspaces').select('id,name').order('created_at').limit(200)),
        rows<{ id: string; name: string; workspace_id: string }[]>(supabase.from('baskets').select('id,name,workspace_id').order('created_at').limit(1000)),
    ]);
    return spaces.map(space => ({ ...space, baskets: baskets.filter(basket => basket.workspace_id === space.id) }));
}

/** One page of a basket, the newest first, after the row `last`. */
export function dumps(basket: string, last?: Dump): Promise<Dump[]> {
    let query = supabase.from('raw_dumps').select(listed).eq('basket_id', basket).order('created_at', { ascending: false }).order('id', { ascending: false }).limit(PAGE);
    if (last) query = query.lte('created_at', last.created_at).or(`created_at.lt.${last.created_at},id.lt.${last.id}`);
    return rows<Dump[]>(query);
}

export const queueOf = (ids: string[]) => rows<Queued[]>(supabase.from('agent_processing_queue').select(queued).in('dump_id', ids));
/** Those that wait, the first in line first. */
export const line = () => rows<{ dump_id: string }[]>(supabase.from('agent_processing_queue').select('dump_id').eq('processing_state', 'pending').order('created_at').limit(100));

export function stateOf(row: Queued | undefined): State {
    switch (row?.processing_state) {
        case 'claimed': case 'processing': return 'busy';
        case 'completed': return 'done';
        case 'failed': return row.due_at ? 'failed' : 'dead';
        case 'cancelled': return 'cancelled';
        default: return 'waiting';
    }
}

const many = (n: number, one: string, more: string) => `${n} ${n === 1 ? one : more}`;

/** What was found up to now, while the work goes on. */
export function soFar(result: Result | null): string {
    const themes = result?.context_items?.filter(item => item.kind === 'topic' || item.kind === 'theme').length ?? 0;
    const found = [
        themes ? many(themes, 'theme', 'themes') : '',
        result?.blocks?.length ? many(result.blocks.length, 'insight', 'insights') : '',
        !themes && result?.context_items?.length ? many(result.context_items.length, 'entity', 'entities') : '',
    ].filter(Boolean);
    return found.length ? `${found.join(', ')} so far` : '';
}

export const titled = (dump: { file_name: string | null; file_size: number | null; created_at: string }) =>
    dump.file_name ? `${dump.file_name} (${size(Number(dump.file_size ?? 0))})` : 'Captured text';
