-- Follow-ups that recur. An occurrence is a row of scheduled_actions, once for each schedule and time.
create table public.followup_schedules (
    id              uuid         not null default gen_random_uuid(),
    name            text,
    prospect_id     varchar(255) not null,
    contact_id      bigint,
    action_type     text         not null default 'follow_up',
    payload         jsonb        not null default '{}',
    cron            text         not null,
    time_zone       text         not null default 'UTC',
    missed          text         not null default 'latest',
    missed_limit    integer      not null default 10,
    tolerance       interval     not null default '5 minutes',
    until_reply     boolean      not null default false,
    ends_at         timestamptz,
    status          varchar(20)  not null default 'active',
    next_at         timestamptz  not null default now(),
    seen_until      timestamptz  not null default now(),
    last_occurrence timestamptz,
    missed_count    bigint       not null default 0,
    paused_reason   text,
    error_message   text,
    finished_at     timestamptz,
    created_at      timestamptz  not null default now(),
    updated_at      timestamptz  not null default now(),
    constraint followup_schedules_pkey primary key (id),
    constraint followup_schedules_status_check check (status in ('active', 'working', 'ended', 'failed', 'paused')),
    constraint followup_schedules_missed_check check (missed in ('skip', 'latest', 'all')),
    constraint followup_schedules_missed_limit_check check (missed_limit between 1 and 1000),
    constraint followup_schedules_tolerance_check check (tolerance >= interval '0')
);
comment on table public.followup_schedules is 'Follow-ups that recur: each occurrence becomes a row of scheduled_actions, once.';
comment on column public.followup_schedules.cron is 'Five fields: minute, hour, day of month, month, day of week; or @daily and its like.';
comment on column public.followup_schedules.time_zone is 'Name of the time zone in which cron is meant, such as Europe/Berlin.';
comment on column public.followup_schedules.missed is 'What becomes of occurrences that were missed: skip them, the latest is made up for, or all up to missed_limit.';
comment on column public.followup_schedules.tolerance is 'An occurrence counts as missed when it is noticed later than this.';
comment on column public.followup_schedules.until_reply is 'Whether a reply of the prospect pauses the schedule.';
comment on column public.followup_schedules.ends_at is 'After this time there are no more occurrences; null for never.';
comment on column public.followup_schedules.next_at is 'When the next occurrence is; until an agent has looked at a new row, its creation.';
comment on column public.followup_schedules.seen_until is 'Occurrences up to this time have become rows, or were missed.';
comment on column public.followup_schedules.missed_count is 'How many occurrences were missed and not made up for.';

-- What a reply pauses.
create index followup_schedules_contact_id_idx on public.followup_schedules (contact_id) where contact_id is not null;
create index followup_schedules_prospect_id_idx on public.followup_schedules (prospect_id);

alter table public.scheduled_actions
    add column if not exists schedule_id uuid,
    add column if not exists occurrence  timestamptz,
    add constraint scheduled_actions_schedule_id_fkey foreign key (schedule_id)
        references public.followup_schedules (id) on delete set null;
comment on column public.scheduled_actions.schedule_id is 'The schedule that this is an occurrence of; null for a follow-up of its own.';
comment on column public.scheduled_actions.occurrence is 'Which occurrence; scheduled_for may be moved, this is not.';
-- An occurrence becomes one row, however many agents work the schedule.
create unique index scheduled_actions_occurrence_key on public.scheduled_actions (schedule_id, occurrence) where schedule_id is not null;
