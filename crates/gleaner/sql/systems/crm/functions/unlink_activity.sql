/*
 * A person says that an activity did not come from the contact it is linked to. It is unmatched again, with that contact as
 * a candidate, and no second look links it by itself.
 * Returns  the activity with `done`, `already` (it had no contact) or `gone` (not there, or not for the caller to see).
 * Security invoker for the reason given in link_activity.
 */
create or replace function gleaner.unlink_activity(p_activity uuid)
returns table (id uuid, outcome text)
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    v_contact bigint;
begin
    select a.contact_id into v_contact from public.activities as a where a.id = p_activity for no key update;
    if not found then
        return query select p_activity, 'gone';
        return;
    end if;
    if v_contact is null then
        return query select p_activity, 'already';
        return;
    end if;
    perform set_config('gleaner.by_hand', 'on', true);
    update public.activities as a
    set contact_id = null,
        metadata = case when jsonb_typeof(coalesce(a.metadata, '{}')) = 'object'
            then coalesce(a.metadata, '{}') || jsonb_build_object('match', jsonb_build_object('method', 'unlinked', 'candidates', array[v_contact]))
            else a.metadata end
    where a.id = p_activity;
    perform set_config('gleaner.by_hand', '', true);
    return query select p_activity, 'done';
end
$$;
comment on function gleaner.unlink_activity(uuid) is 'Takes an activity from the contact it is linked to.';
revoke all on function gleaner.unlink_activity(uuid) from public, anon;
grant execute on function gleaner.unlink_activity(uuid) to authenticated, service_role;
