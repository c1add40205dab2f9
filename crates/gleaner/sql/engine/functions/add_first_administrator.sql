/*
 * Makes the first user, an administrator, where there are no users yet.
 * Races    the table is locked: of two first starts one makes the user, the other finds it.
 * Returns  whether it was made.
 */
create or replace function gleaner.add_first_administrator(p_email text, p_password text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    lock table auth.users in share row exclusive mode;
    if exists (select from auth.users) then
        return false;
    end if;
    return gleaner.add_user(p_email, p_password, null, null, true, true, true) is not null;
end
$$;
comment on function gleaner.add_first_administrator(text, text) is 'Makes the first user, an administrator; false when there is one.';
revoke all on function gleaner.add_first_administrator(text, text) from public, anon, authenticated;
