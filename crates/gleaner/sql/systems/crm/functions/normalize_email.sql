/*
 * The bare address of a sender, in lower case: 'Doe, John <John@Example.com>' becomes 'john@example.com'.
 * Takes the first of a list; null for what is no address. Encoded words and punycode are left to the receiving program.
 * public.contact_addresses is derived with it: when the result changes for stored addresses, touch
 * refresh_contact_addresses.sql too, so that they are derived anew.
 */
create or replace function public.normalize_email(p_text text) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return substring(
        lower(btrim(coalesce(
            substring(p_text from '<([^<>]*)>'),
            split_part(regexp_replace(p_text, '\([^()]*\)', '', 'g'), ',', 1)), E' \t\r\n'))
        from '^[^\s@<>"]+@[^\s@<>"]+$');
end
$$;
comment on function public.normalize_email(text) is 'The bare address of a sender in lower case; null for what is none.';
revoke all on function public.normalize_email(text) from public, anon;
grant execute on function public.normalize_email(text) to authenticated, service_role;
