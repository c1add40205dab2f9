/*
 * What is needed to compute the occurrences of a schedule, with the database's time.
 * Takes    {id, lease}
 * Returns  {outcome: lost} when the caller does not hold it; else {outcome: ready, now, cron, time_zone, …}.
 */
create or replace function gleaner.prepare_schedule(p_request jsonb) returns jsonb
language sql volatile
set search_path = pg_catalog, public, pg_temp
as $$
    select coalesce((
        select jsonb_build_object(
            'outcome', 'ready', 'now', clock_timestamp(), 'cron', s.cron, 'time_zone', s.time_zone, 'missed', s.missed,
            'missed_limit', s.missed_limit, 'tolerance_seconds', extract(epoch from s.tolerance), 'seen_until', s.seen_until,
            'ends_at', s.ends_at)
        from public.followup_schedules as s
        where s.id = (p_request ->> 'id')::uuid and s.lease = (p_request ->> 'lease')::bigint and s.status = 'working'
    ), '{"outcome": "lost"}')
$$;
comment on function gleaner.prepare_schedule(jsonb) is 'What is needed to compute the occurrences of a schedule that the caller holds.';
revoke all on function gleaner.prepare_schedule(jsonb) from public, anon, authenticated;
grant execute on function gleaner.prepare_schedule(jsonb) to service_role;
