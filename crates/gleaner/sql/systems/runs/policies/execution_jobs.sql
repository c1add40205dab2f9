-- Members queue runs and watch them; runners use the service key.
alter table public.execution_jobs enable row level security;
revoke all on public.execution_jobs from public, anon, authenticated;
grant select, insert on public.execution_jobs to authenticated;
grant all on public.execution_jobs to service_role;
grant select, insert, update, delete on public.execution_jobs to gleaner_engine;

drop policy if exists execution_jobs_service on public.execution_jobs;
create policy execution_jobs_service on public.execution_jobs to service_role using (true) with check (true);
drop policy if exists execution_jobs_engine on public.execution_jobs;
create policy execution_jobs_engine on public.execution_jobs to gleaner_engine using (true) with check (true);
drop policy if exists execution_jobs_read on public.execution_jobs;
create policy execution_jobs_read on public.execution_jobs for select to authenticated using ((select gleaner.is_member()));
drop policy if exists execution_jobs_insert on public.execution_jobs;
create policy execution_jobs_insert on public.execution_jobs for insert to authenticated with check ((select gleaner.is_member()));
