/*
 * The workspaces of the signed-in caller. Where there is a team, a disabled member has none.
 * For policies: written as (select gleaner.my_workspaces()) it is asked once per query, and the index of the workspace is used.
 */
create or replace function gleaner.my_workspaces() returns uuid[]
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if gleaner.worker_session() is not null
       or to_regprocedure('gleaner.is_salesperson()') is not null and not gleaner.is_member() then
        return '{}';
    end if;
    return array(select m.workspace_id from public.workspace_members as m where m.user_id = auth.uid());
end
$$;
comment on function gleaner.my_workspaces() is 'The workspaces of the signed-in caller.';
revoke all on function gleaner.my_workspaces() from public, anon, authenticated;
grant execute on function gleaner.my_workspaces() to gleaner_engine, authenticated, service_role;
