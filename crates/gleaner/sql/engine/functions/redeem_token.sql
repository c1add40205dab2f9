/*
 * Uses up a link. Its holder reads the user's mail, or got it from an administrator: the address counts as confirmed.
 * Takes    p_password, a hash to set at the same time; or null.
 * Races    the delete decides: of two uses at once one finds nothing.
 * Returns  the user; null when the link is unknown, used, expired, of another kind, or meant for an earlier address.
 */
create or replace function gleaner.redeem_token(p_hash text, p_types text[], p_password text) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_user uuid;
begin
    delete from auth.one_time_tokens as t
    using auth.users as u
    where t.token_hash = p_hash and t.token_type = any (p_types) and t.expires_at > clock_timestamp()
      and u.id = t.user_id and u.email = t.relates_to
    returning t.user_id into v_user;
    if v_user is not null then
        perform gleaner.change_user(
            v_user, jsonb_strip_nulls(jsonb_build_object('email_confirm', true, 'password', p_password)), null);
    end if;
    return v_user;
end
$$;
comment on function gleaner.redeem_token(text, text[], text) is 'Uses up a one-time link; gives its user, or null.';
revoke all on function gleaner.redeem_token(text, text[], text) from public, anon, authenticated;
