-- Dumps taken more than ten minutes ago and not finished, longest first. State processing is included, so that a crash in
-- mid-work is seen. Slow work that reports progress is listed too; its progress column shows that it is alive.
-- Columns are named one by one: a view on the engine's columns would stand in the way of detach.
create or replace view public.stuck_dumps with (security_invoker = true) as
select q.id, q.dump_id, q.basket_id, q.workspace_id, q.processing_state, q.claimed_at, q.claimed_by, q.completed_at,
       q.attempts, q.error_message, q.created_at, q.progress
from public.agent_processing_queue as q
where q.processing_state in ('claimed', 'processing')
  and q.claimed_at < now() - interval '10 minutes'
order by q.claimed_at
limit 1000;
comment on view public.stuck_dumps is 'Dumps taken more than ten minutes ago and not finished; at most 1,000.';
revoke all on public.stuck_dumps from public, anon, authenticated;
grant select on public.stuck_dumps to authenticated, service_role;
