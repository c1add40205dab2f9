{%- from "macros.sql" import act, enter, tenant_param, tenant_arg, tenant_is, is_held, same_caller, in_zone, clear_holder, others, one_lease_each -%}
{%- from "late.sql" import result_value, keep_late -%}
/*
 * Results in, leases out, for many rows at once.
 * Fence    the lease and the status. A lease that ran out but was taken by no other still completes: laptops sleep.
 * Returns  per outcome, its rows: done; already (this lease completed it before); lost (another holder or none; the result is kept); gone.
 */
create or replace function gleaner.complete_{{ name }}_many({{ tenant_param() }}p_ids {{ key.type }}[], p_leases bigint[], p_results jsonb[] default null)
returns table (ids {{ key.type }}[], outcome text, status text)
{{ act() }}
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    {{ key.type }}[]; v_leases bigint[];
{%- if distributed %}
    v_late    record;
{%- endif %}
begin
    {{ enter() }}
    {{ one_lease_each() }}
    with changed as (
        update {{ table }} as q
        set {{ status.column }} = {{ status.done }},
{%- if result %}
            {{ result.column }} = {{ result_value() }},
{%- endif %}
{%- if finished %}
            {{ finished.column }} = {{ in_zone("v_now", finished.type) }},
{%- endif %}
            {{ clear_holder() | indent(4) }}
        -- In key order, so that two batches never deadlock.
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where {{ tenant_is("q") }}q.{{ key.column }} = any (array[u.id]) and q.{{ col.lease }} = u.lease and {{ is_held("q") }} and {{ same_caller("q") }}
        returning q.{{ key.column }} as id, q.{{ col.lease }} as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    return query select v_done, 'done', ({{ status.done }})::text where cardinality(v_done) > 0;
    if cardinality(v_done) < cardinality(p_ids) then
        {{ keep_late() }}
        return query
        select array_agg(o.id), o.outcome, o.status from (
            {{ others("q." ~ col.lease ~ " = u.lease and q." ~ status.column ~ " = " ~ status.done) | indent(8) }}
        ) as o (id, outcome, status) group by o.outcome, o.status;
    end if;
end
{{ body }};
