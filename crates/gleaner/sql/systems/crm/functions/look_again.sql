/*
 * Matches activities without a contact again, by their sender: an address has become known that was not known, or not
 * readable, when they came. Those a person took apart stay apart. Bounded: two hundred, the newest first; the unmatched
 * list has the rest.
 * Returns  how many were linked.
 */
drop function if exists gleaner.look_again(text, text[], timestamptz);
create or replace function gleaner.look_again(p_kind text, p_addresses text[]) returns integer
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_row    record;
    v_found  record;
    v_linked integer := 0;
begin
    for v_row in
        select a.id, a.sender_kind, a.sender_address, a.provider_id
        from public.activities as a
        where a.contact_id is null and a.sender_address is not null
          and a.sender_kind = p_kind and a.sender_address = any (p_addresses)
          and a.metadata #>> '{match,method}' is distinct from 'unlinked'
        order by a.created_at desc
        limit 200
        for no key update skip locked
    loop
        select m.candidates into v_found from gleaner.match_contact(v_row.sender_kind, v_row.sender_address, v_row.provider_id) as m;
        if cardinality(v_found.candidates) = 1 then
            update public.activities as a set contact_id = v_found.candidates[1] where a.id = v_row.id;
            v_linked := v_linked + 1;
        end if;
    end loop;
    return v_linked;
end
$$;
comment on function gleaner.look_again(text, text[]) is 'Looks again for the contact of unmatched activities of these senders.';
revoke all on function gleaner.look_again(text, text[]) from public, anon, authenticated, service_role;
