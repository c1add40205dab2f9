/*
 * People were heard from: what was planned for them is called off, in the transaction that stores what they said. A message
 * that says STOP puts its sender on the list of people who are not written to, and START takes them off it.
 *
 * Takes    [{id, type, contact_id, sender_kind, sender_address, at, automatic, text, subject}], from gleaner.hear_replies.
 * Cancels  unfinished actions that were armed before the message came, running ones included. Not one whose sending has begun: it may
 *          be on its way, and a cancelled row would deny it. Not one with payload.keep_on_reply. An automatic answer cancels nothing.
 * Pauses   schedules with until_reply.
 * Rights   the message decides and not who stored it: plain updates, which the adapter makes acts, and a note in the audit.
 * Races    the row is locked and looked at again: of a reply and a sending step at the same moment, the first to lock decides.
 */
create or replace function gleaner.answer_replies(p_heard jsonb) returns void
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_reply record;
    v_ids   uuid[];
    v_why   text;
begin
    for v_reply in
        select r.*, gleaner.opt_out_word(coalesce(nullif(r.text, ''), r.subject), r.type) as word,
               -- The names under which an action may know a sender who is not a contact.
               array[r.sender_address, substr(r.sender_address, strpos(r.sender_address, ':') + 1)] as names
        from jsonb_to_recordset(p_heard) as r (
            id uuid, type text, contact_id bigint, sender_kind text, sender_address text, at timestamptz, automatic boolean, text text, subject text)
        where r.automatic is not true
        order by r.contact_id, r.sender_address
    loop
        v_why := 'the prospect replied';
        if v_reply.word = 'stop' then
            v_why := 'the prospect asked for no more messages';
            insert into public.do_not_contact as d (address, contact_id, reason)
            values (coalesce(v_reply.sender_address, 'contact:' || v_reply.contact_id), v_reply.contact_id, 'asked for it')
            on conflict (address) do update set contact_id = coalesce(excluded.contact_id, d.contact_id);
        elsif v_reply.word = 'start' then
            delete from public.do_not_contact as d
            where d.reason = 'asked for it' and (d.address = v_reply.sender_address or d.contact_id = v_reply.contact_id);
        end if;
        v_ids := array(
            select a.id
            from public.scheduled_actions as a
            where (a.contact_id = v_reply.contact_id or a.contact_id is null and a.prospect_id = any (v_reply.names))
              and (a.status in ('pending', 'processing') or a.status = 'failed' and a.due_at is not null)
              and not (a.status = 'processing' and a.sending_lease is not distinct from a.lease)
              and a.armed_at <= v_reply.at
              and a.payload ->> 'keep_on_reply' is distinct from 'true'
            order by a.id
            for no key update);
        update public.scheduled_actions as a set status = 'cancelled', cancelled_reason = v_why where a.id = any (v_ids);
        with paused as (
            update public.followup_schedules as s set status = 'paused', paused_reason = v_why
            where (s.contact_id = v_reply.contact_id or s.contact_id is null and s.prospect_id = any (v_reply.names))
              and s.until_reply and s.status in ('active', 'working') and s.created_at <= v_reply.at
            returning s.id
        )
        insert into gleaner.audit (queue, key, act, caller, detail)
        select c.queue, c.id::text, 'cancel', gleaner.caller_session(), jsonb_build_object('reason', v_why, 'activity', v_reply.id)
        from (select 'followups', u.id from unnest(v_ids) as u (id) union all select 'schedules', p.id from paused as p) as c (queue, id);
    end loop;
end
$$;
comment on function gleaner.answer_replies(jsonb) is 'Calls off what was planned for people who were heard from.';
revoke all on function gleaner.answer_replies(jsonb) from public, anon, authenticated, service_role;
