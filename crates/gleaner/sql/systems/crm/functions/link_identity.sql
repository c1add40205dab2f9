/*
 * Links messages of a sender who becomes known by a further name of a contact, as refresh_contact_addresses does for addresses.
 */
create or replace function gleaner.link_identity() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    if new.kind in ('email', 'phone') then
        perform gleaner.look_again(new.kind, array[new.value]);
    else
        perform gleaner.look_again('other', array[new.kind || ':' || new.value]);
    end if;
    return null;
end
$$;
comment on function gleaner.link_identity() is 'Links messages of a sender who becomes known by an identity.';
revoke all on function gleaner.link_identity() from public, anon, authenticated, service_role;

create or replace trigger link_identity
after insert or update of kind, value on public.contact_identities
for each row execute function gleaner.link_identity();
