/*
 * A user as the wire has it, without anything secret. Times as Supabase's Auth writes them: UTC, to the microsecond.
 * Returns  null when there is no such user.
 */
create or replace function gleaner.show_user(p_user uuid) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
    v_form constant text := 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"';
begin
    return (
        select jsonb_strip_nulls(jsonb_build_object(
                   'email_confirmed_at', to_char(u.email_confirmed_at, v_form),
                   'confirmed_at', to_char(u.email_confirmed_at, v_form),
                   'invited_at', to_char(u.invited_at, v_form),
                   'last_sign_in_at', to_char(u.last_sign_in_at, v_form),
                   -- A ban without an end is a date far away: clients parse it.
                   'banned_until', to_char(case when isfinite(u.banned_until) then u.banned_until
                                                when u.banned_until > now() then timestamptz '9999-12-31 23:59:59Z' end, v_form)))
               || jsonb_build_object(
                   'id', u.id, 'aud', u.aud, 'role', u.role, 'email', coalesce(u.email, ''), 'phone', coalesce(u.phone, ''),
                   'app_metadata', u.raw_app_meta_data, 'user_metadata', u.raw_user_meta_data,
                   'created_at', to_char(u.created_at, v_form), 'updated_at', to_char(u.updated_at, v_form),
                   'is_anonymous', u.is_anonymous,
                   'identities', coalesce((
                       select jsonb_agg(jsonb_build_object(
                                  'identity_id', i.id, 'id', i.provider_id, 'user_id', i.user_id, 'identity_data', i.identity_data,
                                  'provider', i.provider, 'email', i.email,
                                  'last_sign_in_at', to_char(i.last_sign_in_at, v_form),
                                  'created_at', to_char(i.created_at, v_form), 'updated_at', to_char(i.updated_at, v_form))
                              order by i.created_at)
                       from auth.identities as i
                       where i.user_id = u.id), '[]'))
        from auth.users as u
        where u.id = p_user);
end
$$;
comment on function gleaner.show_user(uuid) is 'A user as /auth/v1/user answers; null when there is none.';
revoke all on function gleaner.show_user(uuid) from public, anon, authenticated;
