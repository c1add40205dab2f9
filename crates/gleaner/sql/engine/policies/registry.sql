-- Which tables are queues, and how, is for the team: people and workers. Signing up alone makes no member. Programs and acts are not
-- held by this: grants say who may read.
alter table gleaner.queue enable row level security;
revoke all on gleaner.queue from public, anon, authenticated;
grant select on gleaner.queue to authenticated;

drop policy if exists queue_programs on gleaner.queue;
create policy queue_programs on gleaner.queue using (current_user not in ('anon', 'authenticated')) with check (true);
drop policy if exists queue_people on gleaner.queue;
create policy queue_people on gleaner.queue for select to authenticated using ((select gleaner.is_member()));
