/*
 * Trades a refresh token for the next one.
 * Takes    p_token, the public half of what the client sent; p_next, of the one it gets when it is its turn.
 * Changes  an unrevoked token is revoked and p_next takes its place. A revoked one is answered with the active one, because
 *          the answer to its first use may have been lost: as often as they ask within p_grace of its use (two tabs, a
 *          repeated request), and once more later, if it is the direct parent of the active one. Any other use means that
 *          two hold the same token, and which one is the thief is unknown: the session ends.
 * Races    the session's row is locked first: of two uses at once the second sees what the first did.
 * Returns  {outcome: refreshed | not_found | already_used | expired | user_banned, token, session_id, method, signed_in_at, user}
 */
create or replace function gleaner.refresh_session(p_token text, p_next text, p_grace interval) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now     timestamptz;
    v_session record;
    v_token   record;
    v_active  record;
begin
    select s.id, s.user_id, s.not_after, coalesce(s.refreshed_at, s.created_at) as last_at, s.method, floor(extract(epoch from s.created_at)) as signed_in_at into v_session
    from auth.refresh_tokens as t join auth.sessions as s on s.id = t.session_id
    where t.token = p_token
    for no key update of s;
    if not found then
        return jsonb_build_object('outcome', 'not_found');
    end if;
    -- After the lock: waiting for it took time.
    v_now := clock_timestamp();
    -- A device that was put away long enough signs in again.
    if v_session.not_after <= v_now or v_session.last_at < v_now - interval '90 days' then
        return jsonb_build_object('outcome', 'expired');
    elsif gleaner.find_ban(v_session.user_id) is not null then
        delete from auth.sessions as s where s.user_id = v_session.user_id;
        return jsonb_build_object('outcome', 'user_banned');
    end if;
    -- A statement of its own: it sees what was committed while we waited.
    select t.id, t.revoked, t.updated_at, t.reused_at into v_token from auth.refresh_tokens as t where t.token = p_token;
    if not found then
        return jsonb_build_object('outcome', 'not_found');
    end if;
    if not v_token.revoked then
        update auth.refresh_tokens as t set revoked = true, updated_at = v_now where t.id = v_token.id;
        insert into auth.refresh_tokens (token, user_id, session_id, parent, created_at, updated_at)
        values (p_next, v_session.user_id, v_session.id, p_token, v_now, v_now);
        update auth.sessions as s set refreshed_at = v_now, updated_at = v_now where s.id = v_session.id;
        -- Long past any grace, and so only evidence of reuse; the last hundred are evidence enough.
        delete from auth.refresh_tokens as t
        where t.id in (select o.id from auth.refresh_tokens as o where o.session_id = v_session.id order by o.id desc offset 100);
        return jsonb_build_object('outcome', 'refreshed', 'token', p_next, 'session_id', v_session.id, 'method', v_session.method,
                                  'signed_in_at', v_session.signed_in_at, 'user', gleaner.show_user(v_session.user_id));
    end if;
    select t.token, t.parent into v_active from auth.refresh_tokens as t where t.session_id = v_session.id and not t.revoked;
    if v_now - v_token.updated_at > p_grace and v_now - coalesce(v_token.reused_at, v_now) > p_grace
       or v_now - v_token.updated_at > p_grace and v_active.parent is distinct from p_token then
        delete from auth.sessions as s where s.id = v_session.id;
        return jsonb_build_object('outcome', 'already_used');
    end if;
    if v_now - v_token.updated_at > p_grace then
        update auth.refresh_tokens as t set reused_at = coalesce(t.reused_at, v_now) where t.id = v_token.id;
    end if;
    return jsonb_build_object('outcome', 'refreshed', 'token', v_active.token, 'session_id', v_session.id, 'method', v_session.method,
                              'signed_in_at', v_session.signed_in_at, 'user', gleaner.show_user(v_session.user_id));
end
$$;
comment on function gleaner.refresh_session(text, text, interval) is 'Trades a refresh token for the next one; reuse ends the session.';
revoke all on function gleaner.refresh_session(text, text, interval) from public, anon, authenticated;
