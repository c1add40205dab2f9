{%- from "macros.sql" import quick_definer, tenant_param, tenant_is, same_caller, others -%}
/*
 * Gives work back without burning an attempt: an agent that shuts down, or took more than it can do.
 */
create or replace function gleaner.release_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_leases bigint[])
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ quick_definer() }}
as $release$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    {{ key.type }}[] := '{}';
    v_row     {{ table }};
begin
{%- if sheaf %}
    perform gleaner.loosen_{{ name }}(array_agg(u.id), -u.lease)
    from unnest(p_ids, p_leases) as u (id, lease) where u.lease < 0 group by u.lease order by u.lease desc;
{%- endif %}
    for v_row in
        select q.*
        from {{ table }} as q
        where {{ tenant_is("q") }}q.{{ key.column }} = any (p_ids)
        order by q.{{ key.column }}
        for no key update
    loop
        continue when v_row.{{ status.column }} not in ({{ status.held }}) or not {{ same_caller("v_row") }};
        continue when not exists (select from unnest(p_ids, p_leases) as u (id, lease)
                                  where u.id = v_row.{{ key.column }} and u.lease = v_row.{{ col.lease }});
        v_done := v_done || v_row.{{ key.column }};
        return query select v_row.{{ key.column }}, 'done', gleaner.put_back_{{ name }}(
            v_row, {{ status.ready }}, v_now, true, v_row.{{ col.attempts }}, v_row.{{ col.lost }});
    end loop;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
{{ others("p_ids", "p_leases", "q." ~ col.lease ~ " = u.lease + 1 and q." ~ status.column ~ " not in (" ~ status.held ~ ")") }};
    end if;
end
$release$;
