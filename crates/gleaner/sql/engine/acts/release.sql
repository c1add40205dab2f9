{%- from "macros.sql" import act, enter, tenant_param, tenant_is, is_held, same_caller, others, one_lease_each -%}
/*
 * Gives work back without burning an attempt: an agent that shuts down, or took more than it can do.
 */
create or replace function gleaner.release_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_leases bigint[])
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ act() }}
as {{ body }}
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    {{ key.type }}[] := '{}';
    v_leases  bigint[] := '{}';
    v_row     {{ table }};
begin
    {{ enter() }}
    {{ one_lease_each() }}
{%- if engine == "bulk" %}
    perform gleaner.unbatch_{{ name }}(p_ids, array(select distinct -l from unnest(p_leases) as l where l < 0));
{%- endif %}
    for v_row in
        select q.*
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = any (array[u.id]) and q.{{ col.lease }} = u.lease
        where {{ is_held("q") }} and {{ same_caller("q") }}
        for no key update of q
    loop
        v_done := v_done || v_row.{{ key.column }};
        v_leases := v_leases || v_row.{{ col.lease }};
        return query select v_row.{{ key.column }}, 'done', gleaner.put_back_{{ name }}(
            v_row, {{ status.ready }}, v_now, true, v_row.{{ col.attempts }}, v_row.{{ col.lost }});
    end loop;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
        {{ others("q." ~ col.lease ~ " = u.lease + 1 and q." ~ status.column ~ " not in (" ~ status.held ~ ")") | indent(4) }};
    end if;
end
{{ body }};
