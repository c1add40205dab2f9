{%- from "macros.sql" import tenant_param, tenant_is, is_held, same_caller, inner -%}
/*
 * The rows of a repeated request that its caller still holds, in the order they were given out. Another caller who knows the request is
 * given none of them.
 */
create or replace function gleaner.repeat_{{ name }}({{ tenant_param() }}p_request uuid, v_session text) returns setof {{ table }} {{ inner() }}
declare
    v_trusted boolean := gleaner.is_trusted();
    v_keys    text[]; v_leases bigint[];
begin
    select r.keys, r.leases into v_keys, v_leases from gleaner.request as r where r.queue = {{ name_literal }} and r.id = p_request;
    return query
    select q.* from unnest(v_keys, v_leases) with ordinality as k (id, lease, n)
    join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = any (array[k.id::{{ key.type }}])
    where q.{{ col.lease }} = k.lease and {{ is_held("q") }} and {{ same_caller("q") }}
    order by k.n;
end
{{ body }};

{#- Of rows with the same id in several partitions only the leases tell the order. -#}
{%- set order = "q." ~ col.lease if parts else "k.n" %}
-- Keeps which rows a claim with a request id was given.
create or replace function gleaner.remember_{{ name }}({{ tenant_param() }}p_request uuid, p_keys {{ key.type }}[], p_lease bigint, p_session text) returns void {{ inner() }}
declare
    v_keys text[]; v_leases bigint[];
begin
    select array_agg(q.{{ key.column }}::text order by {{ order }}), array_agg(q.{{ col.lease }} order by {{ order }}) into v_keys, v_leases
    from (select distinct on (id) * from unnest(p_keys) with ordinality as k (id, n)) as k
    join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = any (array[k.id])
    where q.{{ col.lease }} >= p_lease and q.{{ col.session }} = p_session and {{ is_held("q") }};
    update gleaner.request as r set keys = v_keys, leases = v_leases where r.queue = {{ name_literal }} and r.id = p_request;
end
{{ body }};
