/*
 * Takes one action by its id, if it still waits. A plain update: the adapter trigger makes it a claim.
 * Returns  true for the one caller that got it, false for all others.
 */
create or replace function public.mark_processing(p_action_id uuid) returns boolean
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
begin
    update public.scheduled_actions as a
    set status = 'processing', started_processing_at = clock_timestamp()
    where a.id = p_action_id and a.status = 'pending';
    return found;
end
$$;
comment on function public.mark_processing(uuid) is 'Takes one waiting action by its id; true when the caller got it.';
revoke all on function public.mark_processing(uuid) from public, anon, authenticated;
grant execute on function public.mark_processing(uuid) to service_role;
