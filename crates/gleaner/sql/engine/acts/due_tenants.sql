{%- from "macros.sql" import act -%}
{%- if tenant %}
/*
 * Tenants with claimable rows, the one that has waited longest first: an agent of many tenants claims in each of them in turn.
 */
create or replace function gleaner.due_tenants_{{ name }}(p_limit integer default 100) returns setof {{ tenant.type }}
{{ act() }}
declare
    v_now timestamptz := clock_timestamp();
begin
    return query
    select q.{{ tenant.column }}
    from {{ table }} as q
    where {{ standing }} and q.{{ col.due }} <= v_now
    group by q.{{ tenant.column }}
    order by min(q.{{ col.due }})
    limit p_limit;
end
{{ body }};
{%- endif %}
