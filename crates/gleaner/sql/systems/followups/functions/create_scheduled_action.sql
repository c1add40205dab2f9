/*
 * Schedules an action, in the caller's own transaction.
 * Returns  the row.
 */
create or replace function public.create_scheduled_action(
    p_prospect_id text,
    p_action_type text,
    p_scheduled_for timestamptz,
    p_payload jsonb default '{}'
) returns public.scheduled_actions
language sql volatile
set search_path = pg_catalog, public, pg_temp
as $$
    insert into public.scheduled_actions (prospect_id, action_type, scheduled_for, payload)
    values (p_prospect_id, p_action_type, p_scheduled_for, coalesce(p_payload, '{}'))
    returning *
$$;
comment on function public.create_scheduled_action(text, text, timestamptz, jsonb) is 'Schedules an action and returns it.';
revoke all on function public.create_scheduled_action(text, text, timestamptz, jsonb) from public, anon, authenticated;
grant execute on function public.create_scheduled_action(text, text, timestamptz, jsonb) to service_role;
