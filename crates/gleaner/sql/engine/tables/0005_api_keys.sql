-- Keys of programs. Only a hash is kept: a key is shown once, when it is made.
create table gleaner.api_key (
    id           uuid        not null default gen_random_uuid(),
    name         text        not null,
    role         text        not null,
    hash         bytea       not null,
    hint         text        not null,
    queues       text[],
    kinds        text[],
    created_at   timestamptz not null default clock_timestamp(),
    last_used_at timestamptz,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    constraint api_key_pkey primary key (id),
    constraint api_key_hash_key unique (hash),
    constraint api_key_role_check check (role in ('worker', 'service', 'anon')),
    -- A scope narrows what a worker may claim; the others are what their role is.
    constraint api_key_scope_check check (role = 'worker' or queues is null and kinds is null)
);
-- One living key of a name; a revoked one stays as a record, and its name is free again.
create unique index api_key_name_key on gleaner.api_key (name) where revoked_at is null;
comment on table gleaner.api_key is 'Keys of programs: worker (sees only what it holds), service (everything), anon (a publishable project key).';
comment on column gleaner.api_key.hash is 'sha256 of the key.';
comment on column gleaner.api_key.hint is 'Its first characters, to recognise it by.';
comment on column gleaner.api_key.queues is 'The queues it may work; null: every one its role may.';
comment on column gleaner.api_key.kinds is 'The kinds it may claim; null: every one.';
comment on column gleaner.api_key.last_used_at is 'To the minute.';
revoke all on gleaner.api_key from public, anon, authenticated, service_role;
