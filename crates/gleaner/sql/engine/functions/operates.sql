/*
 * What the caller may operate in a queue: `all` rows, or its `own` and those without an owner.
 * p_all  the roles that the declaration lets operate: they see every row, as do the service key, direct logins and administrators.
 * p_own  the roles whose members operate their own rows.
 * Raises 42501 for every other caller: workers' keys, people outside the team, and members where only administrators operate.
 */
create or replace function gleaner.operates(p_queue text, p_all text[], p_own text[]) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if gleaner.is_trusted() or gleaner.caller_role() = any (p_all) or gleaner.is_administrator() then
        return 'all';
    end if;
    if gleaner.caller_role() = any (p_own) and gleaner.worker_session() is null and gleaner.is_member() then
        return 'own';
    end if;
    raise exception 'only administrators may do this in the queue %', p_queue
        using errcode = '42501', hint = 'Ask an administrator of the team, or use the service key.';
end
$$;
comment on function gleaner.operates(text, text[], text[]) is 'Whether the caller operates all rows of a queue, or its own.';
revoke all on function gleaner.operates(text, text[], text[]) from public, anon, authenticated, service_role;
grant execute on function gleaner.operates(text, text[], text[]) to gleaner_engine;
