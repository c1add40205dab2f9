{%- from "macros.sql" import act, enter, is_held, same_caller, in_zone, clear_holder, others, one_lease_each -%}
{%- from "late.sql" import result_value, keep_late -%}
{#- What becomes of a row that the batch lease `v_batch` held, by its own holder. -#}
{%- macro end_of_member() -%}
set {{ status.column }} = {{ status.done }},
                {{ col.lease }} = -v_batch.id,
                {{ col.due }} = v_batch.due_at,
                {{ col.agent }} = v_batch.agent,
                {{ col.session }} = v_batch.session
{%- if finished %},
                {{ finished.column }} = {{ in_zone("v_now", finished.type) }}
{%- endif %}
{%- endmacro -%}
/*
 * Completes rows that batch leases hold. The record's lock keeps every other act out; a row says itself whether it is still a member.
 * Returns  the rows that were completed.
 */
create or replace function gleaner.complete_in_batch_{{ name }}(p_ids bigint[], p_leases bigint[], p_results jsonb[], v_trusted boolean, v_session text) returns table (id bigint, lease bigint)
language plpgsql
set enable_bitmapscan = off
as {{ body }}
#variable_conflict use_column
declare
    v_now   timestamptz := clock_timestamp();
    -- Mostly all are of one batch, and one range of keys.
    v_one   boolean := p_leases[1] = all (p_leases);
    v_batch gleaner.batch_lease;
    v_keys  int8multirange;
    v_count integer;
begin
    for v_batch in
        select b.* from gleaner.batch_lease as b
        where b.queue = {{ name_literal }} and (v_trusted or b.session = v_session)
          and b.id = any (case when v_one then array[-p_leases[1]] else array(select distinct -l from unnest(p_leases) as l where l < 0) end)
        order by b.id
        for update
    loop
        if v_one and p_ids = array(select generate_series(p_ids[1], p_ids[1] + cardinality(p_ids) - 1)) then
            v_keys := int8multirange(int8range(p_ids[1], p_ids[1] + cardinality(p_ids)));
        else
            v_keys := (select coalesce(range_agg(int8range(u.id, u.id, '[]')), '{}') from unnest(p_ids, p_leases) as u (id, lease) where u.lease = -v_batch.id);
        end if;
        v_keys := v_keys * v_batch.keys;
{%- if result %}
        if cardinality(array_remove(p_results, null)) > 0 then
            update {{ table }} as q
            {{ end_of_member() }},
                {{ result.column }} = {{ result_value() }}
            from (select u.id, u.result from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
                  where u.lease = -v_batch.id and v_keys @> u.id
                  order by u.id) as u
            where q.{{ key.column }} = any (array[u.id]) and q.{{ col.lease }} = v_batch.mark and q.{{ status.column }} = {{ status.ready }};
        else
{%- endif %}
            update {{ table }} as q
            {{ end_of_member() }}
            from unnest(v_keys) as piece
            where q.{{ key.column }} >= lower(piece) and q.{{ key.column }} < upper(piece)
              and q.{{ col.lease }} = v_batch.mark and q.{{ status.column }} = {{ status.ready }};
{%- if result %}
        end if;
{%- endif %}
        get diagnostics v_count = row_count;
        if v_count >= v_batch.remaining then
            delete from gleaner.batch_lease as b where b.id = v_batch.id;
        elsif v_count > 0 then
            update gleaner.batch_lease as b set remaining = b.remaining - v_count where b.id = v_batch.id;
        end if;
        if v_one and v_count = cardinality(p_ids) then
            return query select u.id, u.lease from unnest(p_ids, p_leases) as u (id, lease);
        elsif v_count > 0 then
            -- Only these were written by this call: they ended at its time.
            return query
            select q.{{ key.column }}, -v_batch.id
            from unnest(v_keys) as piece
            join {{ table }} as q on q.{{ key.column }} >= lower(piece) and q.{{ key.column }} < upper(piece)
            where q.{{ col.lease }} = -v_batch.id and q.{{ status.column }} = {{ status.done }}{% if finished %} and q.{{ finished.column }} = {{ in_zone("v_now", finished.type) }}{% endif %};
        end if;
    end loop;
end
{{ body }};

/*
 * Results in, leases out, for many rows at once.
 * Fence    the lease and the status. A lease that ran out but was taken by no other still completes: laptops sleep.
 * Order    rows change in key order, so that two batches never deadlock; the record of a batch before its rows.
 * Returns  per outcome, its rows: done; already (this lease completed it before); lost (another holder or none; the result is kept); gone.
 */
create or replace function gleaner.complete_{{ name }}_many(p_ids bigint[], p_leases bigint[], p_results jsonb[] default null)
returns table (ids bigint[], outcome text, status text)
{{ act() }}
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    bigint[] := '{}';
    v_leases  bigint[] := '{}';
    v_changed record;
begin
    {{ enter() }}
    {{ one_lease_each() }}
    if 0 > any (p_leases) then
        select coalesce(array_agg(b.id), '{}'), coalesce(array_agg(b.lease), '{}') into v_done, v_leases
        from gleaner.complete_in_batch_{{ name }}(p_ids, p_leases, p_results, v_trusted, v_session) as b;
    end if;
    if cardinality(v_done) < cardinality(p_ids) then
        with changed as (
            update {{ table }} as q
            set {{ status.column }} = {{ status.done }},
{%- if result %}
                {{ result.column }} = {{ result_value() | indent(4) }},
{%- endif %}
{%- if finished %}
                {{ finished.column }} = {{ in_zone("v_now", finished.type) }},
{%- endif %}
                {{ clear_holder() | indent(8) }}
            from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
            where q.{{ key.column }} = any (array[u.id]) and q.{{ col.lease }} = u.lease and {{ is_held("q") }} and {{ same_caller("q") }}
            returning q.{{ key.column }} as id, q.{{ col.lease }} as lease
        )
        select coalesce(array_agg(changed.id), '{}') as ids, coalesce(array_agg(changed.lease), '{}') as leases into v_changed from changed;
        v_done := v_done || v_changed.ids;
        v_leases := v_leases || v_changed.leases;
    end if;
    if cardinality(v_done) > 0 then
        return query select v_done, 'done', ({{ status.done }})::text;
    end if;
    if cardinality(v_done) < cardinality(p_ids) then
        {{ keep_late() }}
        return query
        select array_agg(o.id), o.outcome, o.status from (
            {{ others("q." ~ col.lease ~ " = u.lease and q." ~ status.column ~ " = " ~ status.done) | indent(8) }}
        ) as o (id, outcome, status) group by o.outcome, o.status;
    end if;
end
{{ body }};
