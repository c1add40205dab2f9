{%- from "macros.sql" import quick_definer, tenant_param, tenant_arg, tenant_is, same_caller, in_zone, clear_holder, answers_for_the_rest -%}
/*
 * Results in, leases out, for many rows at once.
 * Fence    the lease and the status running. A lease that ran out but was taken by nobody still completes: laptops sleep.
 * Order    rows change in key order (sorted input, nested loop only), so that two batches never deadlock.
 * Returns  per row: done; already (this lease completed it before); lost (somebody else's now, the result is kept as evidence); gone.
 */
create or replace function gleaner.complete_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_leases bigint[], p_results jsonb[] default null)
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ quick_definer() }}
set enable_hashjoin = off
set enable_mergejoin = off
as $complete$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    {{ key.type }}[];
begin
    with changed as (
        update {{ table }} as q
        set {{ status.column }} = {{ status.done }},
{%- if result %}
{%- if result.type == "jsonb" %}
            {{ result.column }} = case when u.result is null then q.{{ result.column }}
                -- Partial results of earlier stages stay beside the final ones.
                when jsonb_typeof(q.{{ result.column }}) = 'object' and jsonb_typeof(u.result) = 'object' then q.{{ result.column }} || u.result
                else u.result end,
{%- else %}
            {{ result.column }} = coalesce(u.result #>> '{}', q.{{ result.column }}),
{%- endif %}
{%- endif %}
{%- if finished %}
            {{ finished.column }} = {{ in_zone("v_now", finished.type) }},
{%- endif %}
{{ clear_holder() }}
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where {{ tenant_is("q") }}q.{{ key.column }} = u.id and q.{{ col.lease }} = u.lease
          and q.{{ status.column }} in ({{ status.held }}) and {{ same_caller("q") }}
        returning q.{{ key.column }} as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    return query select d, 'done', ({{ status.done }})::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        insert into gleaner.late_result (queue, key, lease, caller, result)
        select '{{ name }}', u.id::text, u.lease, v_session, u.result
        from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
        left join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = u.id
        where u.id <> all (v_done) and u.lease is not null
          and (q.{{ col.lease }} = u.lease and q.{{ status.column }} = {{ status.done }}) is not true;
{{ answers_for_the_rest("p_ids", "p_leases", "q." ~ col.lease ~ " = u.lease and q." ~ status.column ~ " = " ~ status.done) }}
    end if;
end
$complete$;

-- One row, for people at a prompt and programs that work one at a time.
create or replace function gleaner.complete_{{ name }}({{ tenant_param() }}p_id {{ key.type }}, p_lease bigint, p_result jsonb default null)
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ quick_definer() }}
as $complete$
begin
    return query select * from gleaner.complete_{{ name }}({{ tenant_arg() }}array[p_id], array[p_lease], array[p_result]);
end
$complete$;
