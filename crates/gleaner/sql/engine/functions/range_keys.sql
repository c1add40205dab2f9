/*
 * The keys of all rows of a queue that lie in bulk ranges, for queries that show, count or cancel waiting rows: the probe index does not have
 * them. A row that was cancelled meanwhile may still be named; its own lease shows that. Keys alone: they reveal nothing of the rows.
 */
create or replace function gleaner.range_keys(p_queue text) returns int8multirange
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return (select coalesce(range_agg(int8range(s.first, s.last, '[]')), '{}') from gleaner.bulk_range as s where s.queue = p_queue);
end
$$;
comment on function gleaner.range_keys(text) is 'Keys of the rows that lie in bulk ranges of a queue.';
revoke all on function gleaner.range_keys(text) from public, anon, authenticated, service_role;
grant execute on function gleaner.range_keys(text) to gleaner_engine, authenticated, service_role;
