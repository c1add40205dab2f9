/*
 * Accepts an invitation: the signed-in caller becomes a member.
 * Raises   42501, with the same words, for a token that is unknown, used, expired or meant for another address.
 * Returns  the workspace's id.
 */
create or replace function public.fn_workspace_join(p_token text) returns uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_workspace uuid;
    v_role      text;
begin
    update public.workspace_invitations as i
    set accepted_at = now(), accepted_by = auth.uid()
    where i.token_hash = sha256(convert_to(p_token, 'UTF8'))
      and i.accepted_at is null
      and i.expires_at > clock_timestamp()
      and auth.uid() is not null
      and i.email = lower(auth.jwt() ->> 'email')
    returning i.workspace_id, i.role into v_workspace, v_role;
    if not found then
        raise exception 'this invitation cannot be accepted'
            using errcode = '42501', hint = 'Sign in with the address that was invited, or ask for a new invitation: each is good once, for seven days.';
    end if;
    insert into public.workspace_members (workspace_id, user_id, role)
    values (v_workspace, auth.uid(), v_role)
    -- Who is an owner already stays one.
    on conflict on constraint workspace_members_pkey do nothing;
    return v_workspace;
end
$$;
comment on function public.fn_workspace_join(text) is 'Accepts an invitation to a workspace.';
revoke all on function public.fn_workspace_join(text) from public, anon, authenticated;
grant execute on function public.fn_workspace_join(text) to authenticated;
