-- A worker's key sees the rows it holds, or held last, and nothing else; nor does it put anything in.
drop policy if exists scheduled_actions_workers on public.scheduled_actions;
create policy scheduled_actions_workers on public.scheduled_actions as restrictive to authenticated
    using ((select gleaner.worker_session()) is null or session = (select gleaner.worker_session()))
    with check ((select gleaner.worker_session()) is null);
