-- What a run replays: a recording has versions, and a version never changes, so that a run can be read years later.
create table public.recordings (
    id         uuid        not null default gen_random_uuid(),
    name       text        not null,
    created_by uuid,
    created_at timestamptz not null default now(),
    constraint recordings_pkey primary key (id),
    constraint recordings_name_check check (btrim(name) <> '' and length(name) <= 200)
);
create unique index recordings_name_key on public.recordings (lower(name));
comment on table public.recordings is 'Recorded steps in a browser, by name.';
comment on column public.recordings.created_by is 'Who added it; null for the service key.';

create table public.recording_versions (
    id           uuid        not null default gen_random_uuid(),
    recording_id uuid        not null,
    version      integer     not null,
    format       text        not null,
    content      jsonb       not null,
    site         text,
    created_by   uuid,
    created_at   timestamptz not null default now(),
    constraint recording_versions_pkey primary key (id),
    constraint recording_versions_version_key unique (recording_id, version),
    constraint recording_versions_recording_id_fkey foreign key (recording_id) references public.recordings (id) on delete cascade,
    constraint recording_versions_format_check check (format in ('recorder', 'steps')),
    constraint recording_versions_content_check check (octet_length(content::text) <= 1048576)
);
comment on table public.recording_versions is 'The steps of a recording. A version is never changed.';
comment on column public.recording_versions.version is 'Counted from 1; set by the database.';
comment on column public.recording_versions.format is 'recorder: Chrome''s Recorder; steps: our own list. Set by the database.';
comment on column public.recording_versions.site is 'Host and port that the first step opens; null if the data of the run says it.';

alter table public.execution_jobs
    add column kind                 text,
    add column recording_version_id uuid,
    add column site                 text,
    add column submitted_by         uuid,
    add column begun_lease          bigint,
    add constraint execution_jobs_recording_version_id_fkey foreign key (recording_version_id) references public.recording_versions (id) on delete set null;
create index execution_jobs_recording_version_id_idx on public.execution_jobs (recording_version_id);
-- Serves gleaner.begin_run, which counts the runs on a site.
create index execution_jobs_site_idx on public.execution_jobs (site) where status = 'running';
comment on column public.execution_jobs.kind is 'browser, or browser:LABEL for machines with that label: replayed by agents that have a browser. Null: run by programs of your own.';
comment on column public.execution_jobs.recording_id is 'Id of a row in recordings; or whatever your own runner reads.';
comment on column public.execution_jobs.recording_version_id is 'The version it replays; the newest one at the time it was queued.';
comment on column public.execution_jobs.site is 'Host and port that the run opens first; run_sites limits how many runs may use it at once.';
comment on column public.execution_jobs.submitted_by is 'Who queued it; null for the service key.';
comment on column public.execution_jobs.begun_lease is 'The lease under which an agent began to use the site.';
