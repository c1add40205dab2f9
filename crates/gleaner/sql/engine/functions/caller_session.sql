/*
 * Who the caller is, as far as plain writers can be distinguished: user and sign-in where there is a token, so that
 * two devices of one user differ; otherwise only the role. Programs that share one key share this identity.
 */
create or replace function gleaner.caller_session() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (select coalesce(
        (claims ->> 'sub') || '/' || coalesce(claims ->> 'session_id', ''),
        'role:' || coalesce(nullif(current_setting('role', true), 'none'), session_user))
    from (select nullif(current_setting('request.jwt.claims', true), '')::jsonb) as token (claims));
end
$$;
comment on function gleaner.caller_session() is 'User and sign-in of the caller, or its role where there is no token.';
revoke all on function gleaner.caller_session() from public, anon, authenticated;
grant execute on function gleaner.caller_session() to gleaner_engine, service_role;
