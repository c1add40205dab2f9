-- Waiting dumps by workspace, deepest first. Counted up to 10,000 in each, by idx_queue_workspace alone.
create or replace view public.queue_depth_by_workspace with (security_invoker = true) as
select w.name as workspace, sum(q.pending)::bigint as pending_dumps
from public.workspaces as w
cross join lateral (
    select count(*) as pending
    from (
        select
        from public.agent_processing_queue as queue
        where queue.workspace_id = w.id
          and queue.processing_state = 'pending'
        limit 10000
    ) as waiting
) as q
where q.pending > 0
group by w.name
order by pending_dumps desc;
comment on view public.queue_depth_by_workspace is 'Waiting dumps by workspace, counted up to 10,000 in each.';
revoke all on public.queue_depth_by_workspace from public, anon, authenticated;
grant select on public.queue_depth_by_workspace to authenticated, service_role;
