/*
 * What was sent is an outbound activity in the contact's timeline, in the transaction that says so. A dry run sent nothing, and
 * neither is anything recorded of an action that was executed by a program that did not say what it sent.
 * A timeline that rejects the row does not undo the fact: the message is out.
 */
create or replace function gleaner.record_outbound() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_channel uuid := (new.message ->> 'channel')::uuid;
begin
    if to_regclass('public.activities') is null then
        return null;
    end if;
    begin
        insert into public.activities (type, direction, contact_id, sales_id, processing_status, raw_data, metadata, provider_id, external_id)
        values (
            case new.message ->> 'sink' when 'email' then 'email' when 'sms' then 'sms' when 'whatsapp' then 'whatsapp' else 'other' end,
            'outbound', new.contact_id, (select c.sales_id from public.contacts as c where c.id = new.contact_id), 'completed',
            jsonb_strip_nulls(jsonb_build_object('source_type', 'text', 'content', new.message -> 'text', 'subject', new.message -> 'subject')),
            jsonb_strip_nulls(jsonb_build_object(
                'to', new.message -> 'to', 'sink', new.message -> 'sink', 'followup_id', new.id, 'message_id', new.result -> 'message_id')),
            v_channel, case when v_channel is not null then 'outbound:' || new.idempotency_key end)
        on conflict do nothing;
    exception when others then
        raise warning 'the message of follow-up % is not in the timeline: %', new.id, sqlerrm;
    end;
    return null;
end
$$;
comment on function gleaner.record_outbound() is 'Keeps what was sent as an outbound activity of the contact.';
revoke all on function gleaner.record_outbound() from public, anon, authenticated;

create or replace trigger record_outbound
after update of status on public.scheduled_actions
for each row
when (new.status = 'executed' and old.status is distinct from 'executed'
      and new.message is not null and new.result ->> 'dry_run' is distinct from 'true')
execute function gleaner.record_outbound();
