create type public.processing_state as enum (
    'pending',    -- waiting for an agent
    'claimed',    -- an agent has taken it
    'processing', -- an agent works on it
    'completed',
    'failed',     -- will be tried again while attempts remain
    'cancelled'   -- called off before it was finished
);

-- The bridge between capture and intelligence: one row per dump.
create table public.agent_processing_queue (
    id               uuid not null default gen_random_uuid(),
    dump_id          uuid not null,
    basket_id        uuid not null,
    workspace_id     uuid not null,
    processing_state public.processing_state default 'pending',
    claimed_at       timestamptz,
    claimed_by       text,
    completed_at     timestamptz,
    attempts         integer default 0,
    error_message    text,
    created_at       timestamptz default now(),
    constraint agent_processing_queue_pkey primary key (id),
    constraint agent_processing_queue_dump_id_fkey foreign key (dump_id) references public.raw_dumps (id),
    constraint agent_processing_queue_basket_id_fkey foreign key (basket_id) references public.baskets (id),
    constraint agent_processing_queue_workspace_id_fkey foreign key (workspace_id) references public.workspaces (id)
);
comment on table public.agent_processing_queue is 'Work queue of dumps: pending, claimed, processing, completed, failed, cancelled.';
comment on column public.agent_processing_queue.attempts is 'Failures so far; a claim that is given back does not count.';

create index idx_queue_state_created on public.agent_processing_queue (processing_state, created_at);
create index idx_queue_workspace on public.agent_processing_queue (workspace_id, processing_state);
-- The status shown beside a dump.
create index idx_queue_dump on public.agent_processing_queue (dump_id);
-- processing_performance looks at one day of however many years.
create index idx_queue_completed on public.agent_processing_queue (completed_at) where processing_state = 'completed';
