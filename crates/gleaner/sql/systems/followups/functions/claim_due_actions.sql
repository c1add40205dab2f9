/*
 * Takes actions whose time has come, earliest first.
 *
 * Input    p_limit: how many at most. p_max_delay_seconds: how far ahead of its time an action may be taken, for a daemon
 *          that polls and would otherwise be late; the daemon waits out the rest itself.
 * Changes  status to 'processing', started_processing_at to the database's time.
 * Returns  the rows as they now stand, lease included; none when nothing is due.
 * Counts   as started. A crash from here on is tried again until gleaner.progress_followups says that sending has begun;
 *          from then on it is a person's to decide.
 */
create or replace function public.claim_due_actions(p_limit integer default 10, p_max_delay_seconds integer default 5)
returns setof public.scheduled_actions
language sql volatile
set search_path = pg_catalog, public, pg_temp
as $$
    select *
    from gleaner.claim_followups(
        -- No agent id: the daemon ends its work by a plain update.
        p_agent   => null,
        p_limit   => p_limit,
        p_started => true,
        p_early   => make_interval(secs => p_max_delay_seconds))
$$;
comment on function public.claim_due_actions(integer, integer) is 'Takes actions whose time has come, earliest first.';
revoke all on function public.claim_due_actions(integer, integer) from public, anon, authenticated;
grant execute on function public.claim_due_actions(integer, integer) to service_role;
