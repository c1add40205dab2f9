-- One row per attached table: the declaration, what attach added, and the SQL it rendered.
create table gleaner.queue (
    name        text primary key,
    table_name  text        not null unique,
    declaration jsonb       not null,
    source      text        not null,
    added       jsonb       not null default '{}',
    rendered    text        not null,
    attached_at timestamptz not null default now(),
    changed_at  timestamptz not null default now(),
    constraint queue_name_plain check (name ~ '^[a-z][a-z0-9_]{0,39}$')
);
comment on table gleaner.queue is 'Every attached table; servers and agents find their queues here.';
comment on column gleaner.queue.source is 'The declaration as its author wrote it (TOML).';
comment on column gleaner.queue.added is 'What attach put on the table, and so what detach takes off again.';
comment on column gleaner.queue.rendered is 'The SQL that `gleaner sql` prints, exactly as it was run.';

-- A claim that carries a request id can be repeated when its answer was lost: the repetition returns
-- the same rows instead of taking more, and nobody's lease is lost by a dropped connection.
create table gleaner.request (
    queue  text        not null,
    id     uuid        not null,
    at     timestamptz not null,
    keys   text[]      not null default '{}',
    leases bigint[]    not null default '{}',
    constraint request_pkey primary key (queue, id)
);
create index request_at_idx on gleaner.request (at);

-- Results that came after their lease had passed to somebody else. They change nothing; they are evidence.
create table gleaner.late_result (
    id     bigint generated always as identity primary key,
    at     timestamptz not null default clock_timestamp(),
    queue  text        not null,
    tenant text        not null default '',
    key    text        not null,
    lease  bigint      not null,
    caller text,
    result jsonb
);
create index late_result_key_idx on gleaner.late_result (queue, key);

-- Rows that rejected a change: a check that does not hold, a trigger that raises or skips the update.
-- Claims leave them out for a while, longer each time, so that one bad row never blocks the line.
create table gleaner.rejected_row (
    queue  text        not null,
    -- Empty where the queue has no tenants.
    tenant text        not null default '',
    -- The key as text; with its partition columns, as a row, where those belong to the primary key.
    key    text        not null,
    until  timestamptz not null,
    tries  integer     not null default 1,
    reason text        not null,
    constraint rejected_row_pkey primary key (queue, tenant, key)
);

-- What people did to rows by hand: requeue, bury, assign, cancel.
create table gleaner.audit (
    id     bigint generated always as identity primary key,
    at     timestamptz not null default clock_timestamp(),
    queue  text        not null,
    tenant text        not null default '',
    key    text        not null,
    act    text        not null,
    caller text        not null,
    detail jsonb
);
create index audit_key_idx on gleaner.audit (queue, key, id);

-- All of these are the engine's own: definer functions write them, trusted roles may read.
revoke all on all tables in schema gleaner from public, anon, authenticated;
grant select, insert, update, delete on gleaner.request, gleaner.late_result, gleaner.rejected_row, gleaner.audit to gleaner_engine;
grant select on gleaner.queue to gleaner_engine, authenticated, service_role;
grant select on gleaner.late_result, gleaner.rejected_row, gleaner.audit to service_role;
