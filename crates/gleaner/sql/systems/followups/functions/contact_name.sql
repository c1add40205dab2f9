-- The name of a contact, for lists; null without the system crm.
create or replace function gleaner.contact_name(p_contact bigint) returns text
language plpgsql stable
set search_path = pg_catalog, public, pg_temp
as $$
begin
    if p_contact is null or to_regclass('public.contacts') is null then
        return null;
    end if;
    return (select nullif(concat_ws(' ', c.first_name, c.last_name), '') from public.contacts as c where c.id = p_contact);
end
$$;
comment on function gleaner.contact_name(bigint) is 'The name of a contact; null without the system crm.';
revoke all on function gleaner.contact_name(bigint) from public, anon, authenticated;
grant execute on function gleaner.contact_name(bigint) to authenticated, service_role;
