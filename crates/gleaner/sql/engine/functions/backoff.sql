/*
 * How long to wait before try number p_attempt + 1: doubling from p_first, at most p_cap, and 0 to 20 % more.
 * The jitter comes from a hash of key and attempt: one volatile value would bring a whole batch back in the
 * same instant, and a volatile function inside an update does not travel to a distributed PostgreSQL.
 */
create or replace function gleaner.backoff(p_first interval, p_cap interval, p_attempt integer, p_key text)
returns interval
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return least(p_first * power(2, least(greatest(p_attempt, 1) - 1, 20)), p_cap)
           * (1 + 0.2 * (((hashtextextended(p_key, p_attempt) % 1000) + 1000) % 1000) / 1000.0);
end
$$;
comment on function gleaner.backoff(interval, interval, integer, text) is
    'Wait before the next try: doubling from the first, capped, with a jitter derived from key and attempt.';
revoke all on function gleaner.backoff(interval, interval, integer, text) from public, anon, authenticated;
grant execute on function gleaner.backoff(interval, interval, integer, text) to gleaner_engine, service_role;
