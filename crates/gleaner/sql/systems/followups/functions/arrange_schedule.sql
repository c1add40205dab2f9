/*
 * Keeps a schedule in step with its definition: another expression, zone or end is looked at now, and what was due while it was paused,
 * or under another definition, is not made up for.
 * Named to fire before the adapter, which reads next_at.
 * Security definer: a caller who plans need not see the contacts' names.
 */
create or replace function gleaner.arrange_schedule() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        new.contact_id := coalesce(new.contact_id, gleaner.contact_of_prospect(new.prospect_id));
        return new;
    end if;
    new.updated_at := clock_timestamp();
    if new.prospect_id is distinct from old.prospect_id and new.contact_id is not distinct from old.contact_id then
        new.contact_id := gleaner.contact_of_prospect(new.prospect_id);
    end if;
    if (new.cron, new.time_zone, new.ends_at) is distinct from (old.cron, old.time_zone, old.ends_at)
       or new.status = 'active' and old.status in ('paused', 'failed', 'ended') then
        new.seen_until := new.updated_at;
        new.next_at := new.updated_at;
        new.paused_reason := null;
        -- A definition that could not be read has been mended.
        if new.status = 'failed' and old.status = 'failed' then
            new.status := 'active';
        end if;
        new.error_message := case when new.status = 'active' then null else new.error_message end;
    end if;
    return new;
end
$$;
comment on function gleaner.arrange_schedule() is 'Lets a changed or resumed schedule be looked at now.';
revoke all on function gleaner.arrange_schedule() from public, anon, authenticated;

create or replace trigger arrange_schedule
before insert or update on public.followup_schedules
for each row execute function gleaner.arrange_schedule();
