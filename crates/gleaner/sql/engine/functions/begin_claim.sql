/*
 * Admits a caller who claims, and says who it is: user and sign-in, or the role.
 * Raises   GL001 outside read committed: a claim locks the newest version of a row, which only read committed allows.
 *          GL002 for an empty agent id. 42501 where a worker's key is not for this queue.
 */
create or replace function gleaner.begin_claim(p_queue text, p_agent text) returns text
language plpgsql stable
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'a claim needs read committed, this transaction is %', current_setting('transaction_isolation')
            using errcode = 'GL001',
                  hint = 'Claim in a transaction of its own, or begin it with: begin isolation level read committed';
    end if;
    if p_agent = '' then
        raise exception 'the agent id is empty' using errcode = 'GL002',
            hint = 'Pass a text that is new at each process start, or null to be known by your sign-in alone and end the work by plain updates.';
    end if;
    if coalesce(current_setting('request.jwt.claims', true), '') = '' then
        return 'role:' || coalesce(nullif(current_setting('role', true), 'none'), session_user);
    end if;
    perform gleaner.scoped_kinds(p_queue, null);
    return gleaner.caller_session();
end
$$;
comment on function gleaner.begin_claim(text, text) is 'Admits a caller who claims, and says who it is.';
revoke all on function gleaner.begin_claim(text, text) from public, anon, authenticated, service_role;
grant execute on function gleaner.begin_claim(text, text) to gleaner_engine;
