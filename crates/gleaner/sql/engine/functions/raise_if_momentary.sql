/*
 * Inside `exception when others`: raises trouble of the moment again, for the caller to retry (deadlocks, lost races, a cancelled
 * statement, lack of memory or disk). What is left is the row's own: a check, a trigger.
 */
create or replace function gleaner.raise_if_momentary(p_state text, p_message text) returns void
language plpgsql
as $$
begin
    if p_state ~ '^(40|53|57|58|XX|55P03)' then
        raise exception '%', p_message using errcode = p_state;
    end if;
end
$$;
comment on function gleaner.raise_if_momentary(text, text) is 'Raises trouble of the moment again, for the caller to retry.';
revoke all on function gleaner.raise_if_momentary(text, text) from public, anon, authenticated, service_role;
grant execute on function gleaner.raise_if_momentary(text, text) to gleaner_engine;
