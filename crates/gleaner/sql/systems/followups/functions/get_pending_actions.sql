/*
 * Actions that wait, earliest first: of one prospect, or of all.
 */
create or replace function public.get_pending_actions(p_prospect_id text default null)
returns setof public.scheduled_actions
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select *
    from public.scheduled_actions as a
    where a.status = 'pending'
      and (p_prospect_id is null or a.prospect_id = p_prospect_id)
    order by a.scheduled_for, a.id
$$;
comment on function public.get_pending_actions(text) is 'Actions that wait, of one prospect or of all, earliest first.';
revoke all on function public.get_pending_actions(text) from public, anon, authenticated;
grant execute on function public.get_pending_actions(text) to authenticated, service_role;
