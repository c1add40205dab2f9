/*
 * Plans a message that recurs: to contacts of the caller's own, as schedule_followup does. An agent reads the expression; one that
 * cannot be read ends the schedule as failed, with the reason in error_message.
 * Input    p_options: any of name, missed, missed_limit, tolerance, until_reply, ends_at, action_type.
 * Raises   as schedule_followup; GL002 for an option or a time zone that does not exist.
 * Returns  the row.
 */
create or replace function public.schedule_recurring_followup(
    p_prospect_id text,
    p_cron text,
    p_time_zone text default 'UTC',
    p_payload jsonb default '{}',
    p_options jsonb default '{}'
) returns public.followup_schedules
language plpgsql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_row     public.followup_schedules;
    v_contact bigint := gleaner.require_own_contact(p_prospect_id);
    v_unknown text;
begin
    select k.key into v_unknown from jsonb_object_keys(p_options) as k (key)
    where k.key not in ('name', 'missed', 'missed_limit', 'tolerance', 'until_reply', 'ends_at', 'action_type') limit 1;
    if found then
        raise exception 'there is no option %', v_unknown using errcode = 'GL002',
            hint = 'There are name, missed, missed_limit, tolerance, until_reply, ends_at and action_type.';
    end if;
    if not exists (select from pg_catalog.pg_timezone_names as z where z.name = p_time_zone) then
        raise exception '% is not a time zone', p_time_zone
            using errcode = 'GL002', hint = 'Write one as in pg_timezone_names, such as Europe/Berlin.';
    end if;
    insert into public.followup_schedules (
        prospect_id, contact_id, cron, time_zone, payload, name, missed, missed_limit, tolerance, until_reply, ends_at, action_type)
    values (
        p_prospect_id, v_contact, p_cron, p_time_zone, coalesce(p_payload, '{}'), p_options ->> 'name',
        coalesce(p_options ->> 'missed', 'latest'), coalesce((p_options ->> 'missed_limit')::integer, 10),
        coalesce((p_options ->> 'tolerance')::interval, '5 minutes'), coalesce((p_options ->> 'until_reply')::boolean, false),
        (p_options ->> 'ends_at')::timestamptz, coalesce(p_options ->> 'action_type', 'follow_up'))
    returning * into v_row;
    return v_row;
end
$$;
comment on function public.schedule_recurring_followup(text, text, text, jsonb, jsonb) is
    'Plans a message that recurs, to a contact of the caller''s own.';
revoke all on function public.schedule_recurring_followup(text, text, text, jsonb, jsonb) from public, anon;
grant execute on function public.schedule_recurring_followup(text, text, text, jsonb, jsonb) to authenticated, service_role;
