/*
 * Links a new activity to the contact it came from: by e-mail address, then by telephone number, both in normalised form.
 * The sender is looked for where providers put it, metadata.from, and where mail puts it, raw_data.sender.
 *
 * The specification's third step, the last ten digits, is inside normalize_phone: with and without +1 a North American
 * number is the same one. Across country codes ten equal digits mean nothing (+44 20 7946 0958 is not Maine's 207-946-0958).
 *
 * One contact must match. Of several nobody can tell which, so the activity stays unmatched and metadata.match lists
 * them for the person who decides. A contact given by the writer is left alone.
 *
 * Security definer: matching must see every contact, whoever brings the message in.
 */
create or replace function public.auto_link_contact() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_email      text;
    v_phone      text;
    v_look       record;
    v_candidates bigint[];
begin
    if new.contact_id is not null then
        return new;
    end if;
    v_email := coalesce(public.normalize_email(new.metadata ->> 'from'), public.normalize_email(new.raw_data ->> 'sender'));
    v_phone := coalesce(public.normalize_phone(new.metadata ->> 'from'), public.normalize_phone(new.raw_data ->> 'sender'));

    for v_look in
        select l.kind, l.address
        from (values
            (1, 'email', v_email),
            (2, 'phone', v_phone)
        ) as l (rank, kind, address)
        where l.address is not null
        order by l.rank
    loop
        v_candidates := array(
            select a.contact_id
            from public.contact_addresses as a
            where a.kind = v_look.kind and a.address = v_look.address
            order by a.contact_id
            limit 20);
        continue when v_candidates = '{}';
        if cardinality(v_candidates) = 1 then
            new.contact_id := v_candidates[1];
        elsif jsonb_typeof(coalesce(new.metadata, '{}')) = 'object' then
            new.metadata := coalesce(new.metadata, '{}')
                || jsonb_build_object('match', jsonb_build_object('method', v_look.kind, 'candidates', v_candidates));
        end if;
        return new;
    end loop;
    return new;
end
$$;
comment on function public.auto_link_contact() is 'Links a new activity to the one contact its sender matches.';
revoke all on function public.auto_link_contact() from public, anon, authenticated;

create or replace trigger before_insert_activity_link_contact
before insert on public.activities
for each row
when (new.contact_id is null and (new.metadata ? 'from' or new.raw_data ? 'sender'))
execute function public.auto_link_contact();
