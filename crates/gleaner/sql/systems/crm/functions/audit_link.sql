/*
 * Records who linked an activity to a contact, or took it from one. A trigger, so that nothing is recorded that did not happen, and
 * no change by a person goes unrecorded, whichever way it came. What the server matches by itself is not recorded.
 * Security definer, because members may not write the record themselves.
 */
drop function if exists gleaner.audit_link(uuid[], text, bigint, bigint);
create or replace function gleaner.audit_link() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into gleaner.audit (queue, key, act, caller, detail)
    values ('activities', new.id::text, case when new.contact_id is null then 'unlink' else 'link' end, gleaner.caller_session(),
            jsonb_build_object('from', old.contact_id, 'to', new.contact_id, 'sender', new.sender_address));
    return null;
end
$$;
comment on function gleaner.audit_link() is 'Records who linked or unlinked an activity.';
revoke all on function gleaner.audit_link() from public, anon, authenticated, service_role;

-- Callers of the API by their roles; direct logins where they say that a person asked for it (gleaner.link_activity).
create or replace trigger audit_link
after update of contact_id on public.activities
for each row when (
    new.contact_id is distinct from old.contact_id
    and (current_user::text in ('anon', 'authenticated', 'service_role') or current_setting('gleaner.by_hand', true) = 'on'))
execute function gleaner.audit_link();
