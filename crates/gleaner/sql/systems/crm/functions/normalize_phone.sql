/*
 * A telephone number in the form numbers are compared in, E.164 as far as one can tell without a library:
 *
 *   (415) 867-5309, 415-867-5309 x123, whatsapp:+14158675309   +14158675309
 *   +44 (0)20 7946 0958, 011 44 20 7946 0958                   +442079460958
 *   12345 (a short code), 0612345678, 0044 20 … (from where?)  the digits alone
 *   anonymous, +266696687 (a withheld caller), ''              null
 *
 * Limits: a number without country is read as North American when it has ten digits, or eleven with a leading 1; any
 * other stays as its digits and equals only itself. Nothing is checked against a country's numbering plan. Providers' senders
 * and, a moment after they are saved, contacts' numbers are read with a library that knows them all (gleaner.parse_addresses).
 * public.contact_addresses is derived with it: when the result changes for stored numbers, touch
 * refresh_contact_addresses.sql too, so that they are derived anew.
 */
create or replace function public.normalize_phone(p_text text) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    v_bare          text := lower(btrim(p_text));
    v_digits        text;
    v_international boolean;
begin
    v_bare := regexp_replace(v_bare, '^(whatsapp|tel|sms):\s*', '');
    v_bare := regexp_replace(v_bare, '\s*(;\s*ext=|extension|ext\.?|x|#)\s*[0-9]+$', '');
    if v_bare ~ '[[:alpha:]@]' then
        return null;
    end if;
    v_international := v_bare ~ '^\(?\+';
    -- '+44 (0)20' names the trunk prefix that is dialled within the country only.
    v_digits := regexp_replace(case when v_international then replace(v_bare, '(0)', '') else v_bare end, '[^0-9]', '', 'g');
    return case
        when v_digits = '' then null
        -- Withheld callers: words spelt on a keypad. An explicit list, because some look like real numbers.
        when v_international and v_digits in ('266696687', '7378742833', '2562533', '8656696', '86282452253') then null
        when v_international then '+' || v_digits
        when v_digits ~ '^011[1-9]\d{6,}$' then '+' || substr(v_digits, 4)
        when v_digits ~ '^[1-9]\d{9}$' then '+1' || v_digits
        when v_digits ~ '^1\d{10}$' then '+' || v_digits
        else v_digits
    end;
end
$$;
comment on function public.normalize_phone(text) is 'A telephone number in comparable form, E.164 where the country is known; null for none.';
revoke all on function public.normalize_phone(text) from public, anon;
grant execute on function public.normalize_phone(text) to authenticated, service_role;
