/*
 * A person says who an activity came from.
 *
 * p_backfill  also every other unmatched activity of the same sender.
 * p_remember  also gives the contact the sender's address, so that the next message is matched by itself.
 * Returns     each activity with `done`, `already` (it was this contact's) or `gone` (not there, or not for the caller to see).
 * Raises      GL003 when there is no such contact for the caller; 42501 when the caller may not give it the address.
 *
 * Security invoker: whoever may edit an activity may link it, as the feed's plain update may, and row level security says which
 * activities those are; a backfill does not reach the private rows of others. The record of it is written by a trigger (audit_link).
 */
create or replace function gleaner.link_activity(
    p_activity uuid, p_contact bigint, p_backfill boolean default false, p_remember boolean default false)
returns table (id uuid, outcome text)
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    v_sender record;
    v_others uuid[] := '{}';
    v_written text;
begin
    perform set_config('gleaner.by_hand', 'on', true);
    perform from public.contacts as c where c.id = p_contact;
    if not found then
        raise exception 'there is no contact %', p_contact using errcode = 'GL003', hint = 'Look for it with: select id, first_name, last_name from contacts';
    end if;
    select a.contact_id, a.sender_kind, a.sender_address, a.metadata ->> 'from' as said into v_sender
    from public.activities as a
    where a.id = p_activity
    for no key update;
    if not found then
        return query select p_activity, 'gone';
        return;
    end if;

    if p_backfill and v_sender.sender_address is not null then
        v_others := array(
            select a.id
            from public.activities as a
            where a.contact_id is null and a.sender_kind = v_sender.sender_kind and a.sender_address = v_sender.sender_address
              and a.id <> p_activity
            order by a.id
            for no key update);
    end if;
    if v_sender.contact_id is distinct from p_contact then
        update public.activities as a set contact_id = p_contact where a.id = p_activity;
    end if;
    if v_others <> '{}' then
        update public.activities as a set contact_id = p_contact where a.id = any (v_others);
    end if;
    -- What the server matches because of a new address is its own doing.
    perform set_config('gleaner.by_hand', '', true);

    if p_remember and v_sender.sender_kind in ('email', 'phone') then
        -- What is no possible number is kept as it was said: read again without its plus it would be another one.
        v_written := case when v_sender.sender_kind = 'email' or v_sender.sender_address like '+%' then v_sender.sender_address
                          else coalesce(nullif(v_sender.said, ''), v_sender.sender_address) end;
        if v_sender.sender_kind = 'email' then
            update public.contacts as c
            set email = coalesce(nullif(c.email, ''), v_written),
                email_jsonb = gleaner.with_address(c.email_jsonb, 'email', v_written)
            where c.id = p_contact;
        else
            update public.contacts as c
            set phone_number = coalesce(nullif(c.phone_number, ''), v_written),
                phone_jsonb = gleaner.with_address(c.phone_jsonb, 'number', v_written)
            where c.id = p_contact;
        end if;
        if not found then
            raise exception 'contact % is not yours to change', p_contact using errcode = '42501', hint = 'Link without adding the address.';
        end if;
    end if;

    return query
    select p_activity, case when v_sender.contact_id is distinct from p_contact then 'done' else 'already' end
    union all
    select o, 'done' from unnest(v_others) as o;
end
$$;
comment on function gleaner.link_activity(uuid, bigint, boolean, boolean) is
    'Links an activity to a contact, on request with everything unmatched from the same sender, and with the address.';
revoke all on function gleaner.link_activity(uuid, bigint, boolean, boolean) from public, anon;
grant execute on function gleaner.link_activity(uuid, bigint, boolean, boolean) to authenticated, service_role;
