/*
 * Why a user may not sign in, whatever the password: banned, deleted, or disabled in the team. Null: it may.
 */
create or replace function gleaner.find_ban(p_user uuid) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from auth.users as u where u.id = p_user and u.banned_until > clock_timestamp()) then
        return 'banned';
    end if;
    if exists (select from gleaner.deleted_user as d where d.id = p_user) then
        return 'deleted';
    end if;
    if gleaner.is_disabled(p_user) then
        return 'disabled';
    end if;
    return null;
end
$$;
comment on function gleaner.find_ban(uuid) is 'Why a user may not sign in: banned, deleted or disabled; null when it may.';
revoke all on function gleaner.find_ban(uuid) from public, anon, authenticated;
