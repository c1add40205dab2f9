-- Secrets of a channel, sealed. What an existing CRM writes in clear works at once and is sealed by the server on first
-- sight; from then on ingestion_key and the secret values in config hold masks, and a mask written back changes nothing.
alter table public.ingestion_providers
    add column key_hash             bytea,
    add column previous_key_hash    bytea,
    add column previous_key_expires timestamptz,
    add column sealed_key           text,
    add column sealed_config        text,
    add column sealed               boolean     not null default false,
    add column secrets_expire       jsonb       not null default '{}',
    add column state                text        not null default 'ready',
    add column state_detail         text,
    add column version              bigint      not null default 1,
    add column changed_at           timestamptz not null default now(),
    add constraint ingestion_providers_state_check check (state in ('ready', 'needs_reauth'));
-- Serves the door: which channel has this key? Not one with the key itself, which would put it in clear into the index.
create unique index ingestion_providers_key_hash_key on public.ingestion_providers (key_hash);
create unique index ingestion_providers_previous_key_hash_key on public.ingestion_providers (previous_key_hash)
    where previous_key_hash is not null;
comment on column public.ingestion_providers.config is
    'Settings of the provider. Secret values read ********: writing that back keeps them, writing anything else replaces them.';
comment on column public.ingestion_providers.ingestion_key is
    'Secret part of the webhook''s URL, masked once sealed (ik_…): writing the mask back keeps the key, another text replaces it.';
comment on column public.ingestion_providers.key_hash is 'SHA-256 of the ingestion key, by which the door finds the channel; kept by trigger.';
comment on column public.ingestion_providers.previous_key_hash is 'Hash of the key before the last rotation, valid until previous_key_expires.';
comment on column public.ingestion_providers.sealed_key is 'The ingestion key, sealed with the master key for this row alone.';
comment on column public.ingestion_providers.sealed_config is 'The secret values of config, sealed with the master key for this row alone.';
comment on column public.ingestion_providers.sealed is 'False after somebody wrote a key or settings in clear, until the server has sealed them.';
comment on column public.ingestion_providers.secrets_expire is 'When previous secrets end: {"auth_token_previous": "2026-11-17T10:00:00Z"}.';
comment on column public.ingestion_providers.state is 'ready, or needs_reauth when the provider has withdrawn its consent.';
comment on column public.ingestion_providers.state_detail is 'Why the channel is not ready, for people.';
comment on column public.ingestion_providers.version is 'Counts changes; whoever writes sealed columns must name the next one.';
