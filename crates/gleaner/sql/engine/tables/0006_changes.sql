-- What changed in published tables, for a server that cannot read the log (wal_level, rights, a pooler in between). Written by
-- gleaner.note_change only while such a server follows, and kept for about a minute.
-- Unlogged: after a crash the table is empty, the server sees that by gleaner.changes_generation, which is lost with it, and
-- tells its subscribers of the gap. Nothing else would make use of what survived.
create unlogged table gleaner.change (
    -- Drawn while the row's lock is held, so that the numbers of one row's changes are in the order of the changes.
    id       bigint generated always as identity,
    -- The whole id of the transaction: whether a snapshot sees it is all that a reader needs to know.
    xid      xid8        not null default pg_current_xact_id(),
    at       timestamptz not null default clock_timestamp(),
    relation oid         not null,
    kind     "char"      not null,
    new_row  text,
    old_row  text,
    constraint change_kind_check check (kind in ('I', 'U', 'D'))
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
-- The only one, for writers pay for each: readers ask for transactions, and so does the pruning.
create index change_xid_idx on gleaner.change (xid);
comment on table gleaner.change is 'Changes of published tables, where a server follows them without the log.';
comment on column gleaner.change.new_row is 'The row in its text form; null for a delete.';
comment on column gleaner.change.old_row is 'The beginning of the old row: of a delete, or of an update that changed the key.';

-- Numbers that everybody must see at once, whatever their snapshot, and that is what a sequence is.
create sequence gleaner.changes_wanted_until minvalue 0 start 0;
comment on sequence gleaner.changes_wanted_until is 'Until then (milliseconds since 1970) somebody follows, and changes are noted.';
create sequence gleaner.changes_pruned_before minvalue 0 start 0;
comment on sequence gleaner.changes_pruned_before is 'Changes of transactions before this one may be gone.';

create unlogged sequence gleaner.changes_generation minvalue 0 start 0;
comment on sequence gleaner.changes_generation is 'Another number after every loss of gleaner.change; 0 until somebody follows again.';

-- Rows of every published table are in it: nobody but the owner reads them, and writers write through a definer function.
revoke all on gleaner.change from public, anon, authenticated, service_role;
revoke all on sequence gleaner.changes_wanted_until, gleaner.changes_pruned_before, gleaner.changes_generation from public, anon, authenticated, service_role;
