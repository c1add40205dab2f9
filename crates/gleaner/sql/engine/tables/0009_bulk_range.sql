-- A bulk range: rows that were enqueued together, of one kind, class and due time, whose keys follow each other. They wait by this one
-- record instead of an entry each in the probe index, until a claim binds them in a batch lease or spreads them into rows that stand
-- alone. A row lies in a bulk range while the bulk range names its key and the row's own lease is -1, which no batch lease and no act gives.
create table gleaner.bulk_range (
    queue  text             not null,
    kind   text collate "C" not null,
    class  smallint         not null,
    due_at timestamptz      not null,
    first  bigint           not null,
    last   bigint           not null,
    -- Serves the claim: the first bulk range of each lane, in the order of the line.
    constraint bulk_range_pkey primary key (queue, kind, class, due_at, first),
    constraint bulk_range_not_empty check (first <= last)
)
-- Each claim takes the head off one.
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
comment on table gleaner.bulk_range is 'Rows that were put in together and wait together: one entry in the line for all of them.';

revoke all on gleaner.bulk_range from public, anon, authenticated, service_role;
grant select, insert, update, delete on gleaner.bulk_range to gleaner_engine;
grant select on gleaner.bulk_range to service_role;
