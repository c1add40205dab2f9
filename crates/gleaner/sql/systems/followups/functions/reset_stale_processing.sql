/*
 * Gives actions of crashed workers back. For display and for callers that expect it; such rows come due by themselves.
 * Actions whose sending had begun are not given back: they may have been sent, and go to a person.
 *
 * Input    seconds without a sign of life. A lease runs 300 of them (the declaration's hold) before it ends, and one that
 *          still stands is left alone however small the number.
 * Returns  how many were reset.
 */
create or replace function public.reset_stale_processing(p_stale_after_seconds integer default 600) returns integer
language sql volatile
set search_path = pg_catalog, public, pg_temp
as $$
    select gleaner.recover_followups(make_interval(secs => greatest(p_stale_after_seconds - 300, 0)))
$$;
comment on function public.reset_stale_processing(integer) is 'Gives actions whose lease has ended back; returns how many.';
revoke all on function public.reset_stale_processing(integer) from public, anon, authenticated;
grant execute on function public.reset_stale_processing(integer) to service_role;
