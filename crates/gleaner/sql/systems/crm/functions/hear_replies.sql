/*
 * Tells other systems that people were heard from, in the transaction that stores what they said: a system that has
 * gleaner.answer_replies is called with the new messages. Without one nothing happens.
 *
 * Fires    once per statement. Messages whose contact becomes known later are told by gleaner.hear_linked.
 */
create or replace function gleaner.hear_replies() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    -- Looked up when it is reached: the system may come later.
    if to_regprocedure('gleaner.answer_replies(jsonb)') is not null then
        perform gleaner.answer_replies((
            select jsonb_agg(jsonb_build_object(
                'id', h.id, 'type', h.type, 'contact_id', h.contact_id, 'sender_kind', h.sender_kind, 'sender_address', h.sender_address,
                'automatic', h.metadata -> 'automatic', 'at', h.created_at, 'text', left(h.raw_data ->> 'content', 1000), 'subject', left(h.raw_data ->> 'subject', 200)))
            from heard as h
            where h.direction = 'inbound' and h.type in ('email', 'call', 'sms', 'whatsapp', 'other')
              and (h.contact_id is not null or h.sender_address is not null)));
    end if;
    return null;
end
$$;
comment on function gleaner.hear_replies() is 'Tells other systems, in the same transaction, that people were heard from.';
revoke all on function gleaner.hear_replies() from public, anon, authenticated;

create or replace trigger hear_replies
after insert on public.activities
referencing new table as heard
for each statement execute function gleaner.hear_replies();
