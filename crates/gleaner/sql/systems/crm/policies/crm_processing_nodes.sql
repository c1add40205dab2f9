-- Everyone in the team sees which devices work; each person reports for their own.
alter table public.crm_processing_nodes enable row level security;
revoke all on public.crm_processing_nodes from public, anon, authenticated;
grant select, insert, update, delete on public.crm_processing_nodes to authenticated;
grant all on public.crm_processing_nodes to service_role;
grant select, insert, update, delete on public.crm_processing_nodes to gleaner_engine;

drop policy if exists crm_processing_nodes_service on public.crm_processing_nodes;
create policy crm_processing_nodes_service on public.crm_processing_nodes to service_role using (true) with check (true);
drop policy if exists crm_processing_nodes_engine on public.crm_processing_nodes;
create policy crm_processing_nodes_engine on public.crm_processing_nodes to gleaner_engine using (true) with check (true);

drop policy if exists crm_processing_nodes_read on public.crm_processing_nodes;
create policy crm_processing_nodes_read on public.crm_processing_nodes for select to authenticated using ((select gleaner.is_member()));
drop policy if exists crm_processing_nodes_own on public.crm_processing_nodes;
create policy crm_processing_nodes_own on public.crm_processing_nodes to authenticated
    using ((select gleaner.is_member()) and sales_id in (select s.id from public.sales as s where s.user_id = (select auth.uid())))
    with check ((select gleaner.is_member()) and sales_id in (select s.id from public.sales as s where s.user_id = (select auth.uid())));
