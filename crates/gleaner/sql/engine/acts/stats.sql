{%- from "macros.sql" import act -%}
/*
 * How many rows are in which state, and since when the oldest waits. Counts stop at ten thousand, so that a dashboard cannot
 * melt the database; `capped` says so. Finished rows are counted in a small table, and estimated from the statistics of a large one.
 */
create or replace function gleaner.stats_{{ name }}() returns table (state text, count bigint, capped boolean, oldest timestamptz)
language plpgsql
{{ act() }}
as {{ body }}
#variable_conflict use_column
declare
    v_now   timestamptz := clock_timestamp();
    v_known bigint := 0;
    v_part  record;
{%- if bulk %}
    v_batches int8multirange := gleaner.batch_keys({{ name_literal }});
{%- endif %}
begin
    for v_part in
        select s.state, count(*) as n, min(s.at) as oldest
        from (
            select case when q.{{ status.column }} in ({{ status.held }}) then case when q.{{ col.due }} < v_now then 'expired' else 'running' end
{%- if bulk %}
                        when q.{{ col.lease }} in (0, -1) and v_batches @> q.{{ key.column }} then 'running'
{%- endif %}
                        when q.{{ status.column }} = {{ status.failed }} then 'backing off'
                        when q.{{ col.due }} > v_now then 'scheduled'
                        else 'ready' end as state,
                   q.{{ col.due }} as at
            from {{ unfinished }}
            limit 10001
        ) as s
        group by s.state
    loop
        v_known := v_known + v_part.n;
        state := v_part.state; count := v_part.n; oldest := v_part.oldest; capped := false;
        return next;
    end loop;
    if v_known > 10000 then
        state := 'waiting'; capped := true; oldest := null;
        count := v_known;
        return next;
    end if;
    select 'dead', count(*), count(*) > 10000, null::timestamptz
    into state, count, capped, oldest
    from (select from {{ table }} as q where q.{{ status.column }} = {{ status.failed }} and q.{{ col.due }} is null limit 10001) as d;
    v_known := v_known + count;
    return next;
    if coalesce((select coalesce(sum(pg_relation_size(t.relid)), pg_relation_size({{ table_literal }})) from pg_partition_tree({{ table_literal }}) as t), pg_relation_size({{ table_literal }})) < 16 * 1024 * 1024 then
        -- A new table has no statistics yet, and reading this much takes milliseconds.
        select 'finished', count(*), false, null::timestamptz
        into state, count, capped, oldest
        from {{ table }} as q where q.{{ status.column }} in ({{ status.final }});
    else
        select 'finished', greatest(c.reltuples::bigint - v_known, 0), true, null::timestamptz
        into state, count, capped, oldest
        from pg_class as c where c.oid = {{ table_literal }}::regclass;
    end if;
    return next;
end
{{ body }};
