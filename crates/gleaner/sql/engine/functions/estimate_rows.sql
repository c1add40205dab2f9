/*
 * How many rows a large table has, from its statistics; null for one that is counted in milliseconds. A new table has no statistics yet.
 */
create or replace function gleaner.estimate_rows(p_table regclass) returns bigint
language plpgsql stable
as $$
begin
    if coalesce((select sum(pg_relation_size(t.relid)) from pg_partition_tree(p_table) as t), pg_relation_size(p_table)) < 16 * 1024 * 1024 then
        return null;
    end if;
    return (select c.reltuples::bigint from pg_class as c where c.oid = p_table);
end
$$;
comment on function gleaner.estimate_rows(regclass) is 'How many rows a large table has, from its statistics; null for a small one.';
revoke all on function gleaner.estimate_rows(regclass) from public, anon, authenticated, service_role;
grant execute on function gleaner.estimate_rows(regclass) to gleaner_engine;
