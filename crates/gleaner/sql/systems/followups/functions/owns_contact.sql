/*
 * Whether the signed-in caller may write to a contact: one of their own, or one without an owner. Says nothing of administrators and
 * the service key, who are not asked. Without the system crm there are no contacts, and any caller may.
 */
create or replace function gleaner.owns_contact(p_contact bigint) returns boolean
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    if to_regclass('public.contacts') is null then
        return true;
    end if;
    return exists (
        select from public.contacts as c
        left join public.sales as s on s.id = c.sales_id
        where c.id = p_contact and (c.sales_id is null or s.user_id = gleaner.caller_uid()));
end
$$;
comment on function gleaner.owns_contact(bigint) is 'Whether a contact is the signed-in caller''s own, or has no owner.';
revoke all on function gleaner.owns_contact(bigint) from public, anon, authenticated, service_role;
grant execute on function gleaner.owns_contact(bigint) to gleaner_engine;
