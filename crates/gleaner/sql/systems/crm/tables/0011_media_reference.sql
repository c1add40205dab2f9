-- The files of an event, as the webhook endpoint recorded them. Only what stands here is fetched with a channel's credentials. The
-- activity itself is for people and agents to write, who would otherwise choose where the credentials are sent.
create table gleaner.media_reference (
    activity_id uuid  not null,
    provider_id uuid  not null,
    media       jsonb not null,
    constraint media_reference_pkey primary key (activity_id),
    constraint media_reference_activity_id_fkey foreign key (activity_id) references public.activities (id) on delete cascade
);
comment on table gleaner.media_reference is 'The files of activities that came through a channel, as recorded on arrival.';
comment on column gleaner.media_reference.provider_id is 'The channel whose credentials fetch them.';
comment on column gleaner.media_reference.media is '[{place, content_type, name}], in the order in which they are numbered.';
