/*
 * Makes a user and its place in the team, or nothing of both.
 * Takes    p_email in lower case; p_password a hash or null; p_link: an owner's row that is not linked to a user yet and has
 *          this address becomes the user's. Only for confirmed addresses: a caller who makes up an address must not
 *          come into an administrator's row.
 * Returns  the new id; null when the address is taken.
 */
create or replace function gleaner.add_user(
    p_email text, p_password text, p_user_meta jsonb, p_app_meta jsonb, p_confirmed boolean, p_administrator boolean, p_link boolean,
    p_id uuid default null
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_id  uuid;
begin
    insert into auth.users (id, email, encrypted_password, email_confirmed_at, raw_user_meta_data, raw_app_meta_data, created_at, updated_at)
    values (coalesce(p_id, gen_random_uuid()), p_email, p_password, case when p_confirmed then v_now end, coalesce(p_user_meta, '{}'),
            coalesce(p_app_meta, '{}') || '{"provider": "email", "providers": ["email"]}', v_now, v_now)
    on conflict do nothing
    returning id into v_id;
    if v_id is null then
        return null;
    end if;
    insert into auth.identities (provider_id, user_id, provider, identity_data)
    values (v_id::text, v_id, 'email', jsonb_build_object('sub', v_id, 'email', p_email, 'email_verified', p_confirmed, 'phone_verified', false));
    -- A user with an unconfirmed address joins when it is confirmed.
    if p_confirmed then
        perform gleaner.join_team(v_id, p_administrator, p_link);
    end if;
    return v_id;
end
$$;
comment on function gleaner.add_user(text, text, jsonb, jsonb, boolean, boolean, boolean, uuid) is
    'Makes a user and its owner''s row; null when the address is taken.';
revoke all on function gleaner.add_user(text, text, jsonb, jsonb, boolean, boolean, boolean, uuid) from public, anon, authenticated;
