/*
 * Takes up to p_limit dumps for a worker, longest due first: those that wait, those whose next try has come, and those
 * whose holder has shown no life for as long as it asked for, be it in state claimed or processing.
 *
 * Input    p_stale_after_minutes is how long this claim lasts without progress, for the rows taken now. (A worker cannot
 *          shorten another's claim: that one may be alive.)
 * Returns  the rows in state claimed, lease included; none when nothing is due.
 * Counts   as taken, not as started: the worker says 'processing' when it begins one, and a crash must not count against
 *          the nine it never touched.
 */
create or replace function public.fn_claim_next_dumps(
    p_worker_id text,
    p_limit integer default 10,
    p_stale_after_minutes integer default 5
) returns setof public.agent_processing_queue
language sql volatile
set search_path = pg_catalog, public, pg_temp
as $$
    select *
    from gleaner.claim_dumps(
        -- No agent id: the worker ends its work by plain updates. Its own name for itself is for people to see.
        p_agent  => null,
        p_holder => p_worker_id,
        p_limit  => p_limit,
        p_hold   => make_interval(mins => p_stale_after_minutes))
$$;
comment on function public.fn_claim_next_dumps(text, integer, integer) is 'Takes up to p_limit dumps for a worker.';
revoke all on function public.fn_claim_next_dumps(text, integer, integer) from public, anon, authenticated;
grant execute on function public.fn_claim_next_dumps(text, integer, integer) to service_role;
