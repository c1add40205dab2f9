/*
 * The contact that a prospect id names: contact:ID, an identity of any kind (the value alone, or kind:value), an e-mail
 * address, or a telephone number in E.164. Plain digits are never read as a number: they are more often an id of another system.
 * Returns  null when no contact or more than one has that name, and without the system crm.
 */
create or replace function gleaner.contact_of_prospect(p_prospect text) returns bigint
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_found bigint[];
    v_email text;
begin
    if to_regclass('public.contact_identities') is null then
        return null;
    end if;
    if p_prospect ~ '^contact:[0-9]{1,18}$' then
        return (select c.id from public.contacts as c where c.id = substr(p_prospect, 9)::bigint);
    end if;
    v_found := array(
        select distinct i.contact_id from public.contact_identities as i
        where i.value = p_prospect
           or i.kind = split_part(p_prospect, ':', 1) and i.value = substr(p_prospect, strpos(p_prospect, ':') + 1)
        limit 2);
    if v_found = '{}' then
        v_email := public.normalize_email(p_prospect);
        if v_email is not null then
            v_found := (select m.candidates from gleaner.match_contact('email', v_email, null) as m);
        elsif p_prospect ~ '^\+[0-9]' then
            v_found := (select m.candidates from gleaner.match_contact('phone', public.normalize_phone(p_prospect), null) as m);
        end if;
    end if;
    return case when cardinality(v_found) = 1 then v_found[1] end;
end
$$;
comment on function gleaner.contact_of_prospect(text) is 'The contact that a prospect id names; null when no contact or several have that name.';
revoke all on function gleaner.contact_of_prospect(text) from public, anon, authenticated;
grant execute on function gleaner.contact_of_prospect(text) to service_role;
