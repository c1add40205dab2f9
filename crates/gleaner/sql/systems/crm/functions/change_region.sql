/*
 * Has the numbers of all contacts read again when the default region changes. Readers see the old ones until the commit.
 * Not by an update of contacts: a CRM's own triggers there may do anything, HTTP included.
 */
create or replace function gleaner.change_region() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    -- A contact that is saved meanwhile is read in the region of before or of after, by its own trigger: it must be one or the other.
    lock table public.contact_addresses in share row exclusive mode;
    delete from public.contact_addresses as a where a.kind = 'phone';
    insert into public.contact_addresses (contact_id, kind, address, written, loose, parsed)
    select c.id, l.kind, l.address, l.written, l.loose, l.parsed
    from public.contacts as c
    cross join lateral public.list_contact_addresses(c.email, c.phone_number, c.email_jsonb, c.phone_jsonb) as l
    where l.kind = 'phone';
    return null;
end
$$;
comment on function gleaner.change_region() is 'Has the numbers of all contacts read again.';
revoke all on function gleaner.change_region() from public, anon, authenticated, service_role;

create or replace trigger change_region
after update of default_region on gleaner.contact_settings
for each row
when (new.default_region is distinct from old.default_region)
execute function gleaner.change_region();
