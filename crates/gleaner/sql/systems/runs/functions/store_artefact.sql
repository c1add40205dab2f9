/*
 * Keeps a picture of a run that the caller holds; its file is stored already. One of the same step and name is replaced.
 * Takes    {id, run, lease, row, step, name, media_type, size, sha256, keep_days}
 * Returns  {outcome}: stored; lost when the caller does not hold the run; full when the run has 100 MB or 1000 files.
 */
create or replace function gleaner.store_artefact(p_request jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_run  uuid := (p_request ->> 'run')::uuid;
    v_size bigint := (p_request ->> 'size')::bigint;
    v_kept record;
begin
    -- One at a time for each run, and not beside a cancel.
    perform from public.execution_jobs as r
    where r.id = v_run and r.status = 'running' and r.lease = (p_request ->> 'lease')::bigint for no key update;
    if not found then
        return '{"outcome": "lost"}';
    end if;
    select count(*) as files, coalesce(sum(a.size), 0) as bytes into v_kept from public.run_artefacts as a where a.run_id = v_run;
    if v_kept.files >= 1000 or v_kept.bytes + v_size > 100000000 then
        return '{"outcome": "full"}';
    end if;
    delete from public.run_artefacts as a
    where a.run_id = v_run and a.row_number = (p_request ->> 'row')::integer and a.step = (p_request ->> 'step')::integer
      and a.name = p_request ->> 'name';
    insert into public.run_artefacts (id, run_id, row_number, step, name, media_type, size, sha256, expires_at)
    values ((p_request ->> 'id')::uuid, v_run, (p_request ->> 'row')::integer, (p_request ->> 'step')::integer, p_request ->> 'name',
            p_request ->> 'media_type', v_size, p_request ->> 'sha256',
            now() + make_interval(days => least(coalesce((p_request ->> 'keep_days')::integer, 30), 3650)));
    return '{"outcome": "stored"}';
end
$$;
comment on function gleaner.store_artefact(jsonb) is 'Keeps a picture of a run that the caller holds.';
revoke all on function gleaner.store_artefact(jsonb) from public, anon, authenticated;
grant execute on function gleaner.store_artefact(jsonb) to service_role;
