-- Test runs: a recording, the data to run it with, and how it went.
create table public.execution_jobs (
    id           uuid        not null default gen_random_uuid(),
    status       text        not null default 'queued',
    recording_id text,
    csv_data     text,
    config       jsonb       not null default '{}',
    worker_id    text,
    started_at   timestamptz,
    completed_at timestamptz,
    result       jsonb,
    progress     jsonb,
    error        text,
    version      integer     not null default 1,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    constraint execution_jobs_pkey primary key (id),
    constraint execution_jobs_status_check check (status in ('queued', 'running', 'completed', 'failed', 'cancelled'))
);
comment on table public.execution_jobs is 'Work queue of test runs: queued, running, completed, failed, cancelled.';
comment on column public.execution_jobs.worker_id is 'Who runs it; given by the worker.';
comment on column public.execution_jobs.version is 'Grows with every change of status, so that a claim by version fails when anybody was quicker.';
comment on column public.execution_jobs.updated_at is 'The database''s time of the last change; a claim may compare it like a version.';

create index idx_execution_jobs_status on public.execution_jobs (status);
create index idx_execution_jobs_created_at on public.execution_jobs (created_at);
create index idx_execution_jobs_status_created on public.execution_jobs (status, created_at);
