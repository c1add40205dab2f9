-- Follow-ups with the exact time they are meant for.
create table public.scheduled_actions (
    id                    uuid         not null default gen_random_uuid(),
    prospect_id           varchar(255) not null,
    action_type           text         not null default 'follow_up',
    scheduled_for         timestamptz  not null,
    status                varchar(20)  not null default 'pending',
    payload               jsonb        not null default '{}',
    started_processing_at timestamptz,
    executed_at           timestamptz,
    finished_at           timestamptz,
    cancelled_reason      text,
    error_message         text,
    created_at            timestamptz  not null default now(),
    updated_at            timestamptz  not null default now(),
    constraint scheduled_actions_pkey primary key (id),
    constraint scheduled_actions_status_check
        check (status in ('pending', 'processing', 'executed', 'cancelled', 'failed'))
);
comment on table public.scheduled_actions is 'Work queue of follow-ups: pending, processing, executed, cancelled, failed.';
comment on column public.scheduled_actions.prospect_id is 'Whom it is for; a reply from that person calls it off.';
comment on column public.scheduled_actions.scheduled_for is 'When it is meant to happen.';
comment on column public.scheduled_actions.started_processing_at is 'When a worker took it.';
comment on column public.scheduled_actions.executed_at is 'When it was done; null for what was called off or given up.';
comment on column public.scheduled_actions.finished_at is 'When it ended, in whatever way.';

create index idx_scheduled_actions_polling on public.scheduled_actions (scheduled_for, status)
    where status in ('pending', 'processing');
-- The timeline of one prospect, and what a reply calls off.
create index idx_scheduled_actions_prospect on public.scheduled_actions (prospect_id, scheduled_for);
