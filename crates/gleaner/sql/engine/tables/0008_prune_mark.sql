-- How far prune has walked the keys of a queue that keeps no index on the end of its work: stretches of keys, each reaching to
-- the next, the first from the smallest key there can be. What ends in one from now on ends later than what is noted here, so
-- the note stays true without anybody keeping it, whatever retention is asked about.
create table gleaner.prune_mark (
    queue        text        not null,
    begins       bigint      not null,
    oldest       timestamptz not null,
    unread_since timestamptz,
    constraint prune_mark_pkey primary key (queue, begins)
);
-- Serves prune: the stretches whose time has come, and the sight of there being none.
create index prune_mark_oldest_idx on gleaner.prune_mark (queue, oldest);
comment on table gleaner.prune_mark is 'Stretches of keys that prune has walked, and the earliest end it left in each.';
comment on column gleaner.prune_mark.oldest is 'Nothing in the stretch ended earlier: until this is too old, nobody need look.';
comment on column gleaner.prune_mark.unread_since is 'Since when `oldest` is inferred from the rows before, and not read; null when it was read.';

revoke all on gleaner.prune_mark from public, anon, authenticated, service_role;
grant select, insert, update, delete on gleaner.prune_mark to gleaner_engine;
