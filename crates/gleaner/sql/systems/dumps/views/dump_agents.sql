-- How busy each agent was in the last hour: the share of the time since its first claim in which it held at least one dump.
create or replace view public.dump_agents with (security_invoker = true) as
select held.agent, held.completed, held.running,
       round(held.busy, 3) as busy_seconds,
       round(held.busy / greatest(held.since, 0.001), 3) as busy_share,
       round(1 - held.busy / greatest(held.since, 0.001), 3) as idle_share
from (
    select q.claimed_by as agent,
           count(*) filter (where q.processing_state = 'completed') as completed,
           count(*) filter (where q.processing_state in ('claimed', 'processing')) as running,
           -- Dumps that were worked side by side count once.
           (select coalesce(sum(extract(epoch from (upper(span) - lower(span)))), 0) from unnest(range_agg(held_from.span)) as span) as busy,
           extract(epoch from (now() - min(lower(held_from.span)))) as since
    from public.agent_processing_queue as q
    cross join lateral (
        select tstzrange(greatest(q.claimed_at, now() - interval '1 hour'),
                         greatest(coalesce(q.completed_at, now()), q.claimed_at, now() - interval '1 hour')) as span
    ) as held_from
    where q.claimed_by is not null
      and (q.processing_state = 'completed' and q.completed_at > now() - interval '1 hour'
           or q.processing_state in ('claimed', 'processing'))
    group by q.claimed_by
) as held;
comment on view public.dump_agents is 'How busy each agent was with dumps in the last hour.';
revoke all on public.dump_agents from public, anon, authenticated;
grant select on public.dump_agents to authenticated, service_role;
