/*
 * Calls off these actions, as a person does. Members may where the contact is their own or has no owner.
 * Returns  per action: done; already (it had ended); lost (its sending has begun: it may be on its way); gone.
 * Raises   42501 where one of them is not the caller's to change.
 */
create or replace function public.cancel_scheduled_actions(p_ids uuid[], p_reason text default 'called off by hand')
returns table (id uuid, outcome text, status text)
language plpgsql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    v_row  record;
    v_idle uuid[] := '{}';
begin
    perform gleaner.admit_followups(p_ids);
    for v_row in
        select a.id, a.status, a.status = 'processing' and a.sending_lease is not distinct from a.lease as sending
        from public.scheduled_actions as a where a.id = any (p_ids) order by a.id for no key update
    loop
        if v_row.sending then
            id := v_row.id; outcome := 'lost'; status := v_row.status;
            return next;
        else
            v_idle := v_idle || v_row.id;
        end if;
    end loop;
    return query select c.id, c.outcome, c.status from gleaner.cancel_followups(v_idle, p_reason) as c;
    update public.scheduled_actions as a set cancelled_reason = p_reason
    where a.id = any (v_idle) and a.status = 'cancelled' and a.cancelled_reason is null;
    return query
    select u.id, 'gone', null::text from unnest(p_ids) as u (id) where not exists (select from public.scheduled_actions as a where a.id = u.id);
end
$$;
comment on function public.cancel_scheduled_actions(uuid[], text) is 'Calls off actions that are not being sent.';
revoke all on function public.cancel_scheduled_actions(uuid[], text) from public, anon;
grant execute on function public.cancel_scheduled_actions(uuid[], text) to authenticated, service_role;
