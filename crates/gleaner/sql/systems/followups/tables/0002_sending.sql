-- Whom an action reaches, what was sent and what became of it, and why it is late.
alter table public.scheduled_actions
    add column if not exists contact_id      bigint,
    add column if not exists result          jsonb,
    add column if not exists message         jsonb,
    add column if not exists idempotency_key uuid,
    add column if not exists sending_at      timestamptz,
    add column if not exists sending_lease   bigint,
    add column if not exists armed_at        timestamptz not null default now(),
    add column if not exists deferred_reason text,
    add column if not exists approved_at     timestamptz;
-- Without reference to contacts: the system crm may be missing, or come later.
comment on column public.scheduled_actions.contact_id is 'The contact, where prospect_id names one.';
comment on column public.scheduled_actions.result is 'What the sink answered: sink, to, message_id, receipts.';
comment on column public.scheduled_actions.message is 'What is sent, as it was stored before the first try: {sink, to, subject, text}.';
comment on column public.scheduled_actions.idempotency_key is 'The key each try carries; null until the first.';
comment on column public.scheduled_actions.sending_at is 'When the latest try began to send.';
comment on column public.scheduled_actions.sending_lease is 'The lease under which it did: while it is the row''s lease, the message may be on its way.';
comment on column public.scheduled_actions.armed_at is 'A reply after this time calls it off; a requeue moves it.';
comment on column public.scheduled_actions.deferred_reason is 'Why it waits beyond scheduled_for: quiet hours, the daily limit, approval.';
comment on column public.scheduled_actions.approved_at is 'When a person approved it.';

-- What a reply calls off.
create index idx_scheduled_actions_contact on public.scheduled_actions (contact_id, scheduled_for) where contact_id is not null;

-- When people may be written to. One row per contact, and one without contact for everybody else.
create table public.contact_preferences (
    contact_id        bigint,
    time_zone         text        not null default 'UTC',
    quiet_from        time,
    quiet_until       time,
    daily_limit       integer,
    approval          boolean     not null default false,
    updated_at        timestamptz not null default now(),
    constraint contact_preferences_key unique nulls not distinct (contact_id),
    constraint contact_preferences_quiet_check check ((quiet_from is null) = (quiet_until is null)),
    constraint contact_preferences_daily_limit_check check (daily_limit > 0)
);
comment on table public.contact_preferences is 'When a contact may be written to, and how often. The row without contact holds for all others.';
comment on column public.contact_preferences.time_zone is 'Name of a time zone, such as Europe/Berlin; days and quiet hours are counted there.';
comment on column public.contact_preferences.quiet_from is 'Nothing is sent from this time on …';
comment on column public.contact_preferences.quiet_until is '… until this one, on the next day if it is earlier.';
comment on column public.contact_preferences.daily_limit is 'At most so many messages a local day; null for any number.';
comment on column public.contact_preferences.approval is 'Whether a person approves each message before it is sent.';

-- Who must not be written to. By address as well as by contact: it also holds for people who are not contacts.
create table public.do_not_contact (
    address    text        not null,
    contact_id bigint,
    reason     text        not null,
    created_at timestamptz not null default now(),
    constraint do_not_contact_pkey primary key (address)
);
create index do_not_contact_contact_id_idx on public.do_not_contact (contact_id) where contact_id is not null;
comment on table public.do_not_contact is 'People who asked not to be written to, or cannot be.';
comment on column public.do_not_contact.address is 'An e-mail address, a number in E.164, telegram:ID, or contact:ID.';

-- Serves gleaner.note_receipt: whose message is this?
create index scheduled_actions_receipt_idx on public.scheduled_actions ((result ->> 'receipt_id')) where result ->> 'receipt_id' is not null;
