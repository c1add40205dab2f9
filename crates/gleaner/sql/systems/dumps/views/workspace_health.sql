-- How each workspace fares: what waits, what runs, what failed for good, and the last day's speed. Counted up to 10,000 each.
create or replace view public.workspace_health with (security_invoker = true) as
select w.id as workspace_id, w.name as workspace, q.pending, q.running, q.failed, q.oldest_pending_seconds,
       done.completed_24h, done.avg_duration_seconds, done.p95_duration_seconds
from public.workspaces as w
cross join lateral (
    select count(*) filter (where waiting.processing_state = 'pending') as pending,
           count(*) filter (where waiting.processing_state in ('claimed', 'processing')) as running,
           count(*) filter (where waiting.processing_state = 'failed') as failed,
           max(extract(epoch from (now() - waiting.created_at))) filter (where waiting.processing_state = 'pending') as oldest_pending_seconds
    from (
        select state.processing_state, found.created_at
        from unnest('{pending,claimed,processing,failed}'::public.processing_state[]) as state (processing_state)
        cross join lateral (
            select queue.created_at
            from public.agent_processing_queue as queue
            where queue.workspace_id = w.id
              and queue.processing_state = state.processing_state
            limit 10000
        ) as found
    ) as waiting
) as q
cross join lateral (
    select count(*) as completed_24h,
           avg(took.seconds) as avg_duration_seconds,
           percentile_cont(0.95) within group (order by took.seconds) as p95_duration_seconds
    from (
        select extract(epoch from (queue.completed_at - queue.created_at)) as seconds
        from public.agent_processing_queue as queue
        where queue.workspace_id = w.id
          and queue.processing_state = 'completed'
          and queue.completed_at > now() - interval '24 hours'
        limit 10000
    ) as took
) as done;
comment on view public.workspace_health is 'Dumps by workspace: waiting, running, failed, and the speed of the last 24 hours.';
revoke all on public.workspace_health from public, anon, authenticated;
grant select on public.workspace_health to authenticated, service_role;
