/*
 * Whether the caller is signed in as an administrator of the team that the crm system knows. Without the crm system there is no
 * team, and only the service key administers. A worker's key is never an administrator.
 * For policies: written as (select gleaner.is_administrator()) it is asked once per query and not once per row.
 */
create or replace function gleaner.is_administrator() returns boolean
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if gleaner.worker_session() is not null then
        return false;
    end if;
    -- A statement of its own: it is looked up only when it is reached.
    if to_regprocedure('gleaner.is_sales_administrator()') is not null then
        return gleaner.is_sales_administrator();
    end if;
    return false;
end
$$;
comment on function gleaner.is_administrator() is 'True when the signed-in caller is an administrator of the team.';
revoke all on function gleaner.is_administrator() from public, anon, authenticated;
grant execute on function gleaner.is_administrator() to gleaner_engine, authenticated, service_role;
