/*
 * Who has this address? The steps, each an index probe, and the first that finds a contact ends the search:
 *
 *   email         the address itself
 *   identity      a further name of one contact (contact_identities): telegram:123 is (telegram, 123)
 *   email_loose   without +tag, and without dots at Google, on both sides
 *   phone         the number itself: E.164, or the plain digits of what is no possible number
 *   phone_alias   the other spelling of a mobile number (gleaner.phone_aliases)
 *   phone_loose   the last ten digits, within country code 1 only: ten equal digits across country codes mean nothing
 *                 (+44 20 7946 0958 is not Maine's 207-946-0958). A number stored without country counts where the
 *                 default region is in that code.
 *
 * Returns  the step and up to twenty contacts, none with an empty list. One is a match; several are candidates.
 */
create or replace function gleaner.match_contact(
    p_kind text, p_address text, p_provider uuid, out method text, out candidates bigint[])
language plpgsql stable
set search_path = pg_catalog, public, pg_temp
as $$
begin
    method := p_kind;
    candidates := array(
        select distinct a.contact_id
        from public.contact_addresses as a
        where a.kind = p_kind and a.address = p_address
        order by a.contact_id limit 20);
    if candidates <> '{}' then
        return;
    end if;

    -- At most one: an identity names one contact.
    candidates := array(
        select i.contact_id
        from public.contact_identities as i
        where i.kind = case p_kind when 'other' then split_part(p_address, ':', 1) else p_kind end
          and i.value = case p_kind when 'other' then substr(p_address, strpos(p_address, ':') + 1) else p_address end);
    if candidates <> '{}' then
        method := 'identity';
        return;
    end if;

    if p_kind = 'email' then
        method := 'email_loose';
        candidates := array(
            select distinct a.contact_id
            from public.contact_addresses as a
            where a.kind = 'email' and a.loose = gleaner.loose_email(p_address)
            order by a.contact_id limit 20);
        return;
    end if;

    if p_kind = 'phone' then
        method := 'phone_alias';
        candidates := array(
            select distinct a.contact_id
            from public.contact_addresses as a
            where a.kind = 'phone' and a.address = any (gleaner.phone_aliases(p_address))
            order by a.contact_id limit 20);
        if candidates <> '{}' or p_address !~ '^\+1[0-9]{10}$' then
            return;
        end if;
        method := 'phone_loose';
        candidates := array(
            select distinct a.contact_id
            from public.contact_addresses as a
            where a.kind = 'phone' and a.loose = substr(p_address, 3)
              and (a.address like '+1%' or gleaner.is_region_of_one(p_provider))
            order by a.contact_id limit 20);
    end if;
end
$$;
comment on function gleaner.match_contact(text, text, uuid) is 'The contacts an address belongs to, and by which rule.';
revoke all on function gleaner.match_contact(text, text, uuid) from public, anon, authenticated, service_role;
