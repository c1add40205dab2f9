/*
 * Whether the caller may speak for any owner: the service key and direct database logins may, signed-in users may
 * speak for themselves alone. A token that does not name the service role is never trusted.
 */
create or replace function gleaner.is_trusted() returns boolean
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce(nullif(current_setting('role', true), 'none'), session_user) not in ('anon', 'authenticated')
       and coalesce(nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role', 'service_role') = 'service_role';
end
$$;
comment on function gleaner.is_trusted() is 'True for the service key and direct logins: they may act for any owner.';
revoke all on function gleaner.is_trusted() from public, anon, authenticated;
grant execute on function gleaner.is_trusted() to gleaner_engine, service_role;
