/*
 * A telephone number in the form numbers are compared in, E.164 as far as one can tell without a library:
 *
 *   (415) 867-5309, 415-867-5309 x123, whatsapp:+14158675309   +14158675309
 *   +44 (0)20 7946 0958, 0044 20 7946 0958, 011 44 20 …        +442079460958
 *   12345 (a short code), 0612345678 (which country?)          the digits alone
 *   anonymous, +266696687 (a withheld caller), ''              null
 *
 * Limits: a number without country is read as North American when it has ten digits, or eleven with a leading 1; any
 * other stays as its digits and equals only itself. Nothing is checked against a country's numbering plan.
 * public.contact_addresses is derived with it: when the result changes for stored numbers, touch
 * refresh_contact_addresses.sql too, so that they are derived anew.
 */
create or replace function public.normalize_phone(p_text text) returns text
language sql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select case
        when bare ~ '[[:alpha:]@]' or digits = '' then null
        -- Withheld callers: words spelt on a keypad. An explicit list, because some look like real numbers.
        when international and digits in ('266696687', '7378742833', '2562533', '8656696', '86282452253') then null
        when international then '+' || digits
        when digits ~ '^011[1-9]\d{6,}$' then '+' || substr(digits, 4)
        when digits ~ '^00[1-9]\d{6,}$' then '+' || substr(digits, 3)
        when digits ~ '^[1-9]\d{9}$' then '+1' || digits
        when digits ~ '^1\d{10}$' then '+' || digits
        else digits
    end
    from (
        -- '+44 (0)20' names the trunk prefix that is dialled within the country only.
        select bare, bare ~ '^\(?\+' as international,
               regexp_replace(case when bare ~ '^\(?\+' then replace(bare, '(0)', '') else bare end, '[^0-9]', '', 'g') as digits
        from (
            select regexp_replace(
                regexp_replace(lower(btrim(p_text)), '^(whatsapp|tel|sms):\s*', ''),
                '\s*(;\s*ext=|extension|ext\.?|x|#)\s*[0-9]+$', '') as bare
        ) as without_channel
    ) as number
$$;
comment on function public.normalize_phone(text) is 'A telephone number in comparable form, E.164 where the country is known; null for none.';
revoke all on function public.normalize_phone(text) from public, anon;
grant execute on function public.normalize_phone(text) to authenticated, service_role;
