/*
 * The addresses of one contact in normalised form, once each as it was written, from both shapes: the plain columns and the
 * CRM's lists. A number, and an address with letters beyond ASCII, is only what SQL makes of it: parsed says so, and a server
 * reads it again (gleaner.parse_addresses). A number in other people's digits is listed too, as one that matches no caller.
 * Nothing longer than an address can be: it would not fit an index, and the contact could not be saved.
 */
drop function if exists public.list_contact_addresses(text, text, jsonb, jsonb);
create function public.list_contact_addresses(p_email text, p_phone text, p_emails jsonb, p_phones jsonb)
returns table (kind text, address text, written text, loose text, parsed boolean)
language plpgsql immutable
set search_path = pg_catalog, public, pg_temp
as $$
begin
    return query
    select distinct 'email', n.address, typed.written, gleaner.loose_email(n.address), typed.written ~ '^[[:ascii:]]*$'
    from (
        select left(p_email, 254)
        union all
        select left(item ->> 'email', 254)
        from jsonb_array_elements(case jsonb_typeof(p_emails) when 'array' then p_emails end) as item
    ) as typed (written)
    cross join lateral (select public.normalize_email(typed.written) offset 0) as n (address)
    where n.address is not null;

    return query
    select distinct 'phone', coalesce(n.address, '?'), typed.written, substring(n.address from '^\+1([0-9]{10})$'), false
    from (
        select left(p_phone, 100)
        union all
        select left(item ->> 'number', 100)
        from jsonb_array_elements(case jsonb_typeof(p_phones) when 'array' then p_phones end) as item
    ) as typed (written)
    cross join lateral (select public.normalize_phone(typed.written) offset 0) as n (address)
    where n.address is not null or typed.written !~ '^[[:ascii:]]*$';
end
$$;
comment on function public.list_contact_addresses(text, text, jsonb, jsonb) is 'Normalised addresses of one contact, each with what was written.';
revoke all on function public.list_contact_addresses(text, text, jsonb, jsonb) from public, anon, authenticated;
grant execute on function public.list_contact_addresses(text, text, jsonb, jsonb) to service_role;
