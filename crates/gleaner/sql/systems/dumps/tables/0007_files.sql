-- Dumps that were added as a file. The file itself is in the server's file store.
alter table public.raw_dumps
    add column file_name   text,
    add column file_size   bigint,
    add column media_type  text,
    add column file_sha256 text,
    add constraint raw_dumps_file_whole_check check (num_nonnulls(file_name, file_size, media_type, file_sha256) in (0, 4)),
    add constraint raw_dumps_file_sha256_check check (file_sha256 ~ '^[0-9a-f]{64}$');
-- The same file twice in a basket is one dump.
create unique index raw_dumps_same_file_key on public.raw_dumps (basket_id, file_sha256);
comment on column public.raw_dumps.body_md is 'The text: as it was captured, or as it was read from the file.';
comment on column public.raw_dumps.file_name is 'Name of the file it was added as; null for captured text.';
comment on column public.raw_dumps.file_size is 'In bytes.';
comment on column public.raw_dumps.file_sha256 is 'SHA-256 of the file, in hexadecimal digits.';

-- Deleted dumps that had a file. The database cannot delete a file; a server does, and then the row.
create table gleaner.forgotten_dump_files (
    dump_id uuid        not null,
    sha256  text        not null,
    at      timestamptz not null default now(),
    constraint forgotten_dump_files_pkey primary key (dump_id)
);
create index forgotten_dump_files_at_idx on gleaner.forgotten_dump_files (at);
comment on table gleaner.forgotten_dump_files is 'Deleted dumps whose files are still to be deleted.';
