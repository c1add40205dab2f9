/*
 * Why an action is no longer wanted: its contact replied since it was armed, or is not to be written to. Null when it is.
 */
create or replace function gleaner.reason_not_to_send(p_row public.scheduled_actions, p_to text) returns text
language plpgsql stable
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_names text[] := array[p_row.prospect_id, 'telegram:' || p_row.prospect_id];
begin
    if exists (select from public.do_not_contact as d
               where d.address = any (v_names || p_to || ('telegram:' || p_to)) or d.contact_id = p_row.contact_id) then
        return 'the prospect is not to be written to';
    end if;
    if p_row.payload ->> 'keep_on_reply' is not distinct from 'true' or to_regclass('public.activities') is null then
        return null;
    end if;
    if exists (
        select from public.activities as a
        where a.contact_id = p_row.contact_id and a.created_at >= p_row.armed_at
          and a.direction = 'inbound' and a.type in ('email', 'call', 'sms', 'whatsapp', 'other')
          and a.metadata ->> 'automatic' is distinct from 'true')
       or p_row.contact_id is null and exists (
        select from public.activities as a
        where a.contact_id is null and a.sender_kind in ('email', 'phone', 'other') and a.sender_address = any (v_names)
          and a.created_at >= p_row.armed_at and a.direction = 'inbound' and a.metadata ->> 'automatic' is distinct from 'true')
    then
        return 'the prospect replied';
    end if;
    return null;
end
$$;
comment on function gleaner.reason_not_to_send(public.scheduled_actions, text) is 'Why an action is no longer wanted; null when it is.';
revoke all on function gleaner.reason_not_to_send(public.scheduled_actions, text) from public, anon, authenticated;
grant execute on function gleaner.reason_not_to_send(public.scheduled_actions, text) to service_role;
