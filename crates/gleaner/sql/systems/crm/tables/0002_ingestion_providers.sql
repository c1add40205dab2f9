-- A channel through which activities arrive.
create table public.ingestion_providers (
    id                   uuid        not null default gen_random_uuid(),
    -- Not checked against a list: which codes exist is for the receiving program to say, not for the table.
    provider_code        text        not null,
    name                 text        not null,
    is_active            boolean     not null default true,
    config               jsonb       not null default '{}',
    sales_id             bigint,
    -- 256 bits from three random uuids of 122 each; pgcrypto, which has random bytes proper, may be missing.
    ingestion_key        text        not null
        default encode(sha256((gen_random_uuid()::text || gen_random_uuid()::text || gen_random_uuid()::text)::bytea), 'hex'),
    auto_create_contacts boolean     not null default false,
    created_at           timestamptz not null default now(),
    constraint ingestion_providers_pkey primary key (id),
    constraint ingestion_providers_ingestion_key_key unique (ingestion_key),
    -- Restrict: with `set null` the messages of a private owner would arrive as everybody's once that owner is gone.
    constraint ingestion_providers_sales_id_fkey foreign key (sales_id) references public.sales (id) on delete restrict
);
create index ingestion_providers_sales_id_idx on public.ingestion_providers (sales_id);
comment on table public.ingestion_providers is 'Inbound channels: provider, secrets, and who owns what arrives.';
comment on column public.ingestion_providers.provider_code is 'twilio, postmark, gmail, generic.';
comment on column public.ingestion_providers.config is 'Secrets and settings of the provider; administrators only.';
comment on column public.ingestion_providers.sales_id is 'Owner of what arrives here; null for work that belongs to nobody.';
comment on column public.ingestion_providers.ingestion_key is 'Secret part of the webhook''s URL.';
comment on column public.ingestion_providers.auto_create_contacts is 'Whether an unknown sender becomes a contact.';
