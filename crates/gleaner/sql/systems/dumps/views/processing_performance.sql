-- Finished dumps of the last day by hour; idx_queue_completed keeps it to that day's rows.
create or replace view public.processing_performance with (security_invoker = true) as
select date_trunc('hour', q.completed_at) as hour,
       count(*) as completed,
       avg(extract(epoch from (q.completed_at - q.created_at))) as avg_duration_seconds,
       max(q.attempts) as max_attempts
from public.agent_processing_queue as q
where q.processing_state = 'completed'
  and q.completed_at > now() - interval '24 hours'
group by date_trunc('hour', q.completed_at)
order by date_trunc('hour', q.completed_at) desc;
comment on view public.processing_performance is 'Finished dumps of the last 24 hours: number, duration from capture, attempts.';
revoke all on public.processing_performance from public, anon, authenticated;
grant select on public.processing_performance to authenticated, service_role;
