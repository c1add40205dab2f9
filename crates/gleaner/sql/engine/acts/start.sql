{%- from "macros.sql" import act, enter, tenant_param, tenant_is, is_held, same_caller, others, one_lease_each -%}
-- Marks claimed rows as begun, for agents that prefetch: from here on a lost lease counts against the row.
create or replace function gleaner.start_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_leases bigint[])
returns table (id {{ key.type }}, outcome text, status text)
{{ act() }}
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    {{ key.type }}[]; v_leases bigint[];
begin
    {{ enter() }}
    {{ one_lease_each() }}
    with changed as (
        update {{ table }} as q
        set {{ col.started }} = greatest(q.{{ col.started }}, 1)
{%- if status.claimed %},
            {{ status.column }} = {{ status.running }}
{%- endif %}
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where {{ tenant_is("q") }}q.{{ key.column }} = any (array[u.id]) and q.{{ col.lease }} = u.lease and {{ is_held("q") }} and {{ same_caller("q") }}
        returning q.{{ key.column }} as id, q.{{ col.lease }} as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
{%- if engine == "bulk" %}
    select v_done || coalesce(array_agg(b.id), '{}'), v_leases || coalesce(array_agg(b.lease), '{}') into v_done, v_leases
    from gleaner.start_in_batch_{{ name }}(p_ids, p_leases) as b;
{%- endif %}
    return query select d, 'done', ({{ status.running }})::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
        {{ others("false") | indent(4) }};
    end if;
end
{{ body }};
