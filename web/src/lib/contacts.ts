import { supabase } from './supabase';

export type Contact = {
    id: number; first_name: string | null; last_name: string | null; title: string | null; sales_id: number | null; tags: string[] | null;
    first_seen: string | null; last_seen: string | null; email: string | null; phone_number: string | null;
    email_jsonb: { email: string; type?: string }[] | null; phone_jsonb: { number: string; type?: string }[] | null;
};

export const columns = 'id,first_name,last_name,title,sales_id,tags,first_seen,last_seen,email,phone_number,email_jsonb,phone_jsonb';

export function named(contact: Pick<Contact, 'id' | 'first_name' | 'last_name'> & { email?: string | null; phone_number?: string | null }): string {
    return `${contact.first_name ?? ''} ${contact.last_name ?? ''}`.trim() || contact.email || contact.phone_number || `Contact ${contact.id}`;
}

/** What a person typed, as a pattern: `*` is the wildcard of a filter, and its other signs are taken literally. */
export function pattern(text: string): string {
    return `"*${text.replace(/[\\"]/g, '\\$&').replace(/[*%_]/g, '\\\\$&')}*"`;
}

export function search(text: string, limit: number) {
    const like = pattern(text);
    const fields = ['first_name', 'last_name', 'email', 'phone_number'].map(name => `${name}.ilike.${like}`);
    return supabase.from('contacts').select(columns).or(fields.join(',')).order('id', { ascending: false }).limit(limit);
}
