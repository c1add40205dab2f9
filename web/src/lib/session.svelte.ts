// Who is signed in, and as whom of the team.
import type { Session } from '@supabase/supabase-js';
import { rows } from './api';
import { supabase } from './supabase';

export type Person = {
    id: number; first_name: string; last_name: string; email: string | null; user_id: string | null; administrator: boolean; disabled: boolean;
    stale_threshold_minutes: number; allow_remote_processing: boolean;
};

class Me {
    /** Undefined until it is known. */
    session = $state.raw<Session | null | undefined>(undefined);
    person = $state.raw<Person | null>(null);
    team = $state.raw<Person[]>([]);

    readonly administrator = $derived(this.person?.administrator === true);
    readonly names = $derived(new Map(this.team.map(person => [person.id, nameOf(person)])));

    /** The name of an owner, as others say it. */
    owner(id: number | string | null | undefined): string {
        if (id === null || id === undefined || id === '') return 'everyone';
        return Number(id) === this.person?.id ? 'you' : this.names.get(Number(id)) ?? `owner ${id}`;
    }

    /** The first administrator besides the caller, to ask. */
    get toAsk(): string {
        const one = this.team.find(person => person.administrator && !person.disabled);
        return one ? nameOf(one) : 'an administrator';
    }

    async load(): Promise<void> {
        const user = this.session?.user.id;
        if (!user) return;
        this.team = await rows<Person[]>(supabase.from('sales').select('*').order('id').limit(1000));
        this.person = this.team.find(person => person.user_id === user) ?? null;
    }
}

export function nameOf(person: { first_name: string; last_name: string; email: string | null }): string {
    return `${person.first_name} ${person.last_name}`.trim() || person.email || 'unnamed';
}

export const me = new Me();

supabase.auth.onAuthStateChange((_event, session) => {
    const changed = session?.user.id !== me.session?.user.id;
    me.session = session;
    if (!session) me.person = null;
    // Not in here: supabase-js holds a lock while it calls us.
    if (changed && session) setTimeout(() => void me.load().catch(() => setTimeout(() => void me.load().catch(() => {}), 3000)), 0);
});
