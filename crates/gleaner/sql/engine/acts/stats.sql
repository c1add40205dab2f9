{%- from "macros.sql" import act -%}
-- How many rows are in which state, and since when the oldest waits. Counts stop at ten thousand, or are estimates (`capped`).
create or replace function gleaner.stats_{{ name }}() returns table (state text, count bigint, capped boolean, oldest timestamptz)
{{ act() }}
declare
    v_now       timestamptz := clock_timestamp();
    v_estimated bigint := gleaner.estimate_rows({{ table_literal }});
{%- if bulk %}
    v_batches   int8multirange := gleaner.batch_keys({{ name_literal }});
{%- endif %}
begin
    perform gleaner.operates({{ name_literal }}, {{ grant.operate }}, {{ "'{}'" if grant.groups else grant.own }});
    return query
    with standing as materialized (
        select case when {{ when.q.held }} and q.{{ col.due }} < v_now then 'expired'{% if bulk %}
                    when q.{{ col.lease }} in (0, -1) and v_batches @> q.{{ key.column }} then 'running'{% endif %} else gleaner.state_{{ name }}(q, v_now) end as state, q.{{ col.due }} as at
        from {{ unfinished }} limit 10001
    ), dead as materialized (
        select count(*) as n from (select from {{ table }} as q where {{ when.q.failed }} and q.{{ col.due }} is null limit 10001) as d)
    select s.state, count(*), false, min(s.at) from standing as s group by s.state
    union all
    select 'waiting', count(*), true, null from standing having count(*) > 10000
    union all
    select 'dead', d.n, d.n > 10000, null from dead as d
    union all
    select 'finished', case when v_estimated is null then (select count(*) from {{ table }} as q where {{ when.q.final }})
                            else greatest(v_estimated - (select count(*) from standing) - d.n, 0) end, v_estimated is not null, null
    from dead as d;
end
{{ body }};
