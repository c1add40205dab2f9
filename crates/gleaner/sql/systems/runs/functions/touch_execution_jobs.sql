/*
 * Keeps version and updated_at, which hand-written claims compare: a runner that read version 1 must find 2 once another session
 * has taken the job, the engine included, whose acts know of neither column.
 */
create or replace function public.touch_execution_jobs() returns trigger
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
begin
    new.updated_at := clock_timestamp();
    if new.status is distinct from old.status then
        new.version := old.version + 1;
    end if;
    return new;
end
$$;
comment on function public.touch_execution_jobs() is 'Keeps version and updated_at of test runs.';
revoke all on function public.touch_execution_jobs() from public, anon, authenticated;

create or replace trigger touch_execution_jobs
before update on public.execution_jobs
for each row execute function public.touch_execution_jobs();
