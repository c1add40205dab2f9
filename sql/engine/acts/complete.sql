{%- from "macros.sql" import quick_definer, tenant_param, tenant_arg, tenant_is, same_caller, in_zone, clear_holder, answers_for_the_rest -%}
{#- The result column's new value. -#}
{%- macro result_value() -%}
{%- if result.type == "jsonb" -%}
case when u.result is null then q.{{ result.column }}
                -- Partial results of earlier stages stay beside the final ones.
                when jsonb_typeof(q.{{ result.column }}) = 'object' and jsonb_typeof(u.result) = 'object' then q.{{ result.column }} || u.result
                else u.result end
{%- else -%}
coalesce(u.result #>> '{}', q.{{ result.column }})
{%- endif -%}
{%- endmacro -%}
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
{%- if sheaf %}
    v_bound   {{ key.type }}[] := '{}';
    -- Mostly all are of one.
    v_sheaves bigint[] := case when p_leases[1] = all (p_leases) then array[-p_leases[1]]
                               else array(select distinct -l from unnest(p_leases) as l where l < 0) end;
    v_ended   {{ key.type }}[];
    v_sheaf   gleaner.sheaf;
begin
    -- A sheaf's rows say whether they are still its own by a lease of zero; the sheaf's lock keeps everybody else out.
    for v_sheaf in
        select s.*
        from gleaner.sheaf as s
        where s.queue = '{{ name }}' and s.id = any (v_sheaves) and {{ same_caller("s") }}
        order by s.id
        for update
    loop
        with changed as (
            update {{ table }} as q
            set {{ status.column }} = {{ status.done }},
                {{ col.lease }} = -v_sheaf.id,
                {{ col.due }} = v_sheaf.due_at,
                {{ col.agent }} = v_sheaf.agent,
                {{ col.session }} = v_sheaf.session
{%- if result %},
                {{ result.column }} = {{ result_value() }}
{%- endif %}
{%- if finished %},
                {{ finished.column }} = {{ in_zone("v_now", finished.type) }}
{%- endif %}
            from (select u.id, u.result
                  from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
                  where u.lease = -v_sheaf.id and v_sheaf.keys @> u.id
                  order by u.id) as u
            where q.{{ key.column }} = u.id and q.{{ col.lease }} = 0 and q.{{ status.column }} = {{ status.ready }}
            returning q.{{ key.column }} as id
        )
        select coalesce(array_agg(changed.id), '{}') into v_ended from changed;
        v_bound := v_bound || v_ended;
        if cardinality(v_ended) = (select sum(upper(r) - lower(r)) from unnest(v_sheaf.keys) as r) then
            v_sheaf.keys := '{}';
        else
            v_sheaf.keys := v_sheaf.keys - (select range_agg(int8range(u.id, u.id, '[]'))
                                            from unnest(p_ids, p_leases) as u (id, lease) where u.lease = -v_sheaf.id);
        end if;
        if isempty(v_sheaf.keys) then
            delete from gleaner.sheaf as s where s.id = v_sheaf.id;
        else
            update gleaner.sheaf as s set keys = v_sheaf.keys where s.id = v_sheaf.id;
        end if;
    end loop;
    if cardinality(v_bound) = cardinality(p_ids) then
        return query select d, 'done', ({{ status.done }})::text from unnest(v_bound) as d;
        return;
    end if;
{%- else %}
begin
{%- endif %}
    with changed as (
        update {{ table }} as q
        set {{ status.column }} = {{ status.done }},
{%- if result %}
            {{ result.column }} = {{ result_value() }},
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
{%- if sheaf %}
    v_done := v_done || v_bound;
{%- endif %}
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
