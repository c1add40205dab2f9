-- The engine's notes about a row are for those who may see the row: what operators did, and results that came too late.
-- Administrators see all of them, and members their own acts as well. Programs and acts are not held by this: grants say who may write.
alter table gleaner.audit enable row level security;
alter table gleaner.late_result enable row level security;
revoke all on gleaner.audit, gleaner.late_result from public, anon, authenticated;
grant select on gleaner.audit, gleaner.late_result to authenticated;

drop policy if exists audit_programs on gleaner.audit;
create policy audit_programs on gleaner.audit using (current_user not in ('anon', 'authenticated')) with check (true);
drop policy if exists audit_people on gleaner.audit;
create policy audit_people on gleaner.audit for select to authenticated
    using ((select gleaner.is_administrator())
           or (select gleaner.is_member()) and (caller like (select auth.uid()::text || '/%') or gleaner.sees(queue, key)));

drop policy if exists late_result_programs on gleaner.late_result;
create policy late_result_programs on gleaner.late_result using (current_user not in ('anon', 'authenticated')) with check (true);
drop policy if exists late_result_people on gleaner.late_result;
create policy late_result_people on gleaner.late_result for select to authenticated
    using ((select gleaner.is_administrator()) or (select gleaner.is_member()) and gleaner.sees(queue, key));
