{%- from "macros.sql" import definer -%}
{%- if finished %}
/*
 * Deletes finished rows older than {{ "the declared retention, or than p_older_than" if retain else "p_older_than; nothing without it, for no retention is declared and the row is the record" }}.
 * At most p_limit rows per call, so that no call holds locks for long: repeat until it answers zero.
 */
create or replace function gleaner.prune_{{ name }}(p_limit integer default 1000, p_older_than interval default null) returns integer
language plpgsql
{{ definer() }}
as $prune$
declare
    v_older_than interval := coalesce(p_older_than, {{ retain if retain else "null" }});
    v_before     {{ finished.type }};
    v_count      integer;
begin
    -- Evidence and lost answers are kept for a week, whatever the queue keeps.
    delete from gleaner.request as r where r.at < clock_timestamp() - interval '1 day';
    delete from gleaner.late_result as l where l.queue = '{{ name }}' and l.at < clock_timestamp() - interval '7 days';
    delete from gleaner.offender as o where o.queue = '{{ name }}' and o.until < clock_timestamp();
    if v_older_than is null then
        return 0;
    end if;
    v_before := clock_timestamp(){% if finished.type == "timestamp without time zone" %} at time zone {{ zone }}{% endif %} - v_older_than;
    delete from {{ table }} as q
    where q.{{ key.column }} = any (array(
        select q.{{ key.column }}
        from {{ table }} as q
        where q.{{ finished.column }} < v_before
          and (q.{{ status.column }} in ({{ status.final }}) or q.{{ status.column }} = {{ status.failed }} and q.{{ col.due }} is null)
        limit p_limit
        for update skip locked));
    get diagnostics v_count = row_count;
    return v_count;
end
$prune$;
{%- endif %}
