-- Identities belong to the team, as contacts do.
alter table public.contact_identities enable row level security;
revoke all on public.contact_identities from public, anon, authenticated;
grant select, insert, update, delete on public.contact_identities to authenticated;
grant all on public.contact_identities to service_role;
grant select on public.contact_identities to gleaner_engine;

drop policy if exists contact_identities_service on public.contact_identities;
create policy contact_identities_service on public.contact_identities to service_role using (true) with check (true);
drop policy if exists contact_identities_engine on public.contact_identities;
create policy contact_identities_engine on public.contact_identities for select to gleaner_engine using (true);
drop policy if exists contact_identities_team on public.contact_identities;
create policy contact_identities_team on public.contact_identities to authenticated
    using ((select gleaner.is_member())) with check ((select gleaner.is_member()));
drop policy if exists contact_identities_workers on public.contact_identities;
create policy contact_identities_workers on public.contact_identities as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
