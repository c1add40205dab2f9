-- A worker's key sees the rows it holds, or held last, and nothing else; nor does it put anything in.
drop policy if exists execution_jobs_workers on public.execution_jobs;
create policy execution_jobs_workers on public.execution_jobs as restrictive to authenticated
    using ((select gleaner.worker_session()) is null or session = (select gleaner.worker_session()))
    with check ((select gleaner.worker_session()) is null);
drop policy if exists recordings_workers on public.recordings;
create policy recordings_workers on public.recordings as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists recording_versions_workers on public.recording_versions;
create policy recording_versions_workers on public.recording_versions as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists run_rows_workers on public.run_rows;
create policy run_rows_workers on public.run_rows as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists run_artefacts_workers on public.run_artefacts;
create policy run_artefacts_workers on public.run_artefacts as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists run_sites_workers on public.run_sites;
create policy run_sites_workers on public.run_sites as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
