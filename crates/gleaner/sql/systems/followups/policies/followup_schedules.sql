-- Members see what recurs and plan by schedule_recurring_followup; the agent that works the schedules uses the service key.
alter table public.followup_schedules enable row level security;
revoke all on public.followup_schedules from public, anon, authenticated;
grant select on public.followup_schedules to authenticated;
grant all on public.followup_schedules to service_role;
grant select, insert, update, delete on public.followup_schedules to gleaner_engine;

drop policy if exists followup_schedules_service on public.followup_schedules;
create policy followup_schedules_service on public.followup_schedules to service_role using (true) with check (true);
drop policy if exists followup_schedules_engine on public.followup_schedules;
create policy followup_schedules_engine on public.followup_schedules to gleaner_engine using (true) with check (true);
drop policy if exists followup_schedules_read on public.followup_schedules;
create policy followup_schedules_read on public.followup_schedules for select to authenticated using ((select gleaner.is_member()));
drop policy if exists followup_schedules_workers on public.followup_schedules;
create policy followup_schedules_workers on public.followup_schedules as restrictive to authenticated
    using ((select gleaner.worker_session()) is null or session = (select gleaner.worker_session()))
    with check ((select gleaner.worker_session()) is null);
