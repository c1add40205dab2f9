-- The signed-in user of the caller's token; null for the service key and for direct logins.
create or replace function gleaner.caller_uid() returns uuid
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid;
end
$$;
comment on function gleaner.caller_uid() is 'The signed-in user of the caller''s token; null without one.';
revoke all on function gleaner.caller_uid() from public, anon, authenticated;
grant execute on function gleaner.caller_uid() to gleaner_engine, service_role;
