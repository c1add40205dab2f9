-- A batch lease: rows that one claim took together, held by this one record instead of a change to each row. A row is held by it while
-- the record names its key, the row is ready, and its own lease is the record's `mark`: 0 for rows that waited each by itself, -1 for
-- those of a bulk range. What a finished row says itself is enough, so keys stay as they were claimed, and `remaining` counts.
-- The lease of these rows is the id, negated; a row's own leases are positive, so the two never meet.
create sequence gleaner.batch_lease_seq cycle maxvalue 1023 minvalue 0;
create table gleaner.batch_lease (
    -- Milliseconds and a number: ids never come again, not even after a backup was restored, and stay exact in JavaScript.
    id          bigint         not null default (extract(epoch from clock_timestamp()) * 1000)::bigint * 1024 + nextval('gleaner.batch_lease_seq')
                constraint batch_lease_pkey primary key,
    queue       text           not null,
    -- Readers begin at the oldest transaction that could still bring one: see gleaner.look_at_batches.
    xid         xid8           not null default pg_current_xact_id(),
    keys        int8multirange not null,
    mark        smallint       not null,
    remaining   integer        not null,
    -- The keys of work that has begun: what is lost of it counts.
    begun       int8multirange not null default '{}',
    agent       text,
    session     text           not null,
    due_at      timestamptz    not null,
    deadline_at timestamptz    not null
)
-- A record changes as its rows are completed; room on the page keeps that out of the indexes.
with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index batch_lease_queue_idx on gleaner.batch_lease (queue, xid);
comment on table gleaner.batch_lease is 'Rows that one claim took together: one lease for all of them.';

revoke all on gleaner.batch_lease from public, anon, authenticated, service_role;
grant select, insert, update, delete on gleaner.batch_lease to gleaner_engine;
grant usage on sequence gleaner.batch_lease_seq to gleaner_engine;
grant select on gleaner.batch_lease to service_role;
