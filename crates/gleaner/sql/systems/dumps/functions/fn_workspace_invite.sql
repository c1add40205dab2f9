/*
 * Invites an e-mail address to a workspace. The token is returned once, to be handed over; only its hash is stored. It is good
 * for seven days, once, and only for a user who signs in with that address.
 * Raises   42501 for callers who do not own the workspace.
 * Returns  {id, token, expires_at}.
 */
create or replace function public.fn_workspace_invite(p_workspace_id uuid, p_email text, p_role text default 'member') returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Two version 4 uuids: 244 random bits, without an extension.
    v_token text := replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');
    v_id    uuid;
    v_until timestamptz;
begin
    if not gleaner.owns_workspace(p_workspace_id) then
        raise exception 'only owners of the workspace invite to it' using errcode = '42501', hint = 'Ask an owner of the workspace.';
    end if;
    insert into public.workspace_invitations (workspace_id, email, role, token_hash, invited_by)
    values (p_workspace_id, lower(btrim(p_email)), p_role, sha256(convert_to(v_token, 'UTF8')), auth.uid())
    returning id, expires_at into v_id, v_until;
    return jsonb_build_object('id', v_id, 'token', v_token, 'expires_at', v_until);
end
$$;
comment on function public.fn_workspace_invite(uuid, text, text) is 'Invites an e-mail address to a workspace; returns the token once.';
revoke all on function public.fn_workspace_invite(uuid, text, text) from public, anon, authenticated;
grant execute on function public.fn_workspace_invite(uuid, text, text) to authenticated, service_role;
