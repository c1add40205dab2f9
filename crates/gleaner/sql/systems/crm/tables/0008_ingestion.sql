-- What the front door needs: who sent an activity and under which name of theirs, what arrived byte for byte, what to
-- remember between requests, and who was turned away.

-- No defaults and no checks: neither may rewrite or read through a table that is large and busy.
alter table public.activities
    add column external_id    text,
    add column sender_kind    text,
    add column sender_address text;
comment on column public.activities.external_id is 'The sender''s own name for this event; the same event delivered again has the same one.';
comment on column public.activities.sender_kind is 'What sender_address is: email, phone or other.';
comment on column public.activities.sender_address is 'Who is on the other end, in the form contacts are compared in.';

-- One event, one activity, however often it is delivered. It also finds the activities of a channel that is deleted, which
-- activities_provider_id_idx did: one index fewer for every claim to write.
create unique index activities_provider_id_external_id_key on public.activities (provider_id, external_id)
    where provider_id is not null;
drop index public.activities_provider_id_idx;
-- Whose messages are still nobody's: link-and-backfill, and the second look once a contact's number has been read.
create index activities_unmatched_sender_idx on public.activities (sender_kind, sender_address, created_at)
    where contact_id is null and sender_address is not null;

-- The bytes of a request, so that an event can be read again after a mistake of ours is mended. Without reference to the
-- channel: the row lives for days, and a reference would lock the channel's row once more for every request.
create table gleaner.raw_request (
    id           uuid        not null,
    provider_id  uuid        not null,
    received_at  timestamptz not null,
    method       text        not null,
    target       text        not null,
    headers      jsonb       not null default '{}',
    body         bytea,
    body_file    text,
    outcome      text        not null,
    activity_ids uuid[]      not null default '{}',
    constraint raw_request_pkey primary key (id)
);
create index raw_request_received_at_idx on gleaner.raw_request (received_at);
-- Bytes that came compressed or encoded do not shrink further; trying costs more than it saves.
alter table gleaner.raw_request alter column body set storage external;
comment on table gleaner.raw_request is 'Authentic requests as they came, for replay; pruned by age and number.';
comment on column gleaner.raw_request.target is 'Path and query, the ingestion key replaced.';
comment on column gleaner.raw_request.headers is 'Without credentials and signatures: a replay reads again, it does not verify again.';
comment on column gleaner.raw_request.body_file is 'Where a body too large for a row was put; body is null then.';
comment on column gleaner.raw_request.outcome is 'stored or nothing; a request that only repeated an event is not kept.';

-- What a later request of the same channel needs: who was on a call, and which one-time tokens were used.
create table gleaner.ingest_memory (
    provider_id uuid        not null,
    key         text        not null,
    value       jsonb       not null default '{}',
    expires_at  timestamptz not null,
    constraint ingest_memory_pkey primary key (provider_id, key)
);
create index ingest_memory_expires_at_idx on gleaner.ingest_memory (expires_at);
comment on table gleaner.ingest_memory is 'What one request of a channel leaves for the next; forgotten when it expires.';
comment on column gleaner.ingest_memory.key is 'A provider''s own, or once:TOKEN for a token that may be used once.';

-- Who was turned away and why, by the minute: a flood of bad requests is one row with a large count.
create table gleaner.ingest_refusal (
    provider_id uuid,
    at_minute   timestamptz not null,
    reason      text        not null,
    status      integer     not null,
    count       bigint      not null,
    last_at     timestamptz not null,
    last_client inet,
    detail      text,
    constraint ingest_refusal_key unique nulls not distinct (provider_id, at_minute, reason)
);
create index ingest_refusal_at_minute_idx on gleaner.ingest_refusal (at_minute);
comment on table gleaner.ingest_refusal is 'Requests turned away, counted per channel, minute and reason.';
comment on column gleaner.ingest_refusal.provider_id is 'The channel; null for a key that belongs to none.';

-- A number is free text that takes a library to read, so each is kept as written, with what plain SQL makes of it at once
-- (parsed = false) until a server has read it properly.
alter table public.contact_addresses
    add column written    text        not null default '',
    add column loose      text,
    add column parsed     boolean     not null default true,
    add column written_at timestamptz not null default now(),
    drop constraint contact_addresses_pkey,
    add constraint contact_addresses_pkey primary key (kind, address, contact_id, written);
comment on column public.contact_addresses.written is 'What the contact has, as somebody typed it.';
comment on column public.contact_addresses.loose is
    'The form of the second look: an e-mail address without tag, the last ten digits of a number in country code 1 or without country.';
comment on column public.contact_addresses.parsed is 'False while address is only what SQL could make of it.';
comment on column public.contact_addresses.written_at is 'Since when: messages that came later deserve a second look once it is parsed.';
create index contact_addresses_loose_idx on public.contact_addresses (kind, loose) where loose is not null;
-- Empty nearly always, and so a look whether anything waits costs next to nothing.
create index contact_addresses_unparsed_idx on public.contact_addresses (contact_id) where not parsed;
