/*
 * Raises 42501 when the user of a token may not come in any more: an access token must not outlive a ban. Servers ask it in the
 * statement that tells a transaction who is calling, before the role is taken on; null (a key, nobody) is not asked about.
 * Where a platform keeps the users and does not show them to us, its own services see to it.
 */
create or replace function gleaner.refuse_banned(p_user uuid) returns void
language plpgsql stable strict
set search_path = pg_catalog, pg_temp
as $$
begin
    if not has_table_privilege('auth.users', 'select') then
        return;
    end if;
    if gleaner.find_ban(p_user) is not null then
        raise insufficient_privilege using
            message = 'User is banned',
            hint = 'An administrator can let the user in again: gleaner users enable.';
    end if;
end
$$;
comment on function gleaner.refuse_banned(uuid) is 'Raises when the user of a token is banned or disabled.';
revoke all on function gleaner.refuse_banned(uuid) from public, anon, authenticated;
