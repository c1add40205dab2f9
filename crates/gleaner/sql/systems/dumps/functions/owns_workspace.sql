-- Whether the caller may invite to a workspace and remove from it: its owners, administrators of the team, the service key.
create or replace function gleaner.owns_workspace(p_workspace_id uuid) returns boolean
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return gleaner.is_trusted() or gleaner.is_administrator()
        or p_workspace_id = any (gleaner.my_workspaces())
           and exists (select from public.workspace_members as m
                       where m.workspace_id = p_workspace_id and m.user_id = auth.uid() and m.role = 'owner');
end
$$;
comment on function gleaner.owns_workspace(uuid) is 'Whether the caller may invite to a workspace and remove from it.';
revoke all on function gleaner.owns_workspace(uuid) from public, anon, authenticated;
grant execute on function gleaner.owns_workspace(uuid) to authenticated, service_role;
