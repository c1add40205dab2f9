-- Dead letters: activities that will not be tried again, with the reason, for a person to look at.
create table public.activity_failures (
    id                   uuid not null default gen_random_uuid(),
    original_activity_id uuid,
    failure_reason       text,
    raw_data             jsonb,
    created_at           timestamptz default now(),
    constraint activity_failures_pkey primary key (id),
    -- Cascade: the copy of a message must not outlive the message somebody chose to delete.
    constraint activity_failures_original_activity_id_fkey
        foreign key (original_activity_id) references public.activities (id) on delete cascade
);
create index activity_failures_original_activity_id_idx on public.activity_failures (original_activity_id);
create index activity_failures_created_at_idx on public.activity_failures (created_at);
comment on table public.activity_failures is 'Dead letters of activities; one row each time an activity was given up.';
