/*
 * The session of a caller with a worker's key; null for other callers. For policies: a worker sees only the rows whose last
 * holder it is. Written as (select gleaner.worker_session()) it is asked once per query and not once per row.
 */
create or replace function gleaner.worker_session() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (select (claims ->> 'sub') || '/' || coalesce(claims ->> 'session_id', '')
            from (select nullif(current_setting('request.jwt.claims', true), '')::jsonb) as token (claims)
            where claims ->> 'worker' = 'true');
end
$$;
comment on function gleaner.worker_session() is 'The session of a caller with a worker''s key; null for other callers.';
revoke all on function gleaner.worker_session() from public, anon;
grant execute on function gleaner.worker_session() to gleaner_engine, authenticated, service_role;
