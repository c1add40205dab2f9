-- Members keep the preferences of contacts and the list of people who are not written to; the daemon reads both.
alter table public.contact_preferences enable row level security;
alter table public.do_not_contact enable row level security;
revoke all on public.contact_preferences, public.do_not_contact from public, anon, authenticated;
grant select, insert, update, delete on public.contact_preferences, public.do_not_contact to authenticated;
grant all on public.contact_preferences, public.do_not_contact to service_role;

drop policy if exists contact_preferences_service on public.contact_preferences;
create policy contact_preferences_service on public.contact_preferences to service_role using (true) with check (true);
drop policy if exists contact_preferences_read on public.contact_preferences;
create policy contact_preferences_read on public.contact_preferences for select to authenticated using ((select gleaner.is_member()));
-- What holds for everybody is for administrators.
drop policy if exists contact_preferences_write on public.contact_preferences;
create policy contact_preferences_write on public.contact_preferences to authenticated
    using ((select gleaner.is_member()) and (contact_id is not null or (select gleaner.is_administrator())))
    with check ((select gleaner.is_member()) and (contact_id is not null or (select gleaner.is_administrator())));
drop policy if exists contact_preferences_workers on public.contact_preferences;
create policy contact_preferences_workers on public.contact_preferences as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);

drop policy if exists do_not_contact_service on public.do_not_contact;
create policy do_not_contact_service on public.do_not_contact to service_role using (true) with check (true);
drop policy if exists do_not_contact_team on public.do_not_contact;
create policy do_not_contact_team on public.do_not_contact to authenticated
    using ((select gleaner.is_member())) with check ((select gleaner.is_member()));
drop policy if exists do_not_contact_workers on public.do_not_contact;
create policy do_not_contact_workers on public.do_not_contact as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
