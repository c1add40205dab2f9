/*
 * The database role that really calls, also inside a definer function.
 * `set role` (what PostgREST and our server do) leaves its mark in the setting; without it the login counts.
 */
create or replace function gleaner.caller_role() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce(nullif(current_setting('role', true), 'none'), session_user);
end
$$;
comment on function gleaner.caller_role() is 'The database role that really calls, also inside a definer function.';
revoke all on function gleaner.caller_role() from public, anon, authenticated;
grant execute on function gleaner.caller_role() to gleaner_engine, service_role;
