/*
 * Puts what a server read in the place of what SQL had guessed, for addresses gleaner.pending_addresses listed.
 *
 * Takes    [{contact_id, kind, guess, written, address | null, loose | null}]; null for what is no address after all.
 * Changes  contact_addresses; and activities that came before the address was known: they get a second look.
 *          A guess stays beside the new form where the two cannot mean different people: the same digits with and without
 *          plus, or plain digits (a plain insert may bring just those), or an address in its own letters.
 * Races    skip locked: a contact that is being edited, or read by another server, is left to the session that holds it.
 * Returns  how many addresses were read.
 */
create or replace function gleaner.parse_addresses(p_parsed jsonb) returns integer
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_read integer;
    v_new  record;
begin
    for v_new in
        with item as materialized (
            select a.contact_id, a.kind, a.address as guess, a.written, a.written_at, p.address, p.loose,
                   p.address is not null and (a.address = p.address
                       or a.kind = 'email'
                       or ltrim(a.address, '+') = ltrim(p.address, '+')
                       or a.address ~ '^[0-9]{7,}$') as stays
            from jsonb_to_recordset(p_parsed) as p (contact_id bigint, kind text, guess text, written text, address text, loose text)
            join public.contact_addresses as a
                on a.kind = p.kind and a.address = p.guess and a.contact_id = p.contact_id and a.written = p.written
            join public.contacts as c on c.id = a.contact_id
            where not a.parsed
            for update of a skip locked
            for key share of c skip locked
        ),
        kept as (
            update public.contact_addresses as a
            set parsed = true, loose = case when i.guess = i.address then i.loose when a.kind = 'email' then a.loose end
            from item as i
            where i.stays and a.kind = i.kind and a.address = i.guess and a.contact_id = i.contact_id and a.written = i.written
        ),
        dropped as (
            delete from public.contact_addresses as a
            using item as i
            where not i.stays and a.kind = i.kind and a.address = i.guess and a.contact_id = i.contact_id and a.written = i.written
        ),
        added as (
            insert into public.contact_addresses (contact_id, kind, address, written, loose, parsed, written_at)
            select i.contact_id, i.kind, i.address, i.written, i.loose, true, i.written_at
            from item as i
            where i.address is distinct from i.guess and i.address is not null
            on conflict do nothing
        )
        select i.kind, i.address, i.loose, i.address is distinct from i.guess as is_new, count(*) over ()::integer as total
        from item as i
    loop
        v_read := v_new.total;
        if v_new.is_new and v_new.address is not null then
            perform gleaner.look_again(
                v_new.kind,
                array[v_new.address] || case v_new.kind
                    when 'phone' then gleaner.phone_aliases(v_new.address) || array_remove(array['+1' || v_new.loose], null) else '{}' end);
        end if;
    end loop;
    return coalesce(v_read, 0);
end
$$;
comment on function gleaner.parse_addresses(jsonb) is 'Puts what a server read of contacts'' addresses in the place of what SQL had guessed.';
revoke all on function gleaner.parse_addresses(jsonb) from public, anon, authenticated, service_role;
