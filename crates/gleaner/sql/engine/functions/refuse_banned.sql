/*
 * Raises 42501 when the user of a token may not come in any more: an access token must not outlive a ban. Servers ask it in the
 * statement that tells a transaction who is calling, before the role is taken on; null (a key, nobody) is not asked about.
 * Where a platform keeps the users and does not show them to us, its own services see to it.
 * Security definer: the login that asks has no rights of its own.
 */
create or replace function gleaner.refuse_banned(p_user uuid) returns void
language plpgsql stable strict security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_ban text;
begin
    if not has_table_privilege('auth.users', 'select') then
        return;
    end if;
    v_ban := gleaner.find_ban(p_user);
    if v_ban is not null then
        raise insufficient_privilege using
            message = case v_ban when 'deleted' then 'User was deleted' else 'User is banned' end,
            hint = case v_ban when 'deleted' then 'Sign in as another user.' else 'An administrator can let the user in again: gleaner users enable.' end;
    end if;
end
$$;
comment on function gleaner.refuse_banned(uuid) is 'Raises when the user of a token is banned, deleted or disabled.';
revoke all on function gleaner.refuse_banned(uuid) from public, anon, authenticated;
