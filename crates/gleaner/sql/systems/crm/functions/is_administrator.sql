/*
 * Whether the caller is signed in as an administrator of the team. For policies: written as (select gleaner.is_administrator())
 * it is asked once per query and not once per row.
 * Security definer: the policy on sales asks it, and would otherwise ask itself.
 */
create or replace function gleaner.is_administrator() returns boolean
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select exists (
        select from public.sales as s where s.user_id = auth.uid() and s.administrator and not s.disabled)
$$;
comment on function gleaner.is_administrator() is 'True when the signed-in caller is an administrator of the team.';
revoke all on function gleaner.is_administrator() from public, anon;
grant execute on function gleaner.is_administrator() to authenticated, service_role;
