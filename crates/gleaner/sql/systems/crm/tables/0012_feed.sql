-- What the feed of a million activities is read by. Each filter has an index in the order of the feed, so that a page is read from it
-- and not sorted. Rows without a contact and rows without an owner have one more: `is null` alone gives no order.
drop index public.activities_created_at_idx;
drop index public.activities_contact_id_idx;
drop index public.activities_sales_id_idx;
create index activities_feed_idx on public.activities (created_at desc, id desc);
create index activities_contact_id_idx on public.activities (contact_id, created_at desc, id desc);
create index activities_unmatched_idx on public.activities (created_at desc, id desc) where contact_id is null;
create index activities_sales_id_idx on public.activities (sales_id, created_at desc, id desc);
create index activities_unowned_idx on public.activities (created_at desc, id desc) where sales_id is null;
-- Without rows that are held. They are few, and the acts of their holders name that status beside the key: where the statistics know of
-- no held row, the planner would prefer this index to the primary key, and read every held row for each act.
create index activities_status_idx on public.activities (processing_status, created_at desc, id desc) where processing_status <> 'processing';
create index activities_type_idx on public.activities (type, created_at desc, id desc);
create index activities_provider_id_idx on public.activities (provider_id, created_at desc, id desc) where provider_id is not null;

-- The words of each activity, for the search. A table of its own: every claim writes a new version of the activity, and would write
-- an index of all its words again.
create table gleaner.activity_words (
    activity_id uuid        not null,
    created_at  timestamptz not null,
    words       tsvector    not null,
    constraint activity_words_pkey primary key (activity_id),
    constraint activity_words_activity_id_fkey foreign key (activity_id) references public.activities (id) on delete cascade
);
comment on table gleaner.activity_words is 'The words of each activity, for public.search_activities.';
comment on column gleaner.activity_words.created_at is 'When the activity was created, so that the newest are chosen without reading it.';
create index activity_words_words_idx on gleaner.activity_words using gin (words);
alter table gleaner.activity_words enable row level security;
revoke all on gleaner.activity_words from public, anon, authenticated, service_role;

-- What is stored already. As gleaner.words_of has it; a migration calls no repeatable function.
insert into gleaner.activity_words (activity_id, created_at, words)
select a.id, a.created_at, to_tsvector('pg_catalog.simple', regexp_replace(
    left(concat_ws(' ', a.raw_data ->> 'sender', a.sender_address, a.raw_data ->> 'subject', a.processed_data ->> 'summary', a.raw_data ->> 'content'), 20000),
    '[^[:alnum:]]+', ' ', 'g'))
from public.activities as a;
