/*
 * Notes a row that rejected a change. Claims leave it out for a minute, and twice as long each time, up to an hour.
 * Returns  for how long.
 */
create or replace function gleaner.reject_row(p_queue text, p_tenant text, p_key text, p_reason text) returns interval
language plpgsql
as $$
declare
    v_now   timestamptz := clock_timestamp();
    v_until timestamptz;
begin
    insert into gleaner.rejected_row as r (queue, tenant, key, until, tries, reason)
    values (p_queue, p_tenant, p_key, v_now + interval '1 minute', 1, p_reason)
    on conflict (queue, tenant, key) do update
    set until = v_now + least(interval '1 minute' * power(2, least(r.tries, 6)), interval '1 hour'), tries = r.tries + 1, reason = excluded.reason
    returning r.until into v_until;
    return v_until - v_now;
end
$$;
comment on function gleaner.reject_row(text, text, text, text) is 'Notes a row that rejected a change; claims leave it out for a while.';
revoke all on function gleaner.reject_row(text, text, text, text) from public, anon, authenticated, service_role;
grant execute on function gleaner.reject_row(text, text, text, text) to gleaner_engine;
