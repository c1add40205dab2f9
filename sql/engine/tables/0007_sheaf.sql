-- A sheaf: rows that one claim took together, held by this one record instead of a change to each row. A row is held by a
-- sheaf while the sheaf names its key and the row's own lease is still zero. Leases of a sheaf are its id, negated; a row's own
-- leases are positive, so the two never meet. Counting begins above what an act adds to a lease, so that none comes to zero.
create table gleaner.sheaf (
    id          bigint generated always as identity (start with 1000) constraint sheaf_pkey primary key,
    queue       text           not null,
    -- Readers begin at the oldest transaction that could still bring one: see the claim.
    xid         xid8           not null default pg_current_xact_id(),
    keys        int8multirange not null,
    -- The keys of work that has begun: what is lost of it counts.
    begun       int8multirange not null default '{}',
    agent       text,
    session     text           not null,
    due_at      timestamptz    not null,
    deadline_at timestamptz    not null
)
-- A sheaf shrinks as its rows are completed; room on the page keeps that out of the indexes.
with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index sheaf_queue_idx on gleaner.sheaf (queue, xid);
comment on table gleaner.sheaf is 'Rows that one claim took together: one lease for all of them.';

revoke all on gleaner.sheaf from public, anon, authenticated, service_role;
grant select, insert, update, delete on gleaner.sheaf to gleaner_engine;
grant select on gleaner.sheaf to service_role;
