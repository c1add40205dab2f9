{%- from "macros.sql" import act, inner -%}
{#- A row that the batch lease `b` holds. -#}
{%- macro member(b) -%}q.{{ col.lease }} = {{ b }}.mark and q.{{ status.column }} = {{ status.ready }}{%- endmacro -%}
/*
 * Writes the lease of a batch on its rows, as if each had been claimed alone: on those of p_ids, or on all, in the batch leases p_batches
 * or in every one. An act about a single row begins with it, and so does the end of a batch lease.
 * Order    the record's lock comes before its rows', in every act.
 */
create or replace function gleaner.unbatch_{{ name }}(p_ids {{ key.type }}[], p_batches bigint[] default null) returns void
set enable_bitmapscan = off {{ act() }}
declare
    v_wanted int8multirange := (select range_agg(int8range(i, i, '[]')) from unnest(p_ids) as i);
    v_batch  gleaner.batch_lease;
    v_count  integer;
begin
    if cardinality(p_ids) = 0 then
        return;
    end if;
    for v_batch in
        select b.* from gleaner.batch_lease as b
        where b.queue = {{ name_literal }} and (p_batches is null or b.id = any (p_batches)) and (v_wanted is null or b.keys && v_wanted)
        order by b.id
        for update
    loop
        -- A finished, cancelled or released row has a lease of its own by now.
        update {{ table }} as q
        set {{ status.column }} = {{ status.taken }},
            {{ col.due }} = v_batch.due_at,
            {{ col.lease }} = -v_batch.id,
            {{ col.deadline }} = v_batch.deadline_at,
            {{ col.started }} = case when v_batch.begun @> q.{{ key.column }} then 1 else 0 end,
            {{ col.agent }} = v_batch.agent,
            {{ col.session }} = v_batch.session
        from unnest(coalesce(v_batch.keys * v_wanted, v_batch.keys)) as piece
        where q.{{ key.column }} >= lower(piece) and q.{{ key.column }} < upper(piece) and {{ member("v_batch") }};
        get diagnostics v_count = row_count;
        if v_wanted is null or v_count >= v_batch.remaining then
            delete from gleaner.batch_lease as b where b.id = v_batch.id;
        elsif v_count > 0 then
            update gleaner.batch_lease as b set remaining = b.remaining - v_count where b.id = v_batch.id;
        end if;
    end loop;
end
{{ body }};

-- A fetched row that a batch lease holds, as it would be had it been claimed alone.
create or replace function gleaner.as_held_{{ name }}(p_row {{ table }}) returns {{ table }} {{ inner() }}
declare
    v_batch gleaner.batch_lease;
begin
    if p_row.{{ col.lease }} in (0, -1) and p_row.{{ status.column }} = {{ status.ready }} then
        select b.* into v_batch from gleaner.batch_lease as b
        where b.queue = {{ name_literal }} and b.mark = p_row.{{ col.lease }} and b.keys @> p_row.{{ key.column }};
        if found then
            p_row.{{ status.column }} := {{ status.taken }};
            p_row.{{ col.lease }} := -v_batch.id;
            p_row.{{ col.due }} := v_batch.due_at;
            p_row.{{ col.deadline }} := v_batch.deadline_at;
            p_row.{{ col.started }} := case when v_batch.begun @> p_row.{{ key.column }} then 1 else 0 end;
            p_row.{{ col.agent }} := v_batch.agent;
            p_row.{{ col.session }} := v_batch.session;
        end if;
    end if;
    return p_row;
end
{{ body }};

-- Marks rows of batch leases as begun. Returns those that were held so.
create or replace function gleaner.start_in_batch_{{ name }}(p_ids {{ key.type }}[], p_leases bigint[]) returns table (id {{ key.type }}, lease bigint) {{ inner() }}
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_batch   gleaner.batch_lease;
    v_of      {{ key.type }}[];
begin
    for v_batch in
        select b.* from gleaner.batch_lease as b
        where b.queue = {{ name_literal }} and b.id = any (array(select distinct -l from unnest(p_leases) as l where l < 0)) and (v_trusted or b.session = v_session)
        order by b.id
        for update
    loop
        v_of := array(
            select u.id from unnest(p_ids, p_leases) as u (id, lease)
            join {{ table }} as q on q.{{ key.column }} = any (array[u.id])
            where u.lease = -v_batch.id and v_batch.keys @> u.id and {{ member("v_batch") }});
        update gleaner.batch_lease as b set begun = b.begun + (select range_agg(int8range(i, i, '[]')) from unnest(v_of) as i)
        where b.id = v_batch.id and cardinality(v_of) > 0;
        return query select i, -v_batch.id from unnest(v_of) as i;
    end loop;
end
{{ body }};
