// Messages that will go out, and those that did.
import { rows } from './api';
import { clock } from './clock.svelte';
import { contactName } from './names.svelte';
import { supabase } from './supabase';
import type { State } from './words';

export type Action = {
    id: string; prospect_id: string; contact_id: number | null; action_type: string; scheduled_for: string; status: string; payload: Record<string, unknown> | null;
    message: { sink?: string; to?: string; text?: string } | null; executed_at: string | null; cancelled_reason: string | null; error_message: string | null;
    deferred_reason: string | null; approved_at: string | null; due_at?: string | null;
};
export type View = 'planned' | 'approve' | 'sent' | 'failed' | 'cancelled';

const columns = 'id,prospect_id,contact_id,action_type,scheduled_for,status,payload,message,executed_at,cancelled_reason,error_message,deferred_reason,approved_at';
const statuses: Record<View, string[]> = { planned: ['pending', 'processing'], approve: ['pending'], sent: ['executed'], failed: ['failed'], cancelled: ['cancelled'] };
const APPROVAL = 'waits for approval';
export const PAGE = 50;

/** What is planned comes the next first, all else the latest. */
export function actions(view: View, last?: Action): Promise<Action[]> {
    const ascending = view === 'planned' || view === 'approve';
    let query = supabase.from('scheduled_actions').select(columns).in('status', statuses[view] ?? statuses.planned)
        .order('scheduled_for', { ascending }).order('id', { ascending }).limit(PAGE);
    if (view === 'approve') query = query.is('approved_at', null).or(`deferred_reason.eq."${APPROVAL}",payload->>approval.eq.true`);
    if (last && ascending) query = query.gte('scheduled_for', last.scheduled_for).or(`scheduled_for.gt.${last.scheduled_for},id.gt.${last.id}`);
    else if (last) query = query.lte('scheduled_for', last.scheduled_for).or(`scheduled_for.lt.${last.scheduled_for},id.lt.${last.id}`);
    return rows<Action[]>(query);
}

export const isToApprove = (action: Action) => action.status === 'pending' && action.approved_at === null && (action.deferred_reason === APPROVAL || String(action.payload?.approval) === 'true');

export function stateOf(action: Action): State {
    switch (action.status) {
        case 'pending': return Date.parse(action.scheduled_for) > clock.now ? 'scheduled' : 'waiting';
        case 'processing': return 'busy';
        case 'executed': return 'done';
        case 'cancelled': return 'cancelled';
        default: return 'dead';
    }
}

const given = (action: Action, ...names: string[]) => names.map(name => action.payload?.[name]).find(value => typeof value === 'string') as string | undefined;
export const text = (action: Action) => action.message?.text ?? given(action, 'text', 'message', 'body', 'content', 'subject');
export const intent = (action: Action) => given(action, 'follow_up_intent', 'intent');
export const by = (action: Action) => action.message?.sink ?? given(action, 'sink');
export const who = (action: Action) => contactName(action.contact_id) ?? action.prospect_id;

export const plan = (contact: number, when: string, payload: object) =>
    rows<Action>(supabase.rpc('schedule_followup', { p_prospect_id: `contact:${contact}`, p_scheduled_for: when, p_payload: payload }));

export async function approve(id: string): Promise<string> {
    const [answer] = await rows<{ outcome: string }[]>(supabase.rpc('approve_scheduled_actions', { p_ids: [id] }));
    return answer?.outcome ?? 'gone';
}

export type Zones = Map<number | null, string>;

/** The time zones in which contacts are written to; null stands for all others. */
export async function zones(): Promise<Zones> {
    const found = await rows<{ contact_id: number | null; time_zone: string }[]>(supabase.from('contact_preferences').select('contact_id,time_zone').limit(1000)).catch(() => []);
    return new Map(found.map(one => [one.contact_id, one.time_zone]));
}

/** "09:00 for Ann, 15:00 for you"; nothing where both clocks show the same. */
export function bothClocks(action: Action, known: Zones | undefined): string {
    const zone = known?.get(action.contact_id) ?? known?.get(null);
    if (!zone) return '';
    const time = (timeZone?: string) => new Date(action.scheduled_for).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', timeZone });
    try { return time(zone) === time() ? '' : `${time(zone)} for ${who(action)}, ${time()} for you`; } catch { return ''; }
}

export const soon = (hours: number) => new Date(clock.now + hours * 3_600_000).toISOString();
export function tomorrow(): string {
    const next = new Date(clock.now + 86_400_000);
    next.setHours(9, 0, 0, 0);
    return next.toISOString();
}
