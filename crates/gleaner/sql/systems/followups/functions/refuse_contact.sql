/*
 * The sink says that a person must not be written to: blocked the bot, opted out with the carrier. They are put on the list,
 * and the action is cancelled.
 * Takes    {id, lease, reason}
 * Returns  {outcome}: done, or lost when the caller does not hold it.
 */
create or replace function gleaner.refuse_contact(p_request jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_row public.scheduled_actions;
begin
    select a.* into v_row from public.scheduled_actions as a where a.id = (p_request ->> 'id')::uuid for no key update;
    if not found or v_row.status <> 'processing' or v_row.lease <> (p_request ->> 'lease')::bigint then
        return '{"outcome": "lost"}';
    end if;
    insert into public.do_not_contact as d (address, contact_id, reason)
    values (coalesce(v_row.message ->> 'to', v_row.prospect_id), v_row.contact_id, p_request ->> 'reason')
    on conflict (address) do update set contact_id = coalesce(excluded.contact_id, d.contact_id);
    perform from gleaner.cancel_followups(array[v_row.id], p_request ->> 'reason');
    update public.scheduled_actions as a set cancelled_reason = p_request ->> 'reason' where a.id = v_row.id;
    return '{"outcome": "done"}';
end
$$;
comment on function gleaner.refuse_contact(jsonb) is 'Puts the recipient of an action on the list of people who are not written to.';
revoke all on function gleaner.refuse_contact(jsonb) from public, anon, authenticated;
grant execute on function gleaner.refuse_contact(jsonb) to service_role;
