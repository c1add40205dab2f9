-- Acts of an operator on many rows at once: how far each has come. A server works one off in batches; what is here is for people to watch, and
-- to stop it. What it did to each row is in the audit.
create table gleaner.operation (
    id          uuid        not null default gen_random_uuid(),
    queue       text        not null,
    act         text        not null,
    filter      jsonb       not null,
    caller      text        not null,
    state       text        not null default 'running',
    -- How many rows it was started for, how many were changed, needed no change, or could not be changed.
    total       integer     not null,
    done        integer     not null default 0,
    already     integer     not null default 0,
    failed      integer     not null default 0,
    stopped     boolean     not null default false,
    error       text,
    started_at  timestamptz not null default clock_timestamp(),
    -- A server that works on it says so with every batch; one that is silent has died.
    changed_at  timestamptz not null default clock_timestamp(),
    constraint operation_pkey primary key (id),
    constraint operation_state_known check (state in ('running', 'done', 'stopped', 'failed', 'interrupted'))
);
-- One at a time in a queue: two would take the same rows from each other.
create unique index operation_running_idx on gleaner.operation (queue) where state = 'running';
create index operation_queue_idx on gleaner.operation (queue, started_at desc);
comment on table gleaner.operation is 'Acts of an operator on many rows, and how far they have come.';

revoke all on gleaner.operation from public, anon, authenticated, service_role;
grant select on gleaner.operation to gleaner_engine, service_role;
