-- A workspace with members keeps an owner: otherwise none of them could invite or remove.
create or replace function gleaner.keep_an_owner() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- One at a time: two owners who leave at once must not both find the other.
    perform from public.workspaces as w where w.id in (select g.workspace_id from gone as g) order by w.id for no key update;
    if exists (
        select from gone as g
        join public.workspaces as w on w.id = g.workspace_id
        where g.role = 'owner'
          and exists (select from public.workspace_members as m where m.workspace_id = g.workspace_id)
          and not exists (select from public.workspace_members as m where m.workspace_id = g.workspace_id and m.role = 'owner'))
    then
        raise exception 'the last owner of a workspace cannot leave it while it has members'
            using errcode = 'GL002', hint = 'Invite another owner first, or remove the members.';
    end if;
    return null;
end
$$;
comment on function gleaner.keep_an_owner() is 'Refuses to leave a workspace with members and without an owner.';
revoke all on function gleaner.keep_an_owner() from public, anon, authenticated, service_role;

create or replace trigger keep_an_owner
after delete on public.workspace_members
referencing old table as gone
for each statement execute function gleaner.keep_an_owner();
