/*
 * The keys of all rows of a queue that batch leases hold, for queries that show or count rows: such a row still has the ready status.
 * Keys alone: they reveal nothing of the rows.
 */
create or replace function gleaner.batch_keys(p_queue text) returns int8multirange
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return (select coalesce(range_agg(s.keys), '{}') from gleaner.batch_lease as s where s.queue = p_queue);
end
$$;
comment on function gleaner.batch_keys(text) is 'Keys of the rows that batch leases hold in a queue.';
revoke all on function gleaner.batch_keys(text) from public, anon, authenticated, service_role;
grant execute on function gleaner.batch_keys(text) to gleaner_engine, authenticated, service_role;
