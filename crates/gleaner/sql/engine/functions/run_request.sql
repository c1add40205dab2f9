/*
 * Runs one statement of an API request as its caller. Taking on the caller's role and running the statement are one call, so
 * that no lost or failed message in between can leave the statement to run with the rights of the server's own login.
 *
 * p_user        the user of the token, who may be banned; null for keys.
 * p_settings    search_path, role, request.jwt.claims, request.method, request.path, request.headers, timezone, transaction_read_only,
 *               in this order. They end with the transaction.
 * p_sql         one statement that returns one row: the rows as JSON, their number, the total, how many were inserted. It refers to
 *               its parameters as ($1)[n].
 * p_limit       the time limit in milliseconds that the transaction must have. It cannot be set by the call that it limits. Where it
 *               is missing the messages before this one had no effect, and nothing is run.
 * Returns       that row, and what functions left in response.status and response.headers.
 * Raises        what the statement raises; 42501 for a banned user; 54000 for more than 64 MiB, which the server would have to hold in memory.
 */
drop function if exists gleaner.run_request(uuid, text[], text, text[]);
create or replace function gleaner.run_request(
    p_user uuid, p_settings text[], p_sql text, p_parameters text[], p_limit integer,
    out rows text, out shown bigint, out total bigint, out inserted bigint, out status text, out headers text)
language plpgsql volatile
as $$
begin
    if pg_catalog.current_setting('statement_timeout')::pg_catalog.interval is distinct from pg_catalog.make_interval(secs => p_limit / 1000.0) then
        raise exception 'the transaction of this request was not begun' using errcode = '25P01';
    end if;
    -- While the rights are still the server's own: the caller's role may not call it.
    perform gleaner.refuse_banned(p_user);
    perform pg_catalog.set_config(s.name, p_settings[s.n], true)
    from (values (1, 'search_path'), (2, 'role'), (3, 'request.jwt.claims'), (4, 'request.method'), (5, 'request.path'),
                 (6, 'request.headers'), (7, 'timezone'), (8, 'transaction_read_only')) as s (n, name)
    where p_settings[s.n] is not null;
    if current_user::pg_catalog.text is distinct from p_settings[2] then
        raise exception 'the role % was not taken on', p_settings[2] using errcode = '42501';
    end if;
    execute p_sql into rows, shown, total, inserted using p_parameters;
    if octet_length(rows) > 67108864 then
        raise exception 'the response has more than 64 MiB'
            using errcode = '54000', hint = 'Select fewer columns, fewer rows, or fewer embedded rows.';
    end if;
    status := pg_catalog.current_setting('response.status', true);
    headers := pg_catalog.current_setting('response.headers', true);
end
$$;
comment on function gleaner.run_request(uuid, text[], text, text[], integer) is 'Runs one statement of an API request as its caller.';
-- It runs any statement: for the login of the server (gleaner.prepare_api_login).
revoke all on function gleaner.run_request(uuid, text[], text, text[], integer) from public, anon, authenticated, service_role;
