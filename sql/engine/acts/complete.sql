{%- from "macros.sql" import quick_definer, tenant_param, tenant_arg, tenant_is, same_caller, in_zone, clear_holder, others, untouched -%}
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
{#- What becomes of a row that the sheaf `v_sheaf` held, by its own holder. -#}
{%- macro end_of_stalk() %}
            set {{ status.column }} = {{ status.done }},
                {{ col.lease }} = -v_sheaf.id,
                {{ col.due }} = v_sheaf.due_at,
                {{ col.agent }} = v_sheaf.agent,
                {{ col.session }} = v_sheaf.session
{%- if finished %},
                {{ finished.column }} = {{ in_zone("v_now", finished.type) }}
{%- endif %}
{%- endmacro -%}
/*
 * Results in, leases out, for many rows at once.
 * Fence    the lease and the status running. A lease that ran out but was taken by nobody still completes: laptops sleep.
 * Order    rows change in key order (sorted input, nested loop only), so that two batches never deadlock.
 * Returns  per outcome, its rows: done; already (this lease completed it before); lost (somebody else's now, the result is kept
 *          as evidence); gone. Of a thousand nearly all are done, so the word is said once.
 */
create or replace function gleaner.complete_{{ name }}_grouped({{ tenant_param() }}p_ids {{ key.type }}[], p_leases bigint[], p_results jsonb[] default null)
returns table (ids {{ key.type }}[], outcome text, status text)
language plpgsql
{{ quick_definer() }}
set enable_hashjoin = off
set enable_mergejoin = off
-- Only the key tells in which order rows are locked; and of the length of a piece of it the planner knows nothing.
set enable_seqscan = off
set enable_bitmapscan = off
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
    v_one     boolean := p_leases[1] = all (p_leases);
    v_sheaves bigint[] := case when v_one then array[-p_leases[1]]
                               else array(select distinct -l from unnest(p_leases) as l where l < 0) end;
    v_sheaf   gleaner.sheaf;
    v_keys    int8multirange;
    v_count   bigint;
begin
    -- A sheaf's rows say whether they are still its own by a lease of zero; the sheaf's lock keeps everybody else out.
    for v_sheaf in
        select s.*
        from gleaner.sheaf as s
        where s.queue = '{{ name }}' and s.id = any (v_sheaves) and {{ same_caller("s") }}
        order by s.id
        for update
    loop
        -- Mostly they are one piece, as they were claimed.
        if v_one and p_ids = array(select generate_series(p_ids[1], p_ids[1] + cardinality(p_ids) - 1)) then
            v_keys := int8multirange(int8range(p_ids[1], p_ids[1] + cardinality(p_ids)));
        else
            v_keys := (select coalesce(range_agg(int8range(u.id, u.id, '[]')), '{}')
                       from unnest(p_ids, p_leases) as u (id, lease) where u.lease = -v_sheaf.id);
        end if;
        v_keys := v_keys * v_sheaf.keys;
{%- if result %}
        if cardinality(array_remove(p_results, null)) > 0 then
            update {{ table }} as q
{{- end_of_stalk() }},
                {{ result.column }} = {{ result_value() }}
            from (select u.id, u.result
                  from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
                  where u.lease = -v_sheaf.id and v_keys @> u.id
                  order by u.id) as u
            where q.{{ key.column }} = u.id and {{ untouched("q") }} and q.{{ status.column }} = {{ status.ready }};
        else
{%- endif %}
            -- A piece is read in one go along the key.
            update {{ table }} as q
{{- end_of_stalk() }}
            from unnest(v_keys) as piece
            where q.{{ key.column }} >= lower(piece) and q.{{ key.column }} < upper(piece)
              and {{ untouched("q") }} and q.{{ status.column }} = {{ status.ready }};
{%- if result %}
        end if;
{%- endif %}
        get diagnostics v_count = row_count;
        if v_keys = v_sheaf.keys then
            delete from gleaner.sheaf as s where s.id = v_sheaf.id;
        else
            update gleaner.sheaf as s set keys = s.keys - v_keys where s.id = v_sheaf.id;
        end if;
        if v_one and v_count = cardinality(p_ids) then
            return query select p_ids, 'done', ({{ status.done }})::text;
            return;
        end if;
        -- What was cancelled, buried or finished by hand meanwhile has another lease.
        v_bound := v_bound || array(
            select q.{{ key.column }}
            from unnest(v_keys) as piece
            join {{ table }} as q on q.{{ key.column }} >= lower(piece) and q.{{ key.column }} < upper(piece)
            where q.{{ col.lease }} = -v_sheaf.id and q.{{ status.column }} = {{ status.done }});
    end loop;
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
    if cardinality(v_done) > 0 then
        return query select v_done, 'done', ({{ status.done }})::text;
    end if;
    if cardinality(v_done) < cardinality(p_ids) then
        -- Evidence, of those who can have held the row: a row's leases only grow, so a former one is below its lease, and whoever
        -- signed in anew knows the present one. Each is kept once. Nobody fills the table with made-up ones: so many for a row, and
        -- of one sign-in a few.
        insert into gleaner.late_result (queue, key, lease, caller, result)
        select '{{ name }}', late.key, late.lease, v_session, late.result
        from (select u.id::text as key, u.lease, u.result, row_number() over (partition by u.id order by u.n) as n
              from unnest(p_ids, p_leases, p_results) with ordinality as u (id, lease, result, n)
              left join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = u.id
              where u.id <> all (v_done) and u.lease is not null and (v_trusted or u.lease <= q.{{ col.lease }})
                and (q.{{ col.lease }} = u.lease and q.{{ status.column }} = {{ status.done }}) is not true) as late
        cross join lateral (
            select count(*) as total, count(*) filter (where l.caller = v_session) as own,
                   coalesce(bool_or(l.lease = late.lease and l.caller = v_session), false) as known
            from gleaner.late_result as l
            where l.queue = '{{ name }}' and l.key = late.key) as kept
        where not kept.known and kept.total + late.n <= 32 and (v_trusted or kept.own + late.n <= 4);
        return query
        select array_agg(o.id), o.outcome, o.status
        from (
{{ others("p_ids", "p_leases", "q." ~ col.lease ~ " = u.lease and q." ~ status.column ~ " = " ~ status.done) }}
        ) as o (id, outcome, status)
        group by o.outcome, o.status;
    end if;
end
$complete$;

-- The same, an answer per row.
create or replace function gleaner.complete_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_leases bigint[], p_results jsonb[] default null)
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ quick_definer() }}
as $complete$
begin
    return query
    select unnest(g.ids), g.outcome, g.status
    from gleaner.complete_{{ name }}_grouped({{ tenant_arg() }}p_ids, p_leases, p_results) as g;
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
