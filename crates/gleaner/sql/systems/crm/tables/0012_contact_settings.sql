-- What is read of telephone numbers is the same in every session: a row, and not a setting that pooled sessions keep from their start.
create table gleaner.contact_settings (
    -- One row.
    only_row       boolean not null default true,
    default_region text    not null default 'US',
    constraint contact_settings_pkey primary key (only_row),
    constraint contact_settings_only_row_check check (only_row),
    constraint contact_settings_default_region_check check (default_region ~ '^[A-Z]{2}$')
);
comment on table gleaner.contact_settings is 'How addresses of contacts are read. One row.';
comment on column gleaner.contact_settings.default_region is
    'The country of telephone numbers written without one, two letters. Changing it has all numbers of contacts read again.';

-- A database that had the setting keeps it.
insert into gleaner.contact_settings (default_region)
select case when said.region ~ '^[A-Z]{2}$' then said.region else 'US' end
from (select upper(btrim(current_setting('gleaner.default_region', true)))) as said (region);

comment on column public.contact_addresses.written_at is 'When the contact got it.';
