-- An existing table: its own status words, an enum, packers with their own rules. Nothing in it refers to Gleaner.
create table packers (
    name           text    primary key,
    patience       interval not null default '10 minutes',
    may_be_helped  boolean  not null default true
);

create type order_state as enum ('new', 'packing', 'sent', 'failed', 'called_off');

create table orders (
    id         bigint generated always as identity primary key,
    packer     text references packers,
    size       text        not null default 'letter',
    state      order_state not null default 'new',
    contents   jsonb       not null,
    receipt    jsonb,
    problem    text,
    ended_at   timestamptz,
    created_at timestamptz not null default now()
);

insert into packers (name, patience) values ('ada', '5 minutes'), ('grace', '15 minutes');
insert into orders (packer, size, contents, created_at) values
    ('ada',   'letter', '{"book": "Sketch of the Analytical Engine"}', now()),
    (null,    'parcel', '{"book": "The Education of a Computer"}',     now()),
    ('grace', 'letter', '{"book": "Compilers, before they had a name"}', now() - interval '20 minutes'),
    ('grace', 'parcel', '{"book": "Mark I Manual"}',                   now());
