/*
 * What is needed to compose and send an action: the action, the contact, how it is reached, and the conversation so far.
 * Takes    {id, lease}
 * Returns  {outcome: lost} when the caller does not hold it; else {outcome: ready, wait_seconds, action, contact, reached_by,
 *          last_heard, conversation}. wait_seconds is how long it is still too early, by the database's clock.
 * Changes  nothing, but the contact of an action that had none when it was planned.
 */
create or replace function gleaner.prepare_followup(p_request jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_row     public.scheduled_actions;
    v_contact jsonb;
    v_heard   jsonb;
    v_said    jsonb := '[]';
    v_reached jsonb := '{}';
    v_names   text[];
begin
    select a.* into v_row from public.scheduled_actions as a
    where a.id = (p_request ->> 'id')::uuid and a.lease = (p_request ->> 'lease')::bigint and a.status = 'processing';
    if not found then
        return '{"outcome": "lost"}';
    end if;
    if v_row.contact_id is null then
        v_row.contact_id := gleaner.contact_of_prospect(v_row.prospect_id);
        if v_row.contact_id is not null then
            update public.scheduled_actions as a set contact_id = v_row.contact_id where a.id = v_row.id;
        end if;
    end if;
    if to_regclass('public.activities') is not null then
        if v_row.contact_id is not null then
            select jsonb_build_object('id', c.id, 'first_name', c.first_name, 'last_name', c.last_name, 'sales_id', c.sales_id) into v_contact
            from public.contacts as c where c.id = v_row.contact_id;
            -- Of several addresses the one that was read for certain, then the first.
            select coalesce(jsonb_object_agg(k.kind, k.address), '{}') into v_reached
            from (
                select distinct on (n.kind) n.kind, n.address
                from (select a.kind, a.address, a.parsed, 1 as rank from public.contact_addresses as a where a.contact_id = v_row.contact_id
                      union all
                      select i.kind, i.value, true, 2 from public.contact_identities as i where i.contact_id = v_row.contact_id) as n
                order by n.kind, n.rank, n.parsed desc, n.address
            ) as k;
        end if;
        v_names := array[v_row.prospect_id, 'telegram:' || v_row.prospect_id];
        select jsonb_agg(to_jsonb(s) order by s.at) into v_said
        from (
            select a.created_at as at, a.direction, a.type, left(a.raw_data ->> 'content', 2000) as text, a.raw_data ->> 'subject' as subject,
                   a.provider_id, p.provider_code, a.sender_kind, a.sender_address, a.metadata ->> 'rfc_message_id' as rfc_message_id, a.metadata ->> 'to' as received_at
            from public.activities as a
            left join public.ingestion_providers as p on p.id = a.provider_id
            where a.type in ('email', 'call', 'sms', 'whatsapp', 'other')
              and (a.contact_id = v_row.contact_id
                   or v_row.contact_id is null and a.contact_id is null and a.sender_kind in ('email', 'phone', 'other') and a.sender_address = any (v_names))
            order by a.created_at desc limit 20
        ) as s;
        select h.value into v_heard from jsonb_array_elements(v_said) with ordinality as h (value, n)
        where h.value ->> 'direction' = 'inbound' order by h.n desc limit 1;
    end if;
    return jsonb_build_object(
        'outcome', 'ready',
        'wait_seconds', greatest(extract(epoch from v_row.scheduled_for - clock_timestamp()), 0),
        'action', jsonb_build_object(
            'id', v_row.id, 'prospect_id', v_row.prospect_id, 'action_type', v_row.action_type, 'scheduled_for', v_row.scheduled_for,
            'payload', v_row.payload, 'message', v_row.message, 'attempts', v_row.attempts),
        'contact', v_contact, 'reached_by', v_reached, 'last_heard', v_heard, 'conversation', coalesce(v_said, '[]'));
end
$$;
comment on function gleaner.prepare_followup(jsonb) is 'What is needed to compose and send an action that the caller holds.';
revoke all on function gleaner.prepare_followup(jsonb) from public, anon, authenticated;
grant execute on function gleaner.prepare_followup(jsonb) to service_role;
