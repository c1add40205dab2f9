/*
 * Until when an action must wait although it is due, and why: it needs approval, its contact sleeps, or got enough for today.
 * Days and hours are those of the contact's time zone. Of the contact's preferences and those for everybody the contact's hold.
 * Skipped  for payload.ignore_quiet_hours (the hours) and payload.ignore_daily_limit (the limit).
 * Returns  until and reason, both null when it may be sent.
 */
create or replace function gleaner.reason_to_wait(
    p_row public.scheduled_actions, out until timestamptz, out reason text)
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_now   timestamptz := clock_timestamp();
    v_rules public.contact_preferences;
    v_local timestamp;
    v_day   timestamptz;
    v_sent  bigint;
begin
    select p.* into v_rules from public.contact_preferences as p
    where p.contact_id is null or p.contact_id = p_row.contact_id order by p.contact_id nulls last limit 1;
    if p_row.approved_at is null and (v_rules.approval or p_row.payload ->> 'approval' = 'true') then
        -- Approving makes it due; until then no daemon looks at it again.
        until := v_now + interval '100 years';
        reason := 'waits for approval';
        return;
    end if;
    if v_rules is null then
        return;
    end if;
    v_local := v_now at time zone v_rules.time_zone;
    if v_rules.quiet_from <> v_rules.quiet_until and p_row.payload ->> 'ignore_quiet_hours' is distinct from 'true' then
        if v_rules.quiet_from < v_rules.quiet_until then
            if v_local::time >= v_rules.quiet_from and v_local::time < v_rules.quiet_until then
                until := (v_local::date + v_rules.quiet_until) at time zone v_rules.time_zone;
            end if;
        elsif v_local::time >= v_rules.quiet_from then
            until := (v_local::date + 1 + v_rules.quiet_until) at time zone v_rules.time_zone;
        elsif v_local::time < v_rules.quiet_until then
            until := (v_local::date + v_rules.quiet_until) at time zone v_rules.time_zone;
        end if;
        if until is not null then
            -- What waited for the morning does not all go out in its first second.
            until := greatest(until, v_now + interval '1 second') + random() * interval '2 minutes';
            reason := format('quiet hours until %s %s', to_char(until at time zone v_rules.time_zone, 'YYYY-MM-DD HH24:MI'), v_rules.time_zone);
            return;
        end if;
    end if;
    if v_rules.daily_limit is not null and p_row.payload ->> 'ignore_daily_limit' is distinct from 'true' then
        -- Two actions for one contact at the same moment: the second counts the first.
        perform pg_advisory_xact_lock(hashtextextended('gleaner daily limit ' || coalesce(p_row.contact_id::text, p_row.prospect_id), 0));
        v_day := date_trunc('day', v_local) at time zone v_rules.time_zone;
        select count(*) into v_sent from public.scheduled_actions as a
        where (a.contact_id = p_row.contact_id or p_row.contact_id is null and a.prospect_id = p_row.prospect_id)
          and a.id <> p_row.id and a.sending_at >= v_day
          and (a.status = 'executed' or a.status = 'processing' and a.sending_lease = a.lease);
        if v_sent >= v_rules.daily_limit then
            until := (v_local::date + 1)::timestamp at time zone v_rules.time_zone + random() * interval '2 minutes';
            reason := format('daily limit of %s reached', v_rules.daily_limit);
        end if;
    end if;
end
$$;
comment on function gleaner.reason_to_wait(public.scheduled_actions) is 'Until when a due action must wait, and why.';
revoke all on function gleaner.reason_to_wait(public.scheduled_actions) from public, anon, authenticated;
grant execute on function gleaner.reason_to_wait(public.scheduled_actions) to service_role;
