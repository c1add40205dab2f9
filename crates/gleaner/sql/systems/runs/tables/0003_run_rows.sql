-- How a run went: one row for each line of its data, and the pictures that were taken.
create table public.run_rows (
    run_id      uuid        not null,
    row_number  integer     not null,
    status      text        not null,
    error       text,
    failed_step integer,
    steps       jsonb       not null default '[]',
    duration_ms integer     not null,
    worker_id   text,
    finished_at timestamptz not null default now(),
    constraint run_rows_pkey primary key (run_id, row_number),
    constraint run_rows_run_id_fkey foreign key (run_id) references public.execution_jobs (id) on delete cascade,
    constraint run_rows_status_check check (status in ('passed', 'failed'))
);
comment on table public.run_rows is 'Result of a run for one line of its data; a row is written once, when the line is finished.';
comment on column public.run_rows.row_number is 'The line, counted from 1; without data there is one.';
comment on column public.run_rows.failed_step is 'The step that failed, counted from 1.';
comment on column public.run_rows.steps is 'The trace: [{step, do, status, duration_ms, tries, selector, url, error, refused}]. Secrets are masked.';

create table public.run_artefacts (
    id         uuid        not null default gen_random_uuid(),
    run_id     uuid        not null,
    row_number integer     not null,
    step       integer     not null,
    name       text        not null,
    media_type text        not null,
    size       bigint      not null,
    sha256     text        not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    constraint run_artefacts_pkey primary key (id),
    constraint run_artefacts_run_id_fkey foreign key (run_id) references public.execution_jobs (id) on delete cascade,
    constraint run_artefacts_sha256_check check (sha256 ~ '^[0-9a-f]{64}$')
);
-- A line that is replayed again replaces its pictures.
create unique index run_artefacts_step_key on public.run_artefacts (run_id, row_number, step, name);
create index run_artefacts_expires_at_idx on public.run_artefacts (expires_at);
comment on table public.run_artefacts is 'Screenshots of a run. The files are in the server''s file store.';
comment on column public.run_artefacts.size is 'In bytes.';
comment on column public.run_artefacts.expires_at is 'When the server deletes it.';

create table public.run_sites (
    site  text    not null,
    slots integer not null,
    constraint run_sites_pkey primary key (site),
    constraint run_sites_slots_check check (slots >= 0)
);
comment on table public.run_sites is 'How many runs may use a site at once, by all agents together. Zero: none.';
comment on column public.run_sites.site is 'Host and port, as in execution_jobs.site.';

-- Deleted pictures. The database cannot delete a file; a server does, and then the row.
create table gleaner.forgotten_artefacts (
    artefact_id uuid        not null,
    run_id      uuid        not null,
    sha256      text        not null,
    at          timestamptz not null default now(),
    constraint forgotten_artefacts_pkey primary key (artefact_id)
);
create index forgotten_artefacts_at_idx on gleaner.forgotten_artefacts (at);
comment on table gleaner.forgotten_artefacts is 'Deleted artefacts whose files are still to be deleted.';
