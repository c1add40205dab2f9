/*
 * Schedules a mailbox when its channel appears or is resumed, by any writer.
 * A channel that is paused or waits for its grant stays scheduled; its polls end before they call the provider.
 */
create or replace function gleaner.schedule_poll() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform gleaner.request_poll(new.id);
    return null;
end
$$;
comment on function gleaner.schedule_poll() is 'Puts the mailbox of a new or resumed channel in the line.';
revoke all on function gleaner.schedule_poll() from public, anon, authenticated;

create or replace trigger schedule_first_poll
after insert on public.ingestion_providers
for each row
when (new.provider_code = 'gmail' and new.is_active)
execute function gleaner.schedule_poll();

create or replace trigger schedule_poll
after update of provider_code, is_active on public.ingestion_providers
for each row
when (new.provider_code = 'gmail' and new.is_active
      and (old.provider_code, old.is_active) is distinct from (new.provider_code, new.is_active))
execute function gleaner.schedule_poll();

-- Channels that were there before.
insert into gleaner.polls (provider_id)
select p.id from public.ingestion_providers as p where p.provider_code = 'gmail'
on conflict (provider_id) do nothing;
