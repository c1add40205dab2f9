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
    v_row     public.scheduled_actions;
    v_contact bigint := gleaner.contact_of_prospect(p_prospect_id);
begin
    if gleaner.operates('followups', '{service_role}', '{authenticated}') = 'own' then
        if v_contact is null then
            raise exception 'no contact is known as %', p_prospect_id
                using errcode = 'GL002', hint = 'Add the contact, or give it this identity; contact:ID names one by its id.';
        end if;
        if not exists (select from public.contacts as c left join public.sales as s on s.id = c.sales_id
                       where c.id = v_contact and (c.sales_id is null or s.user_id = gleaner.caller_uid()::uuid)) then
            raise exception 'contact % belongs to another member', v_contact
                using errcode = '42501', hint = 'Its owner or an administrator may plan a message.';
        end if;
    end if;
    insert into public.scheduled_actions (prospect_id, contact_id, action_type, scheduled_for, payload)
    values (p_prospect_id, v_contact, p_action_type, p_scheduled_for, coalesce(p_payload, '{}'))
    returning * into v_row;
    return v_row;
end
$$;
comment on function public.schedule_followup(text, timestamptz, jsonb, text) is 'Plans a message to a contact of the caller''s own.';
revoke all on function public.schedule_followup(text, timestamptz, jsonb, text) from public, anon;
grant execute on function public.schedule_followup(text, timestamptz, jsonb, text) to authenticated, service_role;
