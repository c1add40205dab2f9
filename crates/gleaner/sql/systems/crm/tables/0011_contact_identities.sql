-- What a contact is called elsewhere: a Telegram chat, a prospect of another system, a further address.
create table public.contact_identities (
    contact_id bigint      not null,
    kind       text        not null,
    value      text        not null,
    created_at timestamptz not null default now(),
    -- Serves gleaner.match_contact: one identity, one contact.
    constraint contact_identities_pkey primary key (kind, value),
    constraint contact_identities_kind_check check (kind ~ '^[a-z][a-z0-9_]{0,31}$'),
    constraint contact_identities_value_check check (value <> '' and octet_length(value) <= 512),
    constraint contact_identities_contact_id_fkey foreign key (contact_id) references public.contacts (id) on delete cascade
);
create index contact_identities_contact_id_idx on public.contact_identities (contact_id);
create index contact_identities_value_idx on public.contact_identities (value);
comment on table public.contact_identities is 'Further names of contacts: (telegram, 7836623698), (prospect, 4711).';
comment on column public.contact_identities.kind is 'Whose name it is: telegram, prospect, or any other word.';
comment on column public.contact_identities.value is 'The name itself, exactly as the other system writes it.';
