-- How far a mailbox was read is for administrators to see, and for the service key to work with.
alter table gleaner.polls enable row level security;
revoke all on gleaner.polls from public, anon, authenticated;
grant select, insert, update, delete on gleaner.polls to service_role, gleaner_engine;

drop policy if exists polls_service on gleaner.polls;
create policy polls_service on gleaner.polls to service_role using (true) with check (true);
drop policy if exists polls_engine on gleaner.polls;
create policy polls_engine on gleaner.polls to gleaner_engine using (true) with check (true);
