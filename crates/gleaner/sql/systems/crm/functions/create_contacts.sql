/*
 * Makes contacts of unknown senders, for those of these activities that came through a channel that wants it. Called right
 * after the ingest commit and never within it: a CRM's own triggers on contacts may do anything, HTTP included.
 *
 * Changes  contacts, in both shapes at once: plain columns and lists. Tagged where tags are words; where they are a CRM's ids
 *          of tags, not. And the activities' contact.
 * Races    senders are taken one by one under a lock on their address, in the order of the lock, and looked for once more:
 *          two messages of one new sender at once make one contact. An advisory lock, since nothing is there to be locked
 *          yet; it ends with the transaction. Nothing of the engine rests on it.
 * Returns  each activity with its contact: `created`, `linked` (known by now), `ambiguous` (several are), or `failed` when
 *          the table refused the contact; the activity is unmatched then, and the reason is in the notice.
 */
create or replace function gleaner.create_contacts(p_activity_ids uuid[])
returns table (id uuid, contact_id bigint, outcome text)
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    v_row     record;
    v_found   record;
    v_name    record;
    v_contact bigint;
    v_written text;
begin
    for v_row in
        select a.id, a.sender_kind as kind, a.sender_address as address, a.provider_id, a.sales_id, a.metadata, a.created_at, k.lock
        from public.activities as a
        join public.ingestion_providers as p on p.id = a.provider_id
        cross join lateral (
            -- Spellings that would match each other share the lock.
            select hashtextextended('gleaner contact ' || case a.sender_kind
                when 'email' then gleaner.loose_email(a.sender_address)
                else least(a.sender_address, (gleaner.phone_aliases(a.sender_address))[1]) end, 0)
        ) as k (lock)
        where a.id = any (p_activity_ids)
          and a.contact_id is null
          and a.sender_kind in ('email', 'phone') and a.sender_address is not null
          and (p.auto_create_contacts or p.config ->> 'auto_create_contacts' = 'true')
          -- Of several candidates one is meant, not a new one; and a spammer gets no contact.
          and a.metadata -> 'match' is null
          and a.metadata ->> 'spam' is distinct from 'true'
        order by k.lock, a.id
    loop
        perform pg_advisory_xact_lock(v_row.lock);
        select m.method, m.candidates into v_found from gleaner.match_contact(v_row.kind, v_row.address, v_row.provider_id) as m;
        id := v_row.id;
        contact_id := null;
        if cardinality(v_found.candidates) > 1 then
            update public.activities as a
            set metadata = a.metadata || jsonb_build_object('match', jsonb_build_object('method', v_found.method, 'candidates', v_found.candidates))
            where a.id = v_row.id and a.contact_id is null;
            outcome := 'ambiguous';
            return next;
            continue;
        elsif cardinality(v_found.candidates) = 1 then
            v_contact := v_found.candidates[1];
            outcome := 'linked';
        else
            -- What is no possible number is kept as it was said: read again without its plus it would be another one.
            v_written := case when v_row.kind = 'email' or v_row.address like '+%' then v_row.address
                              else coalesce(nullif(left(v_row.metadata ->> 'from', 100), ''), v_row.address) end;
            select n.first_name, n.last_name into v_name
            from gleaner.split_name(coalesce(v_row.metadata ->> 'sender_name', v_row.metadata ->> 'profile_name'), v_row.address) as n;
            begin
                v_contact := gleaner.insert_contact(
                    v_name.first_name, v_name.last_name, v_row.kind, v_written, v_row.sales_id, v_row.created_at);
                -- The sender was read properly when the message came: nothing to guess, and nothing to wait for.
                delete from public.contact_addresses as a where a.contact_id = v_contact;
                insert into public.contact_addresses (contact_id, kind, address, written, loose)
                values (v_contact, v_row.kind, v_row.address, v_written,
                        case v_row.kind when 'email' then gleaner.loose_email(v_row.address)
                                        else substring(v_row.address from '^\+1([0-9]{10})$') end);
                outcome := 'created';
            exception when others then
                raise warning 'no contact could be made of the sender of activity %: %', v_row.id, sqlerrm;
                outcome := 'failed';
                return next;
                continue;
            end;
        end if;
        update public.activities as a set contact_id = v_contact where a.id = v_row.id and a.contact_id is null;
        contact_id := v_contact;
        return next;
    end loop;
end
$$;
comment on function gleaner.create_contacts(uuid[]) is 'Makes contacts of the unknown senders of these activities, where their channel wants it.';
revoke all on function gleaner.create_contacts(uuid[]) from public, anon, authenticated, service_role;
