-- Members see the workspaces they belong to, their baskets and what agents made of them, and capture; administrators of the team
-- see all; the service key does everything.

alter table public.workspaces enable row level security;
revoke all on public.workspaces from public, anon, authenticated;
grant select on public.workspaces to authenticated;
grant all on public.workspaces to service_role;
drop policy if exists workspaces_service on public.workspaces;
create policy workspaces_service on public.workspaces to service_role using (true) with check (true);
drop policy if exists workspaces_read on public.workspaces;
create policy workspaces_read on public.workspaces for select to authenticated
    using (id = any ((select gleaner.my_workspaces())::uuid[]) or (select gleaner.is_administrator()));

alter table public.workspace_members enable row level security;
revoke all on public.workspace_members from public, anon, authenticated;
grant select, delete on public.workspace_members to authenticated;
grant all on public.workspace_members to service_role;
drop policy if exists workspace_members_service on public.workspace_members;
create policy workspace_members_service on public.workspace_members to service_role using (true) with check (true);
drop policy if exists workspace_members_read on public.workspace_members;
create policy workspace_members_read on public.workspace_members for select to authenticated
    using (workspace_id = any ((select gleaner.my_workspaces())::uuid[]) or (select gleaner.is_administrator()));
drop policy if exists workspace_members_delete on public.workspace_members;
create policy workspace_members_delete on public.workspace_members for delete to authenticated
    using (user_id = (select auth.uid()) or gleaner.owns_workspace(workspace_id));

alter table public.workspace_invitations enable row level security;
revoke all on public.workspace_invitations from public, anon, authenticated;
grant select, delete on public.workspace_invitations to authenticated;
grant all on public.workspace_invitations to service_role;
drop policy if exists workspace_invitations_service on public.workspace_invitations;
create policy workspace_invitations_service on public.workspace_invitations to service_role using (true) with check (true);
drop policy if exists workspace_invitations_read on public.workspace_invitations;
create policy workspace_invitations_read on public.workspace_invitations for select to authenticated
    using (gleaner.owns_workspace(workspace_id));
drop policy if exists workspace_invitations_delete on public.workspace_invitations;
create policy workspace_invitations_delete on public.workspace_invitations for delete to authenticated
    using (gleaner.owns_workspace(workspace_id));

alter table public.baskets enable row level security;
revoke all on public.baskets from public, anon, authenticated;
grant select, insert on public.baskets to authenticated;
grant all on public.baskets to service_role;
drop policy if exists baskets_service on public.baskets;
create policy baskets_service on public.baskets to service_role using (true) with check (true);
drop policy if exists baskets_read on public.baskets;
create policy baskets_read on public.baskets for select to authenticated
    using (workspace_id = any ((select gleaner.my_workspaces())::uuid[]) or (select gleaner.is_administrator()));
drop policy if exists baskets_insert on public.baskets;
create policy baskets_insert on public.baskets for insert to authenticated
    with check (workspace_id = any ((select gleaner.my_workspaces())::uuid[]) or (select gleaner.is_administrator()));

alter table public.raw_dumps enable row level security;
revoke all on public.raw_dumps from public, anon, authenticated;
grant select, insert, delete on public.raw_dumps to authenticated;
grant all on public.raw_dumps to service_role;
drop policy if exists raw_dumps_service on public.raw_dumps;
create policy raw_dumps_service on public.raw_dumps to service_role using (true) with check (true);
drop policy if exists raw_dumps_read on public.raw_dumps;
create policy raw_dumps_read on public.raw_dumps for select to authenticated
    using (basket_id in (select b.id from public.baskets as b));
drop policy if exists raw_dumps_insert on public.raw_dumps;
create policy raw_dumps_insert on public.raw_dumps for insert to authenticated
    with check (basket_id in (select b.id from public.baskets as b));
drop policy if exists raw_dumps_delete on public.raw_dumps;
create policy raw_dumps_delete on public.raw_dumps for delete to authenticated
    using (basket_id in (select b.id from public.baskets as b));

alter table public.blocks enable row level security;
revoke all on public.blocks from public, anon, authenticated;
grant select on public.blocks to authenticated;
grant all on public.blocks to service_role;
drop policy if exists blocks_service on public.blocks;
create policy blocks_service on public.blocks to service_role using (true) with check (true);
drop policy if exists blocks_read on public.blocks;
create policy blocks_read on public.blocks for select to authenticated
    using (basket_id in (select b.id from public.baskets as b));

alter table public.context_items enable row level security;
revoke all on public.context_items from public, anon, authenticated;
grant select on public.context_items to authenticated;
grant all on public.context_items to service_role;
drop policy if exists context_items_service on public.context_items;
create policy context_items_service on public.context_items to service_role using (true) with check (true);
drop policy if exists context_items_read on public.context_items;
create policy context_items_read on public.context_items for select to authenticated
    using (basket_id in (select b.id from public.baskets as b));

alter table public.substrate_relationships enable row level security;
revoke all on public.substrate_relationships from public, anon, authenticated;
grant select on public.substrate_relationships to authenticated;
grant all on public.substrate_relationships to service_role;
drop policy if exists substrate_relationships_service on public.substrate_relationships;
create policy substrate_relationships_service on public.substrate_relationships to service_role using (true) with check (true);
drop policy if exists substrate_relationships_read on public.substrate_relationships;
create policy substrate_relationships_read on public.substrate_relationships for select to authenticated
    using (basket_id in (select b.id from public.baskets as b));

alter table public.context_item_sources enable row level security;
revoke all on public.context_item_sources from public, anon, authenticated;
grant select on public.context_item_sources to authenticated;
grant all on public.context_item_sources to service_role;
drop policy if exists context_item_sources_service on public.context_item_sources;
create policy context_item_sources_service on public.context_item_sources to service_role using (true) with check (true);
drop policy if exists context_item_sources_read on public.context_item_sources;
create policy context_item_sources_read on public.context_item_sources for select to authenticated
    using (context_item_id in (select c.id from public.context_items as c));
