-- Everyone in the team sees who is in it; each person edits their own row, and sees it also when disabled.
revoke all on public.sales from public, anon;
-- Truncate passes by row level security.
revoke truncate, references, trigger on public.sales from authenticated;
grant select, update on public.sales to authenticated;
grant all on public.sales to service_role;
grant select on public.sales to gleaner_engine;

drop policy if exists sales_service on public.sales;
create policy sales_service on public.sales to service_role using (true) with check (true);
drop policy if exists sales_engine on public.sales;
create policy sales_engine on public.sales for select to gleaner_engine using (true);

-- Restrictive, so that a CRM's own wider policy cannot let one owner change another's threshold or privacy. The check
-- keeps people from making themselves administrators: that takes one already, or the service key.
drop policy if exists sales_own_row_only on public.sales;
create policy sales_own_row_only on public.sales as restrictive for update to authenticated
    using (user_id = (select auth.uid()) and not disabled)
    with check (user_id = (select auth.uid()) and (not administrator or (select gleaner.is_administrator())));

-- Permissive policies are OR-ed: on a table that came with policies of its own, ours would widen them.
drop policy if exists sales_read on public.sales;
drop policy if exists sales_update_own on public.sales;
do $permissive$
begin
    if not exists (
        select from pg_catalog.pg_policies
        where schemaname = 'public' and tablename = 'sales'
          and policyname not in ('sales_service', 'sales_engine', 'sales_own_row_only', 'sales_workers')
    ) then
        create policy sales_read on public.sales for select to authenticated
            using (user_id = (select auth.uid()) or (select gleaner.is_member()));
        create policy sales_update_own on public.sales for update to authenticated
            using (user_id = (select auth.uid())) with check (true);
    end if;
end
$permissive$;
