-- The team's feed, for the team alone: who merely signed in is not of it. Less the rows of owners who keep their work private: those are for the owner and administrators.
-- Row level security guards privacy here and nothing else. That only the holder ends the work is the adapter trigger's
-- to enforce: a policy cannot distinguish two devices of one user, and would forbid linking a contact on a row that is not held.
alter table public.activities enable row level security;
revoke all on public.activities from public, anon, authenticated;
grant select, insert, update on public.activities to authenticated;
grant all on public.activities to service_role;
grant select, insert, update, delete on public.activities to gleaner_engine;

drop policy if exists activities_service on public.activities;
create policy activities_service on public.activities to service_role using (true) with check (true);
drop policy if exists activities_engine on public.activities;
create policy activities_engine on public.activities to gleaner_engine using (true) with check (true);

-- Restrictive, because permissive policies are OR-ed and one more permissive policy would open everything. The owner's row
-- is asked, not a copy of it, so that a changed mind holds at once; an owner who cannot be seen counts as private.
-- The check is open by itself: the update that ends the work clears locked_by, and must pass.
drop policy if exists activities_privacy on public.activities;
create policy activities_privacy on public.activities as restrictive to authenticated
    using (
        sales_id is null
        -- A worker sees no owners; what it holds was given to it by an act that asked them.
        or session = (select gleaner.worker_session())
        or exists (
            select
            from public.sales as owner
            where owner.id = activities.sales_id
              and (owner.allow_remote_processing
                   or owner.user_id = (select auth.uid())
                   or (select gleaner.is_administrator()))))
    with check (true);

drop policy if exists activities_read on public.activities;
create policy activities_read on public.activities for select to authenticated using ((select gleaner.is_member()));
drop policy if exists activities_insert on public.activities;
create policy activities_insert on public.activities for insert to authenticated with check ((select gleaner.is_member()));
drop policy if exists activities_update on public.activities;
create policy activities_update on public.activities for update to authenticated
    using ((select gleaner.is_member())) with check ((select gleaner.is_member()));
