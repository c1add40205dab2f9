/*
 * Keeps a result that came too late, as evidence. Each is kept once, at most 32 for a row and 4 of one sign-in, so that made-up leases
 * cannot fill the table.
 */
create or replace function gleaner.keep_late(p_queue text, p_tenant text, p_key text, p_lease bigint, p_result jsonb) returns void
language plpgsql
as $$
declare
    v_session text := gleaner.caller_session();
begin
    insert into gleaner.late_result (queue, tenant, key, lease, caller, result)
    select p_queue, p_tenant, p_key, p_lease, v_session, p_result
    from (select count(*) as total, count(*) filter (where l.caller = v_session) as own,
                 coalesce(bool_or(l.lease = p_lease and l.caller = v_session), false) as known
          from gleaner.late_result as l
          where l.queue = p_queue and l.tenant = p_tenant and l.key = p_key) as kept
    where p_lease is not null and not kept.known and kept.total < 32 and (gleaner.is_trusted() or kept.own < 4);
end
$$;
comment on function gleaner.keep_late(text, text, text, bigint, jsonb) is 'Keeps a result that came too late, as evidence.';
revoke all on function gleaner.keep_late(text, text, text, bigint, jsonb) from public, anon, authenticated, service_role;
grant execute on function gleaner.keep_late(text, text, text, bigint, jsonb) to gleaner_engine;
