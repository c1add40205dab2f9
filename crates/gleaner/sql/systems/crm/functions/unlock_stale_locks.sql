/*
 * Gives activities of crashed agents back: those whose lease has ended without a sign of life.
 * For display and for callers that expect it; such rows can be claimed without it.
 * Returns  how many were unlocked; nothing to those who are not of the team.
 *
 * Security definer, because agents run it every minute as the signed-in user, to whom the operators' acts are closed.
 * Safe for every caller: it touches no valid lease.
 */
create or replace function public.unlock_stale_locks() returns integer
language sql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select case when gleaner.is_trusted() or gleaner.is_member() then gleaner.recover_activities() else 0 end
$$;
comment on function public.unlock_stale_locks() is 'Gives activities whose lease has ended back; returns how many.';
revoke all on function public.unlock_stale_locks() from public, anon;
grant execute on function public.unlock_stale_locks() to authenticated, service_role;
