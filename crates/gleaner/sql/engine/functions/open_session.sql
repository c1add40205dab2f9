/*
 * Signs a user in whose proof (password, link) was checked just now.
 * Takes    p_token, the public half of the first refresh token; p_password, the hash the proof was checked against: when it
 *          was changed meanwhile, the proof is void (null: the proof was another).
 * Returns  {outcome: opened | refused | user_banned | email_not_confirmed, session_id, method, signed_in_at, user}
 */
create or replace function gleaner.open_session(p_user uuid, p_password text, p_token text, p_method text, p_user_agent text, p_ip inet) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now     timestamptz := clock_timestamp();
    v_user    record;
    v_session uuid;
begin
    -- Locked, so that a ban or a new password, which ends all sessions, cannot miss the one about to be made.
    select u.encrypted_password as password, u.email_confirmed_at as confirmed_at into v_user
    from auth.users as u where u.id = p_user for no key update;
    if not found or p_password is not null and v_user.password is distinct from p_password then
        return jsonb_build_object('outcome', 'refused');
    elsif gleaner.find_ban(p_user) is not null then
        return jsonb_build_object('outcome', 'user_banned');
    elsif v_user.confirmed_at is null then
        return jsonb_build_object('outcome', 'email_not_confirmed');
    end if;
    update auth.users as u set last_sign_in_at = v_now, updated_at = v_now where u.id = p_user;
    update auth.identities as i set last_sign_in_at = v_now, updated_at = v_now where i.user_id = p_user and i.provider = 'email';
    -- Sessions that were not used for so long cannot be refreshed any more.
    delete from auth.sessions as s where s.user_id = p_user and coalesce(s.refreshed_at, s.created_at) < v_now - interval '90 days';
    insert into auth.sessions (user_id, method, user_agent, ip, created_at) values (p_user, p_method, p_user_agent, p_ip, v_now) returning id into v_session;
    insert into auth.refresh_tokens (token, user_id, session_id) values (p_token, p_user, v_session);
    return jsonb_build_object('outcome', 'opened', 'session_id', v_session, 'method', p_method,
                              'signed_in_at', floor(extract(epoch from v_now)), 'user', gleaner.show_user(p_user));
end
$$;
comment on function gleaner.open_session(uuid, text, text, text, text, inet) is 'Signs a user in: a session and its first refresh token.';
revoke all on function gleaner.open_session(uuid, text, text, text, text, inet) from public, anon, authenticated;
