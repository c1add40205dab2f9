-- Who owns work, and a table of it.
create table public.people (
    id            bigint  primary key,
    stale_seconds integer not null,
    shared        boolean not null
);
-- The fourth shares nothing. The fifth has no agent: its work is always left to others.
insert into public.people values (1, 2, true), (2, 2, true), (3, 4, true), (4, 2, false), (5, 1, true);

create table public.harvest (
    id         bigint      primary key,
    owner_id   bigint,
    kind       text        not null,
    status     text        not null default 'ready',
    payload    jsonb       not null,
    result     jsonb,
    progress   jsonb,
    error      jsonb,
    created_at timestamptz not null default clock_timestamp()
);
