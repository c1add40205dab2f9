/*
 * What an agent needs to replay a run that it holds; and the place in the line for its site.
 * Takes    {id, lease, slots}: slots is the limit for sites that run_sites does not name.
 * Returns  {outcome: lost} when the caller does not hold it; {outcome: deferred, wait_seconds, reason} while its site is in use;
 *          else {outcome: ready, recording, version, content, csv, config, rows, passed, failed}: rows are finished already.
 * Races    runs of one site are counted one at a time.
 */
create or replace function gleaner.begin_run(p_request jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_row     public.execution_jobs;
    v_slots   integer;
    v_used    bigint;
    v_version record;
    v_rows    record;
begin
    select r.* into v_row from public.execution_jobs as r where r.id = (p_request ->> 'id')::uuid;
    if v_row.site is not null then
        perform pg_advisory_xact_lock(hashtextextended('gleaner run site ' || v_row.site, 0));
    end if;
    select r.* into v_row from public.execution_jobs as r where r.id = (p_request ->> 'id')::uuid for no key update;
    if not found or v_row.status <> 'running' or v_row.lease <> (p_request ->> 'lease')::bigint then
        return '{"outcome": "lost"}';
    end if;
    v_slots := coalesce((select s.slots from public.run_sites as s where s.site = v_row.site), (p_request ->> 'slots')::integer);
    select count(*) into v_used
    from public.execution_jobs as r
    where r.site = v_row.site and r.status = 'running' and r.begun_lease = r.lease and r.id <> v_row.id and r.due_at > clock_timestamp();
    if v_used >= v_slots then
        return jsonb_build_object('outcome', 'deferred', 'wait_seconds', 5,
            'reason', format('%s runs use %s, and there may be %s at once', v_used, v_row.site, v_slots));
    end if;
    update public.execution_jobs as r set begun_lease = r.lease where r.id = v_row.id;
    select v.content, v.version, c.name into v_version
    from public.recording_versions as v join public.recordings as c on c.id = v.recording_id where v.id = v_row.recording_version_id;
    select count(*) as rows, count(*) filter (where n.status = 'passed') as passed into v_rows from public.run_rows as n where n.run_id = v_row.id;
    return jsonb_build_object('outcome', 'ready', 'recording', v_version.name, 'version', v_version.version, 'content', v_version.content,
        'csv', v_row.csv_data, 'config', v_row.config, 'rows', v_rows.rows, 'passed', v_rows.passed, 'failed', v_rows.rows - v_rows.passed);
end
$$;
comment on function gleaner.begin_run(jsonb) is 'What an agent needs to replay a run that it holds.';
revoke all on function gleaner.begin_run(jsonb) from public, anon, authenticated;
grant execute on function gleaner.begin_run(jsonb) to service_role;
