/*
 * Keeps public.contact_addresses in step with a contact. A caller who may edit a contact need not see the table: definer.
 * What SQL cannot read for certain waits there for a server (gleaner.parse_addresses); until then the guess is used.
 * Messages of a sender who becomes known by it are linked at once: a contact is often added because of a message.
 */
create or replace function public.refresh_contact_addresses() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_known record;
begin
    if tg_op = 'UPDATE' then
        delete from public.contact_addresses as a where a.contact_id = new.id;
    end if;
    insert into public.contact_addresses (contact_id, kind, address, written, loose, parsed)
    select new.id, l.kind, l.address, l.written, l.loose, l.parsed
    from public.list_contact_addresses(new.email, new.phone_number, new.email_jsonb, new.phone_jsonb) as l;
    for v_known in
        select a.kind, array_agg(a.address) || array_agg('+1' || a.loose) filter (where a.kind = 'phone' and a.loose is not null) as addresses
        from public.contact_addresses as a
        where a.contact_id = new.id and a.address <> '?'
        group by a.kind
    loop
        perform gleaner.look_again(v_known.kind, v_known.addresses);
    end loop;
    return null;
end
$$;
comment on function public.refresh_contact_addresses() is 'Keeps contact_addresses in step with contacts.';
revoke all on function public.refresh_contact_addresses() from public, anon, authenticated;

create or replace trigger refresh_contact_addresses
after insert or update of email, phone_number, email_jsonb, phone_jsonb on public.contacts
for each row execute function public.refresh_contact_addresses();

-- Contacts that were there before, and all of them when the rules change. Readers see the old set until the commit;
-- writers wait, as creating the trigger locked them out of contacts, so no edit slips in between.
delete from public.contact_addresses;
insert into public.contact_addresses (contact_id, kind, address, written, loose, parsed)
select c.id, l.kind, l.address, l.written, l.loose, l.parsed
from public.contacts as c
cross join lateral public.list_contact_addresses(c.email, c.phone_number, c.email_jsonb, c.phone_jsonb) as l;
