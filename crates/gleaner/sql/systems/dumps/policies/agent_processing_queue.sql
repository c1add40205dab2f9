-- Members watch the dumps of their workspaces; workers use the service key. A worker's key is narrowed by another policy.
alter table public.agent_processing_queue enable row level security;
revoke all on public.agent_processing_queue from public, anon, authenticated;
grant select on public.agent_processing_queue to authenticated;
grant all on public.agent_processing_queue to service_role;
grant select, insert, update, delete on public.agent_processing_queue to gleaner_engine;

drop policy if exists agent_processing_queue_service on public.agent_processing_queue;
create policy agent_processing_queue_service on public.agent_processing_queue to service_role using (true) with check (true);
drop policy if exists agent_processing_queue_engine on public.agent_processing_queue;
create policy agent_processing_queue_engine on public.agent_processing_queue to gleaner_engine using (true) with check (true);
drop policy if exists agent_processing_queue_read on public.agent_processing_queue;
create policy agent_processing_queue_read on public.agent_processing_queue for select to authenticated
    using (workspace_id = any ((select gleaner.my_workspaces())::uuid[]) or (select gleaner.is_administrator())
           or (select gleaner.worker_session()) is not null);
