/*
 * Turns occurrences of a schedule into follow-ups, and lets the schedule wait for the next: in one transaction, so that a crash
 * leaves both or neither.
 * Takes    {id, lease, seen_from, seen_until, occurrences, missed, next}. Without next the schedule has ended. seen_from is what
 *          gleaner.prepare_schedule said: a schedule that was changed since then is looked at once more.
 * Returns  {outcome, added}: done; changed; lost when the caller does not hold it, and nothing changes.
 * Races    an occurrence that is already a row stays as it is.
 */
create or replace function gleaner.advance_schedule(p_request jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_row   public.followup_schedules;
    v_next  timestamptz := (p_request ->> 'next')::timestamptz;
    v_added bigint;
begin
    select s.* into v_row from public.followup_schedules as s where s.id = (p_request ->> 'id')::uuid for no key update;
    if not found or v_row.status <> 'working' or v_row.lease <> (p_request ->> 'lease')::bigint then
        return '{"outcome": "lost"}';
    end if;
    if v_row.seen_until <> (p_request ->> 'seen_from')::timestamptz then
        perform from gleaner.snooze_schedules(v_row.id, v_row.lease, clock_timestamp());
        return '{"outcome": "changed"}';
    end if;
    with added as (
        insert into public.scheduled_actions (prospect_id, contact_id, action_type, scheduled_for, payload, schedule_id, occurrence)
        select v_row.prospect_id, v_row.contact_id, v_row.action_type, o.at::timestamptz, v_row.payload, v_row.id, o.at::timestamptz
        from jsonb_array_elements_text(p_request -> 'occurrences') with ordinality as o (at, n)
        order by o.n
        on conflict (schedule_id, occurrence) where schedule_id is not null do nothing
        returning 1
    )
    select count(*) into v_added from added;
    update public.followup_schedules as s
    set seen_until = (p_request ->> 'seen_until')::timestamptz, missed_count = s.missed_count + (p_request ->> 'missed')::bigint,
        last_occurrence = coalesce((p_request #>> '{occurrences,-1}')::timestamptz, s.last_occurrence),
        next_at = coalesce(v_next, s.next_at), error_message = null
    where s.id = v_row.id;
    if v_next is null then
        perform from gleaner.complete_schedules(v_row.id, v_row.lease);
    else
        perform from gleaner.snooze_schedules(v_row.id, v_row.lease, v_next);
    end if;
    return jsonb_build_object('outcome', 'done', 'added', v_added);
end
$$;
comment on function gleaner.advance_schedule(jsonb) is 'Turns occurrences of a schedule into follow-ups and appoints the next.';
revoke all on function gleaner.advance_schedule(jsonb) from public, anon, authenticated;
grant execute on function gleaner.advance_schedule(jsonb) to service_role;
