/*
 * Stores how one line of the data went, and renews the lease, in one transaction: another agent resumes after it.
 * Takes    {id, lease, row, of, status, error, failed_step, steps, duration_ms, hold_seconds}
 * Returns  {outcome}: done; lost, and then nothing is stored.
 */
create or replace function gleaner.record_row(p_request jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_id      uuid := (p_request ->> 'id')::uuid;
    v_row     integer := (p_request ->> 'row')::integer;
    v_of      integer := (p_request ->> 'of')::integer;
    v_outcome text;
begin
    select a.outcome into v_outcome
    from gleaner.progress_runs(v_id, (p_request ->> 'lease')::bigint, format('row %s of %s', v_row, v_of),
        p_percent => round(100.0 * v_row / v_of, 1), p_hold => make_interval(secs => (p_request ->> 'hold_seconds')::double precision)) as a;
    if v_outcome is distinct from 'done' then
        return jsonb_build_object('outcome', 'lost');
    end if;
    insert into public.run_rows (run_id, row_number, status, error, failed_step, steps, duration_ms, worker_id)
    select v_id, v_row, p_request ->> 'status', p_request ->> 'error', (p_request ->> 'failed_step')::integer, p_request -> 'steps',
           (p_request ->> 'duration_ms')::integer, r.worker_id
    from public.execution_jobs as r where r.id = v_id
    on conflict (run_id, row_number) do nothing;
    return jsonb_build_object('outcome', 'done');
end
$$;
comment on function gleaner.record_row(jsonb) is 'Stores how one line of the data of a run went.';
revoke all on function gleaner.record_row(jsonb) from public, anon, authenticated;
grant execute on function gleaner.record_row(jsonb) to service_role;
