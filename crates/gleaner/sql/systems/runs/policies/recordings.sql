-- Members of the team read recordings and runs, and add recordings; who added a recording deletes it, and so do administrators.
-- Results and artefacts are written by agents, with the service key.

alter table public.recordings enable row level security;
revoke all on public.recordings from public, anon, authenticated;
grant select, insert, delete on public.recordings to authenticated;
grant all on public.recordings to service_role;
drop policy if exists recordings_service on public.recordings;
create policy recordings_service on public.recordings to service_role using (true) with check (true);
drop policy if exists recordings_read on public.recordings;
create policy recordings_read on public.recordings for select to authenticated using ((select gleaner.is_member()));
drop policy if exists recordings_insert on public.recordings;
create policy recordings_insert on public.recordings for insert to authenticated with check ((select gleaner.is_member()));
drop policy if exists recordings_delete on public.recordings;
create policy recordings_delete on public.recordings for delete to authenticated
    using ((select gleaner.is_member()) and (created_by = (select auth.uid()) or (select gleaner.is_administrator())));

alter table public.recording_versions enable row level security;
revoke all on public.recording_versions from public, anon, authenticated;
grant select, insert on public.recording_versions to authenticated;
revoke all on public.recording_versions from service_role;
grant select, insert, delete on public.recording_versions to service_role;
drop policy if exists recording_versions_service on public.recording_versions;
create policy recording_versions_service on public.recording_versions to service_role using (true) with check (true);
drop policy if exists recording_versions_read on public.recording_versions;
create policy recording_versions_read on public.recording_versions for select to authenticated using ((select gleaner.is_member()));
drop policy if exists recording_versions_insert on public.recording_versions;
create policy recording_versions_insert on public.recording_versions for insert to authenticated with check ((select gleaner.is_member()));

alter table public.run_rows enable row level security;
revoke all on public.run_rows from public, anon, authenticated;
grant select on public.run_rows to authenticated;
grant all on public.run_rows to service_role;
drop policy if exists run_rows_service on public.run_rows;
create policy run_rows_service on public.run_rows to service_role using (true) with check (true);
drop policy if exists run_rows_read on public.run_rows;
create policy run_rows_read on public.run_rows for select to authenticated using ((select gleaner.is_member()));

alter table public.run_artefacts enable row level security;
revoke all on public.run_artefacts from public, anon, authenticated;
grant select on public.run_artefacts to authenticated;
grant all on public.run_artefacts to service_role;
drop policy if exists run_artefacts_service on public.run_artefacts;
create policy run_artefacts_service on public.run_artefacts to service_role using (true) with check (true);
drop policy if exists run_artefacts_read on public.run_artefacts;
create policy run_artefacts_read on public.run_artefacts for select to authenticated using ((select gleaner.is_member()));

alter table public.run_sites enable row level security;
revoke all on public.run_sites from public, anon, authenticated;
grant select, insert, update, delete on public.run_sites to authenticated;
grant all on public.run_sites to service_role;
drop policy if exists run_sites_service on public.run_sites;
create policy run_sites_service on public.run_sites to service_role using (true) with check (true);
drop policy if exists run_sites_read on public.run_sites;
create policy run_sites_read on public.run_sites for select to authenticated using ((select gleaner.is_member()));
drop policy if exists run_sites_write on public.run_sites;
create policy run_sites_write on public.run_sites to authenticated
    using ((select gleaner.is_administrator())) with check ((select gleaner.is_administrator()));

-- For the server's own login alone.
alter table gleaner.forgotten_artefacts enable row level security;
revoke all on gleaner.forgotten_artefacts from public, anon, authenticated, service_role;
