-- Tables of a system that were there before the system came: they were given what they lacked, and their own rights and
-- policies go on deciding who sees them.
create table gleaner.adopted_table (
    name       text        not null,
    system     text        not null,
    adopted_at timestamptz not null default clock_timestamp(),
    own_rights boolean     not null,
    changes    text[]      not null default '{}',
    afterwards text[]      not null default '{}',
    constraint adopted_table_pkey primary key (name)
);
comment on table gleaner.adopted_table is 'Tables that were there before the system they belong to, and what migrate added to them.';
comment on column gleaner.adopted_table.own_rights is 'Whether the table''s own grants and policies decide; else those of the system''s files, which are written for both.';
comment on column gleaner.adopted_table.changes is 'What migrate added, or did not add and why, for people to read.';
comment on column gleaner.adopted_table.afterwards is 'Index builds and validations still to be run; empty once migrate has run to its end.';
revoke all on gleaner.adopted_table from public, anon, authenticated;
grant select on gleaner.adopted_table to service_role;
