/*
 * The same sweep as unlock_stale_locks, under a second name that CRM programs call (docs/reference/systems/activities.md).
 * The lease decides whether a holder is dead. The engine keeps metadata.recovery_count, and buries rows that lost too many
 * leases.
 * Returns  how many were reset.
 *
 * Security definer for the reason given in unlock_stale_locks.
 */
create or replace function public.reset_stale_locks() returns integer
language sql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select public.unlock_stale_locks()
$$;
comment on function public.reset_stale_locks() is 'Gives activities whose lease has ended back; returns how many.';
revoke all on function public.reset_stale_locks() from public, anon;
grant execute on function public.reset_stale_locks() to authenticated, service_role;
