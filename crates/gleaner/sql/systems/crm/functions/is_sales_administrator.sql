/*
 * Whether the signed-in caller has a row in sales that is an administrator's and not disabled. For gleaner.is_administrator.
 * Security definer: the policy on sales asks it, and would otherwise ask itself.
 */
create or replace function gleaner.is_sales_administrator() returns boolean
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    return exists (select from public.sales as s where s.user_id = auth.uid() and s.administrator and not s.disabled);
end
$$;
comment on function gleaner.is_sales_administrator() is 'True when the signed-in caller is a person of the team who administers it.';
revoke all on function gleaner.is_sales_administrator() from public, anon, authenticated;
