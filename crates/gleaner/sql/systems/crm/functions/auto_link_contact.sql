/*
 * Links a new activity to the contact it came from, by the rules of gleaner.match_contact.
 * The webhook endpoint says who the sender is. For rows that arrive by a plain insert the sender is looked for where providers put it,
 * metadata.from, and where mail puts it, raw_data.sender: an e-mail address, then a telephone number.
 *
 * One contact must match. Of several none can be chosen, so the activity stays unmatched and metadata.match lists
 * them for the person who decides. A contact given by the writer is left alone.
 *
 * Security definer: matching must see every contact, whatever the rights of the caller.
 */
create or replace function public.auto_link_contact() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_phone text;
    v_found record;
begin
    if new.sender_address is null then
        new.sender_address := coalesce(public.normalize_email(new.metadata ->> 'from'), public.normalize_email(new.raw_data ->> 'sender'));
        v_phone := coalesce(public.normalize_phone(new.metadata ->> 'from'), public.normalize_phone(new.raw_data ->> 'sender'));
        new.sender_kind := case when new.sender_address is not null then 'email' when v_phone is not null then 'phone' end;
        new.sender_address := coalesce(new.sender_address, v_phone);
    end if;
    -- No address is that long, and it would not fit the index.
    if octet_length(new.sender_address) > 512 then
        new.sender_address := null;
    end if;
    if new.sender_address is null then
        new.sender_kind := null;
        return new;
    end if;

    select m.method, m.candidates into v_found
    from gleaner.match_contact(new.sender_kind, new.sender_address, new.provider_id) as m;
    if v_found.candidates = '{}' and new.sender_kind = 'email' and v_phone is not null then
        select m.method, m.candidates into v_found from gleaner.match_contact('phone', v_phone, new.provider_id) as m;
    end if;

    if cardinality(v_found.candidates) = 1 then
        new.contact_id := v_found.candidates[1];
    elsif v_found.candidates <> '{}' and jsonb_typeof(coalesce(new.metadata, '{}')) = 'object' then
        new.metadata := coalesce(new.metadata, '{}')
            || jsonb_build_object('match', jsonb_build_object('method', v_found.method, 'candidates', v_found.candidates));
    end if;
    return new;
end
$$;
comment on function public.auto_link_contact() is 'Links a new activity to the one contact its sender matches.';
revoke all on function public.auto_link_contact() from public, anon, authenticated;

create or replace trigger before_insert_activity_link_contact
before insert on public.activities
for each row
when (new.contact_id is null and (new.sender_address is not null or new.metadata ? 'from' or new.raw_data ? 'sender'))
execute function public.auto_link_contact();
