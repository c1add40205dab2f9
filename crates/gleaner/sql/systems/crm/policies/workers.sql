-- A worker's key sees the rows it holds, or held last, and nothing else of the team's. Restrictive, so that no wider policy
-- gives it more. It puts nothing in: what it adds to the work is the result.
drop policy if exists activities_workers on public.activities;
create policy activities_workers on public.activities as restrictive to authenticated
    using ((select gleaner.worker_session()) is null or session = (select gleaner.worker_session()))
    with check (true);
drop policy if exists activities_workers_insert on public.activities;
create policy activities_workers_insert on public.activities as restrictive for insert to authenticated
    with check ((select gleaner.worker_session()) is null);

drop policy if exists sales_workers on public.sales;
create policy sales_workers on public.sales as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists contacts_workers on public.contacts;
create policy contacts_workers on public.contacts as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists crm_processing_nodes_workers on public.crm_processing_nodes;
create policy crm_processing_nodes_workers on public.crm_processing_nodes as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
