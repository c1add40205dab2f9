-- A dead letter holds a copy of the message: it is for those who may see the activity itself.
alter table public.activity_failures enable row level security;
revoke all on public.activity_failures from public, anon, authenticated;
grant select on public.activity_failures to authenticated;
grant all on public.activity_failures to service_role;
grant select, insert, update, delete on public.activity_failures to gleaner_engine;

drop policy if exists activity_failures_service on public.activity_failures;
create policy activity_failures_service on public.activity_failures to service_role using (true) with check (true);
drop policy if exists activity_failures_engine on public.activity_failures;
create policy activity_failures_engine on public.activity_failures to gleaner_engine using (true) with check (true);

drop policy if exists activity_failures_read on public.activity_failures;
create policy activity_failures_read on public.activity_failures for select to authenticated
    using (exists (select from public.activities as a where a.id = original_activity_id));
