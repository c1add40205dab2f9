{%- from "macros.sql" import act -%}
/*
 * How many rows are in which state, and since when the oldest waits. Counts stop at ten thousand, so that a dashboard cannot
 * melt the database; `capped` says so.
 */
create or replace function gleaner.stats_{{ name }}() returns table (state text, count bigint, capped boolean, oldest timestamptz)
{{ act() }}
#variable_conflict use_column
declare
    v_now   timestamptz := clock_timestamp();
    v_known bigint := 0;
    v_part  record;
begin
    perform gleaner.operates({{ name_literal }}, {{ grant.operate }}, {{ "'{}'" if grant.groups else grant.own }});
    for v_part in
        select s.state, count(*) as n, min(s.at) as oldest
        from (
            select case when q.{{ status.column }} in ({{ status.held }}) then case when q.{{ col.due }} < v_now then 'expired' else 'running' end
                        when q.{{ status.column }} = {{ status.failed }} then 'backing off'
                        when q.{{ col.due }} > v_now then 'scheduled'
                        else 'ready' end as state,
                   q.{{ col.due }} as at
            from {{ table }} as q where {{ standing }}
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
    from (select 1 from {{ table }} as q where q.{{ status.column }} = {{ status.failed }} and q.{{ col.due }} is null limit 10001) as d;
    return next;
    select 'finished', count(*), count(*) > 10000, null::timestamptz
    into state, count, capped, oldest
    from (select 1 from {{ table }} as q where q.{{ status.column }} in ({{ status.final }}) limit 10001) as f;
    return next;
end
{{ body }};
