-- Whether users are ours to keep. On a platform that has a service of its own they are not: its refresh tokens, unlike ours,
-- do not remember when they were used once more.
create or replace function gleaner.serves_auth() returns boolean
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select from pg_attribute as a
        where a.attrelid = to_regclass('auth.refresh_tokens') and a.attname = 'reused_at' and not a.attisdropped);
end
$$;
comment on function gleaner.serves_auth() is 'True where users are ours to keep, false on a platform that has its own.';
revoke all on function gleaner.serves_auth() from public, anon, authenticated;
grant execute on function gleaner.serves_auth() to service_role;
