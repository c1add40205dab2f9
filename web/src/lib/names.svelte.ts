// Names of contacts and channels, fetched once for all who ask in the same moment.
import { SvelteMap } from 'svelte/reactivity';
import { rows } from './api';
import { named, type Contact } from './contacts';
import { supabase } from './supabase';

const contacts = new SvelteMap<number, string>();
const asked = new Set<number>();
let waiting = new Set<number>();

/** The name of a contact; undefined until it is known. */
export function contactName(id: number | null): string | undefined {
    if (id === null) return undefined;
    if (!asked.has(id)) {
        asked.add(id);
        if (waiting.size === 0) setTimeout(fetchWaiting, 0);
        waiting.add(id);
    }
    return contacts.get(id);
}

async function fetchWaiting(): Promise<void> {
    const ids = [...waiting];
    waiting = new Set();
    const query = supabase.from('contacts').select('id,first_name,last_name,email,phone_number').in('id', ids);
    const found = await rows<Contact[]>(query).catch(() => { for (const id of ids) asked.delete(id); return []; });
    for (const contact of found) contacts.set(contact.id, named(contact));
}

/** After an edit. */
export function rememberContact(contact: Pick<Contact, 'id' | 'first_name' | 'last_name' | 'email' | 'phone_number'>): void {
    asked.add(contact.id);
    contacts.set(contact.id, named(contact));
}

export type Channel = { id: string; name: string; provider_code: string };

class Channels {
    list = $state.raw<Channel[]>([]);
    #asked = false;
    /** Only administrators see channels; others see their activities without the name. */
    load(): void {
        if (this.#asked) return;
        this.#asked = true;
        void rows<Channel[]>(supabase.from('ingestion_providers').select('id,name,provider_code').order('name')).then(list => { this.list = list; }).catch(() => {});
    }
    forget(): void { this.#asked = false; this.load(); }
    name(id: string | null): string | undefined { return this.list.find(channel => channel.id === id)?.name; }
}

export const channels = new Channels();
