/*
 * Plans a message, for members over REST: to contacts of their own, and to contacts without an owner. Administrators and the
 * service key plan for anybody.
 * Raises   42501 for other callers and other people's contacts; GL002 where the prospect names no contact.
 * Returns  the row.
 */
create or replace function public.schedule_followup(
    p_prospect_id text,
    p_scheduled_for timestamptz,
    p_payload jsonb default '{}',
    p_action_type text default 'follow_up'
) returns public.scheduled_actions
language plpgsql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_row public.scheduled_actions;
begin
    insert into public.scheduled_actions (prospect_id, contact_id, action_type, scheduled_for, payload)
    values (p_prospect_id, gleaner.require_own_contact(p_prospect_id), p_action_type, p_scheduled_for, coalesce(p_payload, '{}'))
    returning * into v_row;
    return v_row;
end
$$;
comment on function public.schedule_followup(text, timestamptz, jsonb, text) is 'Plans a message to a contact of the caller''s own.';
revoke all on function public.schedule_followup(text, timestamptz, jsonb, text) from public, anon;
grant execute on function public.schedule_followup(text, timestamptz, jsonb, text) to authenticated, service_role;
