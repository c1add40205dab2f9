/*
 * The same sweep as unlock_stale_locks, under the name of the other specification. Its thirty minutes were a guess at
 * when a holder is dead; the lease knows. The engine keeps metadata.recovery_count, and buries what lost too many leases.
 * Returns  how many were reset.
 *
 * Security definer for the reason given in unlock_stale_locks.
 */
create or replace function public.reset_stale_locks() returns integer
language sql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select gleaner.recover_activities()
$$;
comment on function public.reset_stale_locks() is 'Gives activities whose lease has ended back; returns how many.';
revoke all on function public.reset_stale_locks() from public, anon;
grant execute on function public.reset_stale_locks() to authenticated, service_role;
