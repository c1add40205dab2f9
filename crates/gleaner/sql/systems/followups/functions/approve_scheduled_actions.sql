/*
 * A person approves actions: one that is due goes out now, any other at its time. Members may where the contact is their own or has no owner.
 * Returns  per action: done; already (approved before, or ended); gone.
 * Raises   42501 where one of them is not the caller's to change.
 */
create or replace function public.approve_scheduled_actions(p_ids uuid[])
returns table (id uuid, outcome text, status text)
language plpgsql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    v_row public.scheduled_actions;
begin
    perform gleaner.admit_followups(p_ids);
    for v_row in select a.* from public.scheduled_actions as a where a.id = any (p_ids) order by a.id for no key update loop
        id := v_row.id;
        status := v_row.status;
        outcome := 'already';
        if v_row.approved_at is null and v_row.status in ('pending', 'processing', 'failed') then
            update public.scheduled_actions as a set approved_at = clock_timestamp(), deferred_reason = null where a.id = v_row.id;
            if v_row.deferred_reason is not null and v_row.status = 'pending' then
                perform from gleaner.requeue_followups(array[v_row.id]);
            end if;
            outcome := 'done';
        end if;
        return next;
    end loop;
    return query
    select u.id, 'gone', null::text from unnest(p_ids) as u (id) where not exists (select from public.scheduled_actions as a where a.id = u.id);
end
$$;
comment on function public.approve_scheduled_actions(uuid[]) is 'Approves actions that wait for it.';
revoke all on function public.approve_scheduled_actions(uuid[]) from public, anon;
grant execute on function public.approve_scheduled_actions(uuid[]) to authenticated, service_role;
