/*
 * Whether the caller belongs to the team: a signed-in person with a row in sales that is not disabled, or a worker's key, which
 * the policies for workers then narrow to what it holds. Signing up alone makes nobody a member, and a disabled person's token is
 * worth nothing from that moment on. For policies: written as (select gleaner.is_member()) it is asked once per query.
 * Security definer: the policy on sales asks it, and would otherwise ask itself.
 */
create or replace function gleaner.is_member() returns boolean
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    return gleaner.worker_session() is not null
        or exists (select from public.sales as s where s.user_id = auth.uid() and not s.disabled);
end
$$;
comment on function gleaner.is_member() is 'True when the caller belongs to the team: a person who is not disabled, or a worker''s key.';
revoke all on function gleaner.is_member() from public, anon, authenticated;
grant execute on function gleaner.is_member() to authenticated, service_role;
