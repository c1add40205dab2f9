// Messages without a contact, by their sender.
import type { Contact } from './contacts';

export type Candidate = { id: number; name: string };
export type Unmatched = {
    id: string; type: string; created_at: string; provider_id: string | null;
    /** In the form that is compared; as it was written; and the name that came with it. */
    sender: string | null; from: string | null; sender_name: string | null;
    subject: string | null; excerpt: string | null; method: string | null; candidates: Candidate[];
};
export type Sender = { key: string; name: string; address: string | null; items: Unmatched[]; candidates: Candidate[]; method: string };

export function bySender(items: Unmatched[]): Sender[] {
    const senders = new Map<string, Sender>();
    for (const item of items) {
        const key = item.sender ?? item.id;
        const known = senders.get(key);
        if (known) { known.items.push(item); continue; }
        const { sender: address, candidates } = item;
        senders.set(key, { key, name: item.sender_name ?? item.from ?? address ?? 'Unknown sender', address, items: [item], candidates, method: item.method ?? '' });
    }
    return [...senders.values()];
}

/** The rule that found candidates, in words. */
export const rules: Record<string, string> = {
    email: 'same address', email_loose: 'same address, other spelling', phone: 'same number', phone_alias: 'same number, other spelling',
    phone_loose: 'same last ten digits', unlinked: 'was linked before',
};

/** A contact made of a sender. */
export function contactOf(sender: Sender): Partial<Contact> {
    const shown = sender.name.replace(/<[^>]*>/, '').replaceAll('"', '').trim();
    const isName = shown !== '' && shown !== sender.address && !/^[+\d\s()-]+$/.test(shown) && !shown.includes('@');
    const [first = '', ...rest] = isName ? shown.split(/\s+/) : [];
    const isEmail = sender.address?.includes('@') === true;
    return { first_name: first || null, last_name: rest.join(' ') || null, email: isEmail ? sender.address : null, phone_number: isEmail ? null : sender.address };
}
