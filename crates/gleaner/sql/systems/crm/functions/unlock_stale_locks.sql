/*
 * Gives activities of crashed agents back: those whose lease has ended without a sign of life.
 * For display and for callers that expect it; such rows can be claimed without it.
 * Returns  how many were unlocked.
 *
 * Security definer, because agents run it every minute as the signed-in user, to whom the operators' acts are closed.
 * Harmless in anybody's hands: it touches no lease that still stands.
 */
create or replace function public.unlock_stale_locks() returns integer
language sql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select gleaner.recover_activities()
$$;
comment on function public.unlock_stale_locks() is 'Gives activities whose lease has ended back; returns how many.';
revoke all on function public.unlock_stale_locks() from public, anon;
grant execute on function public.unlock_stale_locks() to authenticated, service_role;
