-- Members see what is planned; the agent that plans and the daemon that sends use the service key.
alter table public.scheduled_actions enable row level security;
revoke all on public.scheduled_actions from public, anon, authenticated;
grant select on public.scheduled_actions to authenticated;
grant all on public.scheduled_actions to service_role;
grant select, insert, update, delete on public.scheduled_actions to gleaner_engine;

drop policy if exists scheduled_actions_service on public.scheduled_actions;
create policy scheduled_actions_service on public.scheduled_actions to service_role using (true) with check (true);
drop policy if exists scheduled_actions_engine on public.scheduled_actions;
create policy scheduled_actions_engine on public.scheduled_actions to gleaner_engine using (true) with check (true);
drop policy if exists scheduled_actions_read on public.scheduled_actions;
create policy scheduled_actions_read on public.scheduled_actions for select to authenticated using ((select gleaner.is_member()));
