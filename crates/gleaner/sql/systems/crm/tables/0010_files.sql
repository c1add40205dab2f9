-- Activities that are gone and had files. The database cannot delete a file; a server does, and then the row.
create table gleaner.forgotten_files (
    activity_id uuid        not null,
    at          timestamptz not null default now(),
    constraint forgotten_files_pkey primary key (activity_id)
);
create index forgotten_files_at_idx on gleaner.forgotten_files (at);
comment on table gleaner.forgotten_files is 'Deleted activities whose recordings and attachments are still to be deleted.';
comment on column gleaner.forgotten_files.at is 'When the activity was deleted.';
