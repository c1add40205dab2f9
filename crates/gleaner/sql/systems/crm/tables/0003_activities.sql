-- Every call, message, note and task, and at the same time the queue of those still to be processed.
-- The engine's own columns (due_at, lease, …) are added when the declaration is attached.
create table public.activities (
    id                uuid        not null default gen_random_uuid(),
    type              text        not null default 'other',
    direction         text        default 'inbound',
    sales_id          bigint,
    contact_id        bigint,
    processing_status text        not null default 'raw',
    raw_data          jsonb,
    processed_data    jsonb,
    metadata          jsonb       default '{}',
    locked_by         uuid,
    locked_at         timestamptz,
    provider_id       uuid,
    created_at        timestamptz not null default now(),
    constraint activities_pkey primary key (id),
    constraint activities_type_check
        check (type in ('email', 'call', 'sms', 'meeting', 'note', 'task', 'whatsapp', 'other')),
    constraint activities_direction_check check (direction in ('inbound', 'outbound')),
    constraint activities_processing_status_check
        check (processing_status in ('raw', 'processing', 'completed', 'failed', 'cancelled')),
    -- Restrict: `set null` would turn the rows of a private owner into everybody's, and `cascade` would delete the
    -- record. An owner who leaves hands the rows over first (gleaner.assign_activities).
    constraint activities_sales_id_fkey foreign key (sales_id) references public.sales (id) on delete restrict,
    -- Without its contact an activity is unmatched again; the message itself was real.
    constraint activities_contact_id_fkey foreign key (contact_id) references public.contacts (id) on delete set null,
    constraint activities_provider_id_fkey foreign key (provider_id) references public.ingestion_providers (id) on delete set null
);
comment on table public.activities is 'Unified event store and work queue: raw, processing, completed, failed, cancelled.';
comment on column public.activities.sales_id is 'Owner; null when the work belongs to nobody (global).';
comment on column public.activities.contact_id is 'The person on the other end; null while unmatched.';
comment on column public.activities.raw_data is '{source_type: url | text, content, subject, sender, format}';
comment on column public.activities.processed_data is '{transcript, summary, facts}; also holds early results while work goes on.';
comment on column public.activities.metadata is 'What the provider said (from, to, call_sid, …), error, recovery_count.';
comment on column public.activities.locked_by is 'Signed-in user (auth.users.id) whose agent holds the row.';
comment on column public.activities.locked_at is 'When that agent took it.';

-- The feed of one contact and of one owner, newest first; the first also lists the unmatched (contact_id is null).
create index activities_contact_id_idx on public.activities (contact_id, created_at);
create index activities_sales_id_idx on public.activities (sales_id, created_at);
-- The feed of the whole team.
create index activities_created_at_idx on public.activities (created_at);
-- Deleting a channel looks for its activities.
create index activities_provider_id_idx on public.activities (provider_id) where provider_id is not null;
