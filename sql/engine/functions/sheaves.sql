/*
 * The keys of all rows of a queue that sheaves hold, for whoever shows or counts rows: such a row still says that it is ready.
 * Keys alone: they tell a stranger nothing of the rows.
 */
create or replace function gleaner.sheaves(p_queue text) returns int8multirange
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return (select coalesce(range_agg(s.keys), '{}') from gleaner.sheaf as s where s.queue = p_queue);
end
$$;
comment on function gleaner.sheaves(text) is 'Keys of the rows that sheaves hold in a queue.';
revoke all on function gleaner.sheaves(text) from public, anon, authenticated, service_role;
grant execute on function gleaner.sheaves(text) to gleaner_engine, authenticated, service_role;
