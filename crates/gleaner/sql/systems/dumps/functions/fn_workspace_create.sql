/*
 * Makes a workspace with one basket; the caller becomes its owner.
 * Raises   42501 for callers outside the team.
 * Returns  {workspace_id, basket_id}.
 */
create or replace function public.fn_workspace_create(p_name text, p_basket text default 'Inbox') returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_workspace uuid;
    v_basket    uuid;
begin
    if not gleaner.is_trusted()
       and (auth.uid() is null or to_regprocedure('gleaner.is_salesperson()') is not null and not gleaner.is_member()
            or gleaner.worker_session() is not null) then
        raise exception 'only members of the team make workspaces' using errcode = '42501', hint = 'Ask an administrator to add you to the team.';
    end if;
    insert into public.workspaces (name) values (p_name) returning id into v_workspace;
    insert into public.baskets (workspace_id, name) values (v_workspace, p_basket) returning id into v_basket;
    if auth.uid() is not null then
        insert into public.workspace_members (workspace_id, user_id, role) values (v_workspace, auth.uid(), 'owner');
    end if;
    return jsonb_build_object('workspace_id', v_workspace, 'basket_id', v_basket);
end
$$;
comment on function public.fn_workspace_create(text, text) is 'Makes a workspace with one basket; the caller becomes its owner.';
revoke all on function public.fn_workspace_create(text, text) from public, anon, authenticated;
grant execute on function public.fn_workspace_create(text, text) to authenticated, service_role;
