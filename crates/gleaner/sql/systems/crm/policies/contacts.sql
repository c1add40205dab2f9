-- Contacts belong to the team. Where the CRM was there first its own policies decide, and none of ours widens them.
revoke all on public.contacts from public, anon;
-- Truncate passes by row level security.
revoke truncate, references, trigger on public.contacts from authenticated;
grant select, insert, update, delete on public.contacts to authenticated;
grant all on public.contacts to service_role;
grant select on public.contacts to gleaner_engine;

drop policy if exists contacts_service on public.contacts;
create policy contacts_service on public.contacts to service_role using (true) with check (true);
drop policy if exists contacts_engine on public.contacts;
create policy contacts_engine on public.contacts for select to gleaner_engine using (true);

drop policy if exists contacts_team on public.contacts;
do $permissive$
begin
    if not exists (
        select from pg_catalog.pg_policies
        where schemaname = 'public' and tablename = 'contacts'
          and policyname not in ('contacts_service', 'contacts_engine', 'contacts_workers')
    ) then
        create policy contacts_team on public.contacts to authenticated
            using ((select gleaner.is_member())) with check ((select gleaner.is_member()));
    end if;
end
$permissive$;

-- Derived and read by definer triggers alone.
alter table public.contact_addresses enable row level security;
revoke all on public.contact_addresses from public, anon, authenticated;
grant select on public.contact_addresses to service_role;
drop policy if exists contact_addresses_service on public.contact_addresses;
create policy contact_addresses_service on public.contact_addresses for select to service_role using (true);
