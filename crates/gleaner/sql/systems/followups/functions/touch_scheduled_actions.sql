/*
 * Fills in what writers may leave out: the contact of a prospect, updated_at, executed_at of what was really done. A row that is
 * put back in the line is armed anew: an earlier reply no longer calls it off, and what was sent once is sent under a new key.
 * Security definer: a caller who plans an action need not see the contacts' names.
 */
create or replace function public.touch_scheduled_actions() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        new.contact_id := coalesce(new.contact_id, gleaner.contact_of_prospect(new.prospect_id));
        new.prospect_id := coalesce(new.prospect_id, 'contact:' || new.contact_id);
        return new;
    end if;
    new.updated_at := clock_timestamp();
    if new.prospect_id is distinct from old.prospect_id and new.contact_id is not distinct from old.contact_id then
        new.contact_id := gleaner.contact_of_prospect(new.prospect_id);
    end if;
    if new.status is distinct from old.status then
        new.executed_at := case when new.status = 'executed' then coalesce(new.executed_at, new.updated_at) end;
        if new.status = 'pending' and old.status in ('executed', 'cancelled', 'failed') then
            new.armed_at := new.updated_at;
            new.cancelled_reason := null;
            if old.status = 'executed' then
                select gen_random_uuid(), null, null into new.idempotency_key, new.message, new.result;
            end if;
        end if;
        if new.status in ('processing', 'executed', 'cancelled') then
            new.deferred_reason := null;
        end if;
    end if;
    return new;
end
$$;
comment on function public.touch_scheduled_actions() is 'Keeps the contact, updated_at, executed_at and armed_at of follow-ups.';
revoke all on function public.touch_scheduled_actions() from public, anon, authenticated;

create or replace trigger touch_scheduled_actions
before insert or update on public.scheduled_actions
for each row execute function public.touch_scheduled_actions();
