/*
 * The same as gleaner.hear_replies for messages whose contact becomes known after they arrived: by a second look, or by a person.
 * A trigger for one column cannot have transition tables, so this one fires per row.
 */
create or replace function gleaner.hear_linked() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    if to_regprocedure('gleaner.answer_replies(jsonb)') is not null then
        perform gleaner.answer_replies(jsonb_build_array(jsonb_build_object(
            'id', new.id, 'type', new.type, 'contact_id', new.contact_id, 'sender_kind', new.sender_kind,
            'sender_address', new.sender_address, 'automatic', new.metadata -> 'automatic', 'at', new.created_at,
            'text', left(new.raw_data ->> 'content', 1000), 'subject', left(new.raw_data ->> 'subject', 200))));
    end if;
    return null;
end
$$;
comment on function gleaner.hear_linked() is 'Tells other systems whose message it was, when that becomes known later.';
revoke all on function gleaner.hear_linked() from public, anon, authenticated;

create or replace trigger hear_linked
after update of contact_id on public.activities
for each row
when (new.contact_id is not null and new.contact_id is distinct from old.contact_id
      and new.direction = 'inbound' and new.type in ('email', 'call', 'sms', 'whatsapp', 'other'))
execute function gleaner.hear_linked();
