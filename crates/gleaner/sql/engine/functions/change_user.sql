/*
 * Changes a user: password (a hash), email, email_confirm, user_metadata, app_metadata (both merged; a null takes a key out),
 * ban (an interval from now, 'forever' or 'none'). Keys that are absent stay as they are.
 * A new password ends every session but p_session; a ban ends all, and servers are notified to close the user's sockets.
 * Returns  done, gone (no such user), email_exists.
 */
create or replace function gleaner.change_user(p_user uuid, p_changes jsonb, p_session uuid) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now   timestamptz := clock_timestamp();
    v_email text := p_changes ->> 'email';
    v_ban   text := p_changes ->> 'ban';
begin
    perform from auth.users as u where u.id = p_user for no key update;
    if not found then
        return 'gone';
    end if;
    begin
        update auth.users as u
        set encrypted_password = coalesce(p_changes ->> 'password', u.encrypted_password),
            email = coalesce(v_email, u.email),
            email_confirmed_at = case when (p_changes ->> 'email_confirm')::boolean then coalesce(u.email_confirmed_at, v_now) else u.email_confirmed_at end,
            raw_user_meta_data = gleaner.merge_metadata(u.raw_user_meta_data, p_changes -> 'user_metadata'),
            raw_app_meta_data = gleaner.merge_metadata(u.raw_app_meta_data, p_changes -> 'app_metadata'),
            banned_until = case v_ban when 'none' then null when 'forever' then 'infinity'
                                      else coalesce(v_now + v_ban::interval, u.banned_until) end,
            updated_at = v_now
        where u.id = p_user;
    exception when unique_violation then
        return 'email_exists';
    end;
    if v_email is not null then
        update auth.identities as i
        set identity_data = i.identity_data || jsonb_build_object('email', v_email), updated_at = v_now
        where i.user_id = p_user and i.provider = 'email';
    end if;
    if (p_changes ->> 'email_confirm')::boolean then
        update auth.identities as i
        set identity_data = i.identity_data || '{"email_verified": true}', updated_at = v_now
        where i.user_id = p_user and i.provider = 'email';
        perform gleaner.join_team(p_user, false, true);
    end if;
    if p_changes ->> 'password' is not null then
        delete from auth.sessions as s where s.user_id = p_user and s.id is distinct from p_session;
        -- Links to set it are no longer needed, and a stolen one must not stay valid.
        delete from auth.one_time_tokens as t where t.user_id = p_user and t.token_type in ('recovery', 'invite');
    end if;
    if v_ban <> 'none' then
        delete from auth.sessions as s where s.user_id = p_user;
        -- Servers close this person's sockets; who misses it looks every few seconds. Rare enough to ring in the transaction.
        perform pg_notify('gleaner', 'auth.users');
    end if;
    return 'done';
end
$$;
comment on function gleaner.change_user(uuid, jsonb, uuid) is 'Changes a user; a new password or a ban ends sessions.';
revoke all on function gleaner.change_user(uuid, jsonb, uuid) from public, anon, authenticated;
