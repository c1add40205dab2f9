-- A worker's key sees the rows it holds, or held last, and nothing else; nor does it put anything in.
drop policy if exists agent_processing_queue_workers on public.agent_processing_queue;
create policy agent_processing_queue_workers on public.agent_processing_queue as restrictive to authenticated
    using ((select gleaner.worker_session()) is null or session = (select gleaner.worker_session()))
    with check ((select gleaner.worker_session()) is null);
drop policy if exists workspaces_workers on public.workspaces;
create policy workspaces_workers on public.workspaces as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists baskets_workers on public.baskets;
create policy baskets_workers on public.baskets as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists raw_dumps_workers on public.raw_dumps;
create policy raw_dumps_workers on public.raw_dumps as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists blocks_workers on public.blocks;
create policy blocks_workers on public.blocks as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists context_items_workers on public.context_items;
create policy context_items_workers on public.context_items as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists context_item_sources_workers on public.context_item_sources;
create policy context_item_sources_workers on public.context_item_sources as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists substrate_relationships_workers on public.substrate_relationships;
create policy substrate_relationships_workers on public.substrate_relationships as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists workspace_members_workers on public.workspace_members;
create policy workspace_members_workers on public.workspace_members as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
drop policy if exists workspace_invitations_workers on public.workspace_invitations;
create policy workspace_invitations_workers on public.workspace_invitations as restrictive to authenticated
    using ((select gleaner.worker_session()) is null) with check ((select gleaner.worker_session()) is null);
