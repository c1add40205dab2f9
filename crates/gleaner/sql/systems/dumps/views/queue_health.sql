-- Dumps by state and age. Bounded, so that a dashboard cannot melt the database: per state at most the 100,000 oldest are
-- counted, by the index alone; a count of 100,000 reads "or more", and the average is over those.
create or replace view public.queue_health with (security_invoker = true) as
select state.processing_state, q.count, q.avg_age_seconds, q.max_age_seconds
from unnest(enum_range(null::public.processing_state)) as state (processing_state)
cross join lateral (
    select count(*) as count,
           avg(extract(epoch from (now() - oldest.created_at))) as avg_age_seconds,
           max(extract(epoch from (now() - oldest.created_at))) as max_age_seconds
    from (
        select queue.created_at
        from public.agent_processing_queue as queue
        where queue.processing_state = state.processing_state
        order by queue.created_at
        limit 100000
    ) as oldest
) as q
where q.count > 0;
comment on view public.queue_health is 'Dumps by state: how many (counted up to 100,000) and how old.';
revoke all on public.queue_health from public, anon, authenticated;
grant select on public.queue_health to authenticated, service_role;
