-- Wakes the workers that listen for a queue, when the writer's transaction commits. The trigger names the queue.
create or replace function gleaner.notify_rows() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_notify('gleaner', tg_argv[0]);
    return null;
end
$$;
comment on function gleaner.notify_rows() is 'Wakes the workers that listen for a queue, when the writer''s transaction commits.';
revoke all on function gleaner.notify_rows() from public, anon, authenticated, service_role;
