-- One row per mailbox that is polled: how far it was read, and at the same time the work of reading on. The queue `polls` is attached
-- to it, so that any number of servers share the mailboxes and each is read by one at a time.
create table gleaner.polls (
    provider_id      uuid        not null,
    status           text        not null default 'ready',
    wanted_at        timestamptz not null default now(),
    history_id       text,
    mailbox          text,
    look_began_at    timestamptz,
    last_look_at     timestamptz,
    last_sync_at     timestamptz,
    last_stored      integer     not null default 0,
    watch_expires_at timestamptz,
    last_error       text,
    failures         integer     not null default 0,
    refused_grant    text,
    constraint polls_pkey primary key (provider_id),
    constraint polls_status_known check (status in ('ready', 'running', 'done', 'failed')),
    constraint polls_provider_id_fkey foreign key (provider_id) references public.ingestion_providers (id) on delete cascade
);
comment on table gleaner.polls is 'Mailboxes that are fetched from: how far each was read, and when it is read next.';
comment on column gleaner.polls.wanted_at is 'When somebody last asked for a look; a waiting row is due then, a running one is looked at again.';
comment on column gleaner.polls.history_id is 'Everything up to this point of the mailbox''s history is stored; null before the first look.';
comment on column gleaner.polls.mailbox is 'Address of the mailbox, as the provider names it.';
comment on column gleaner.polls.look_began_at is 'When the latest look began.';
comment on column gleaner.polls.last_look_at is 'When a look last ended, well or not.';
comment on column gleaner.polls.last_sync_at is 'When the mailbox was last read to its end.';
comment on column gleaner.polls.last_stored is 'How many messages that look brought.';
comment on column gleaner.polls.watch_expires_at is 'Until when the provider sends hints by push; null without.';
comment on column gleaner.polls.last_error is 'Why the last look failed; null when it did not.';
comment on column gleaner.polls.failures is 'Failed looks in a row; the wait grows with them.';
comment on column gleaner.polls.refused_grant is 'Hash of the grant that the provider has refused for good: no call is made with it again.';
