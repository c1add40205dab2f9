/*
 * Whether claims find nothing in this queue. Every claim asks; the table has as many rows as there are paused queues.
 */
create or replace function gleaner.is_paused(p_queue text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (select from gleaner.pause as p where p.queue = p_queue);
end
$$;
comment on function gleaner.is_paused(text) is 'Whether claims find nothing in this queue.';
revoke all on function gleaner.is_paused(text) from public, anon, authenticated, service_role;
grant execute on function gleaner.is_paused(text) to gleaner_engine;
