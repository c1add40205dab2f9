/*
 * Whether the caller belongs to the team: a person the crm system knows, or a worker's key, which the policies for workers then
 * narrow to what it holds. Signing up alone makes no user a member. Without the crm system there is no team, and nobody but
 * workers and the service key comes in by such a policy.
 * For policies: written as (select gleaner.is_member()) it is asked once per query.
 */
create or replace function gleaner.is_member() returns boolean
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if gleaner.worker_session() is not null then
        return true;
    end if;
    -- A statement of its own: it is looked up only when it is reached.
    if to_regprocedure('gleaner.is_salesperson()') is not null then
        return gleaner.is_salesperson();
    end if;
    return false;
end
$$;
comment on function gleaner.is_member() is 'True when the caller belongs to the team: a person who is not disabled, or a worker''s key.';
revoke all on function gleaner.is_member() from public, anon, authenticated;
grant execute on function gleaner.is_member() to gleaner_engine, authenticated, service_role;
