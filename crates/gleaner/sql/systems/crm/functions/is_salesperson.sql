/*
 * Whether the signed-in caller has a row in sales that is not disabled. A disabled person's token is worth nothing from that
 * moment on. For gleaner.is_member, which every system's policies ask.
 * Security definer: the policy on sales asks it, and would otherwise ask itself.
 */
create or replace function gleaner.is_salesperson() returns boolean
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    return exists (select from public.sales as s where s.user_id = auth.uid() and not s.disabled);
end
$$;
comment on function gleaner.is_salesperson() is 'True when the signed-in caller is a person of the team who is not disabled.';
revoke all on function gleaner.is_salesperson() from public, anon, authenticated;
