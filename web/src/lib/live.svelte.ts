// One socket, one channel per table. Subscribers get each change they may see; after a gap the page fetches again.
import type { RealtimeChannel } from '@supabase/supabase-js';
import { second, clock } from './clock.svelte';
import { supabase } from './supabase';

export type Change = { eventType: 'INSERT' | 'UPDATE' | 'DELETE'; new: Record<string, any>; old: Record<string, any> };
type Hear = (change: Change) => void;

/** How long a gap may last before it is shown. */
const SHOWN_AFTER = 2_000;
/** Without the socket the page asks by itself. */
const POLL = 10_000;

class Live {
    /** Counts up when everything shown may be outdated. */
    epoch = $state(0);
    connected = $state(false);
    online = $state(navigator.onLine);
    /** The last moment at which the page was known to be current. */
    current = $state(Date.now());
    #everConnected = false;
    #tables = new Map<string, { channel: RealtimeChannel; hear: Set<Hear> }>();
    #hidden = 0;

    constructor() {
        addEventListener('online', () => { this.online = true; });
        addEventListener('offline', () => { this.online = false; });
        document.addEventListener('visibilitychange', () => {
            if (document.hidden) this.#hidden = Date.now();
            else if (Date.now() - this.#hidden > 30_000) this.epoch++;
        });
        setInterval(() => {
            if (this.connected) this.current = Date.now();
            else if (!document.hidden && Date.now() - this.current > POLL) this.epoch++;
        }, POLL);
    }

    readonly missing = $derived(clock.now - this.current);
    readonly word = $derived.by(() => {
        if (!this.online) return `Offline since ${second(this.current).slice(0, 5)}`;
        if (this.connected) return 'Live';
        if (!this.#everConnected && this.missing < SHOWN_AFTER * 2) return 'Connecting';
        if (this.missing < SHOWN_AFTER) return 'Live';
        const asking = this.missing > POLL ? ', checking every 10 s' : '';
        return `Reconnecting, as of ${second(this.current)}${asking}`;
    });
    readonly tone = $derived(!this.online ? 'bad' : this.word === 'Live' ? 'good' : 'warn');

    /** Joins with the main table, whose channel tells whether we are connected. */
    start(): void { this.on('activities', () => {}); }

    stop(): void {
        for (const { channel } of this.#tables.values()) void supabase.removeChannel(channel);
        this.#tables.clear();
        this.connected = false;
    }

    /** Calls `hear` for each change of the table, until the returned function is called. */
    on(table: string, hear: Hear): () => void {
        let entry = this.#tables.get(table);
        if (!entry) {
            const heard = new Set<Hear>();
            const channel = supabase.channel(`table:${table}`)
                .on('postgres_changes', { event: '*', schema: 'public', table }, change => { for (const one of heard) one(change as unknown as Change); });
            entry = { channel, hear: heard };
            this.#tables.set(table, entry);
            let joined = false;
            channel.subscribe(status => {
                const isJoined = status === 'SUBSCRIBED';
                // What happened while we were away is not sent again.
                if (isJoined && !joined && this.#everConnected) this.epoch++;
                joined = isJoined;
                if (table === 'activities') this.#connected(isJoined);
            });
        }
        entry.hear.add(hear);
        return () => { entry.hear.delete(hear); };
    }

    #connected(is: boolean): void {
        if (is || this.connected) this.current = Date.now();
        this.connected = is;
        if (is) this.#everConnected = true;
    }
}

export const live = new Live();
