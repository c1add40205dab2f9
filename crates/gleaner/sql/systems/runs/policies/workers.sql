-- A worker's key sees the rows it holds, or held last, and nothing else; nor does it put anything in.
drop policy if exists execution_jobs_workers on public.execution_jobs;
create policy execution_jobs_workers on public.execution_jobs as restrictive to authenticated
    using ((select gleaner.worker_session()) is null or session = (select gleaner.worker_session()))
    with check ((select gleaner.worker_session()) is null);
