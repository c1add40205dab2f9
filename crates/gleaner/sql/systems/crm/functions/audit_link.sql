/*
 * Records who linked or unlinked activities. Definer, because members may not write the record themselves; for that reason
 * it believes nothing it does not see: only activities whose contact is now as told, and the caller as the token says.
 */
create or replace function gleaner.audit_link(p_activities uuid[], p_act text, p_from bigint, p_to bigint) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    if p_act not in ('link', 'unlink') then
        raise exception 'no such act: %', p_act using errcode = 'GL002', hint = 'It is link or unlink.';
    end if;
    insert into gleaner.audit (queue, key, act, caller, detail)
    select 'activities', a.id::text, p_act, gleaner.caller_session(),
           jsonb_build_object('from', p_from, 'to', p_to, 'sender', a.sender_address)
    from public.activities as a
    where a.id = any (p_activities) and a.contact_id is not distinct from p_to
    order by a.id;
end
$$;
comment on function gleaner.audit_link(uuid[], text, bigint, bigint) is 'Records who linked or unlinked activities.';
revoke all on function gleaner.audit_link(uuid[], text, bigint, bigint) from public, anon;
grant execute on function gleaner.audit_link(uuid[], text, bigint, bigint) to authenticated, service_role;
