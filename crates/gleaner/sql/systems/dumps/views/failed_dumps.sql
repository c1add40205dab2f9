-- Dumps that failed three times or more: they wait for a person, oldest first.
create or replace view public.failed_dumps with (security_invoker = true) as
select q.id, q.dump_id, q.basket_id, q.workspace_id, q.processing_state, q.claimed_at, q.claimed_by, q.completed_at,
       q.attempts, q.error_message, q.created_at, q.progress
from public.agent_processing_queue as q
where q.processing_state = 'failed'
  and q.attempts >= 3
order by q.created_at
limit 1000;
comment on view public.failed_dumps is 'Failed dumps needing attention; at most 1,000.';
revoke all on public.failed_dumps from public, anon, authenticated;
grant select on public.failed_dumps to authenticated, service_role;
