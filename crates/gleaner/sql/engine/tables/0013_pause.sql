-- Queues that administrators have paused: claims find nothing in them. What is held already goes on.
create table gleaner.pause (
    queue  text        not null,
    at     timestamptz not null default clock_timestamp(),
    caller text        not null,
    reason text,
    constraint pause_pkey primary key (queue)
);
comment on table gleaner.pause is 'Queues in which claims find nothing, until they are resumed.';
revoke all on gleaner.pause from public, anon, authenticated, service_role;
grant select on gleaner.pause to gleaner_engine, authenticated, service_role;
grant insert, update, delete on gleaner.pause to gleaner_engine;
