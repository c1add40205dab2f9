/*
 * The addresses of one contact in normalised form, once each, from both shapes: the plain columns and the CRM's lists.
 */
create or replace function public.list_contact_addresses(p_email text, p_phone text, p_emails jsonb, p_phones jsonb)
returns table (kind text, address text)
language plpgsql immutable
set search_path = pg_catalog, public, pg_temp
as $$
begin
    return query
    select distinct written.kind, written.address
    from (
        select 'email', public.normalize_email(p_email)
        union all
        select 'email', public.normalize_email(item ->> 'email')
        from jsonb_array_elements(case jsonb_typeof(p_emails) when 'array' then p_emails end) as item
        union all
        select 'phone', public.normalize_phone(p_phone)
        union all
        select 'phone', public.normalize_phone(item ->> 'number')
        from jsonb_array_elements(case jsonb_typeof(p_phones) when 'array' then p_phones end) as item
    ) as written (kind, address)
    where written.address is not null;
end
$$;
comment on function public.list_contact_addresses(text, text, jsonb, jsonb) is 'Normalised addresses of one contact.';
revoke all on function public.list_contact_addresses(text, text, jsonb, jsonb) from public, anon, authenticated;
grant execute on function public.list_contact_addresses(text, text, jsonb, jsonb) to service_role;
