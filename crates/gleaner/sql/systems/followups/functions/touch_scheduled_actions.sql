/*
 * Keeps updated_at, and executed_at of what was really done, whoever writes.
 */
create or replace function public.touch_scheduled_actions() returns trigger
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
begin
    new.updated_at := clock_timestamp();
    if new.status is distinct from old.status then
        new.executed_at := case when new.status = 'executed' then coalesce(new.executed_at, new.updated_at) end;
    end if;
    return new;
end
$$;
comment on function public.touch_scheduled_actions() is 'Keeps updated_at and executed_at of follow-ups.';
revoke all on function public.touch_scheduled_actions() from public, anon, authenticated;

create or replace trigger touch_scheduled_actions
before update on public.scheduled_actions
for each row execute function public.touch_scheduled_actions();
