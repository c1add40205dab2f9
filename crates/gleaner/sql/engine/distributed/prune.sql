{%- from "macros.sql" import act, in_zone -%}
{%- if finished %}
{%- set old -%}
q.{{ finished.column }} < v_before and (q.{{ status.column }} in ({{ status.final }}) or q.{{ status.column }} = {{ status.failed }} and q.{{ col.due }} is null)
{%- endset -%}
/*
 * Deletes finished rows older than {{ "the declared retention, or than p_older_than" if retain else "p_older_than; nothing without it, for no retention is declared and the row is the record" }}.
 * At most p_limit rows per call, so that no call holds locks for long: repeat until it answers fewer. Rows are locked one shard at a time.
 */
create or replace function gleaner.prune_{{ name }}(p_limit integer default 1000, p_older_than interval default null) returns integer
{{ act() }}
declare
    v_now        timestamptz := clock_timestamp();
    v_older_than interval := coalesce(p_older_than, {{ retain if retain else "null" }});
    v_before     {{ finished.type }} := {{ in_zone("v_now", finished.type) }} - v_older_than;
    v_tenant     {{ tenant.type }};
    v_keys       {{ key.type }}[];
    v_count      integer := 0;
begin
    perform gleaner.operates({{ name_literal }}, {{ grant.operate }}, '{}');
    perform gleaner.prune_notes({{ name_literal }}, v_now);
    if v_older_than is null then
        return 0;
    end if;
    foreach v_tenant in array array(
        select q.{{ tenant.column }} from {{ table }} as q where {{ old }}
        group by q.{{ tenant.column }} order by q.{{ tenant.column }} limit p_limit)
    loop
        v_keys := array(
            select q.{{ key.column }} from {{ table }} as q
            where q.{{ tenant.column }} = v_tenant and {{ old }}
            limit p_limit - v_count
            for update skip locked);
        delete from {{ table }} as q where q.{{ tenant.column }} = v_tenant and q.{{ key.column }} = any (v_keys);
        v_count := v_count + cardinality(v_keys);
        exit when v_count >= p_limit;
    end loop;
    perform gleaner.note_prune({{ name_literal }}, v_count, v_older_than);
    return v_count;
end
{{ body }};
{%- endif %}
