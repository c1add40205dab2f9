{%- from "macros.sql" import inner -%}
{%- from "take.sql" import take -%}
{#- A row that a batch lease holds, as it would be had it been claimed alone. With `mixed` only where the batch lease `b` holds it. -#}
{%- macro held_row(lease, due, deadline, begun, agent, session, mixed) %}
{%- set values = {"status": status.taken, "lease": lease, "due": due, "deadline": deadline, "started": "case when " ~ begun ~ " then 1 else 0 end",
                  "agent": agent, "session": session} %}
{%- for c in bulk.columns %}{{ ", " if not loop.first }}
{%- if c.role is none or c.role not in values %}q.{{ c.column }}
{%- elif mixed %}case when b.id is not null then ({{ values[c.role] }})::{{ c.type }} else q.{{ c.column }} end
{%- else %}({{ values[c.role] }})::{{ c.type }}{% endif %}
{%- endfor %}
{%- endmacro -%}
{%- set held = held_row("-v_id", "v_due", "v_deadline", "p_started", "p_agent", "p_session", false) -%}
{#- Rows of one claim and one mark share a record: its time tells the claim. -#}
{%- macro add_to_batch(keys, mark, remaining) -%}
update gleaner.batch_lease as b
    set keys = b.keys + {{ keys }}, remaining = b.remaining + {{ remaining }}, begun = case when p_started then b.begun + {{ keys }} else b.begun end
    where b.queue = {{ name_literal }} and b.xid = pg_current_xact_id() and b.mark = {{ mark }} and b.due_at = v_due and b.agent is not distinct from p_agent
    returning b.id into v_id;
    if v_id is null then
        insert into gleaner.batch_lease (queue, keys, mark, remaining, begun, agent, session, due_at, deadline_at)
        values ({{ name_literal }}, {{ keys }}, {{ mark }}, {{ remaining }}, case when p_started then {{ keys }} else '{}' end, p_agent, p_session, v_due, v_deadline)
        returning id into v_id;
    end if;
{%- endmacro -%}
/*
 * Holds rows that no act has written yet by one record, and gives them out in the order of p_keys. The claim has locked them.
 */
create or replace function gleaner.hold_batch_{{ name }}(p_keys bigint[], p_agent text, p_session text, p_now timestamptz, p_hold interval, p_started boolean) returns setof {{ table }}
language plpgsql
set enable_bitmapscan = off
as {{ body }}
#variable_conflict use_column
declare
    v_due      timestamptz := p_now + least(coalesce(p_hold, {{ hold }}), {{ deadline }});
    v_deadline timestamptz := p_now + {{ deadline }};
    v_first    bigint := p_keys[1];
    v_last     bigint := p_keys[1] + cardinality(p_keys) - 1;
    -- They mostly follow each other, and then are read in one go along the key.
    v_range    boolean := p_keys[cardinality(p_keys)] = v_last and p_keys = array(select generate_series(v_first, v_last));
    v_keys     int8multirange;
    v_id       bigint;
begin
    v_keys := case when v_range then int8multirange(int8range(v_first, v_last, '[]')) else (select range_agg(int8range(i, i, '[]')) from unnest(p_keys) as i) end;
    {{ add_to_batch("v_keys", "0", "cardinality(p_keys)") }}
    if v_range then
        return query
        select {{ held }}
        from {{ table }} as q where q.{{ key.column }} between v_first and v_last order by q.{{ key.column }};
    else
        return query
        select {{ held }}
        from unnest(p_keys) as k (id) join {{ table }} as q on q.{{ key.column }} = any (array[k.id]);
    end if;
end
{{ body }};

/*
 * The same where some of the rows were written before or have a unique key, which must be free again while the row is worked: those get
 * a lease of their own. All are given out in the order of p_keys.
 */
create or replace function gleaner.hold_mixed_{{ name }}(p_keys bigint[], p_fresh boolean[], p_agent text, v_session text, v_now timestamptz, p_hold interval, p_started boolean) returns setof {{ table }} {{ inner() }}
declare
    v_lease bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_keys  bigint[] := array(select k.id from unnest(p_keys, p_fresh) with ordinality as k (id, fresh, n) where not k.fresh order by k.n);
begin
    {{ take("p_started") | indent(4) }};
    perform gleaner.hold_batch_{{ name }}(array(select k.id from unnest(p_keys, p_fresh) with ordinality as k (id, fresh, n) where k.fresh order by k.n), p_agent, v_session, v_now, p_hold, p_started);
    return query
    select h.*
    from unnest(p_keys) as k (id)
    join {{ table }} as q on q.{{ key.column }} = any (array[k.id])
    cross join lateral gleaner.as_held_{{ name }}(q) as h;
end
{{ body }};

/*
 * Takes up to p_limit rows off the head of a bulk range, held by one record. Only acts that end a row come to rows of a range, so the
 * range's lock is theirs. Rows that were cancelled or deleted while they waited there are not among them.
 * Returns  nothing where another claim holds the range, or has taken its head: then what is left of it has another first key.
 */
create or replace function gleaner.hold_range_{{ name }}(p_range gleaner.bulk_range, p_limit integer, p_agent text, p_session text, p_now timestamptz, p_hold interval, p_started boolean) returns setof {{ table }}
language plpgsql
set enable_bitmapscan = off
as {{ body }}
#variable_conflict use_column
declare
    v_due      timestamptz := p_now + least(coalesce(p_hold, {{ hold }}), {{ deadline }});
    v_deadline timestamptz := p_now + {{ deadline }};
    v_last     bigint;
    v_keys     int8multirange;
    v_count    integer;
    v_id       bigint;
begin
    v_last := least(p_range.last, p_range.first + p_limit - 1);
    if v_last = p_range.last then
        delete from gleaner.bulk_range as r
        where r.queue = {{ name_literal }} and r.kind = p_range.kind and r.class = p_range.class and r.due_at = p_range.due_at and r.first = p_range.first;
    else
        update gleaner.bulk_range as r set first = v_last + 1
        where r.queue = {{ name_literal }} and r.kind = p_range.kind and r.class = p_range.class and r.due_at = p_range.due_at and r.first = p_range.first;
    end if;
    v_keys := int8multirange(int8range(p_range.first, v_last, '[]'));
    {{ add_to_batch("v_keys", "-1", "v_last - p_range.first + 1") }}
    return query
    select {{ held }}
    from {{ table }} as q
    where q.{{ key.column }} between p_range.first and v_last and q.{{ col.lease }} = -1 and q.{{ status.column }} = {{ status.ready }}
    order by q.{{ key.column }};
    get diagnostics v_count = row_count;
    if v_count <= v_last - p_range.first then
        update gleaner.batch_lease as b set remaining = b.remaining - (v_last - p_range.first + 1 - v_count) where b.id = v_id;
        delete from gleaner.batch_lease as b where b.id = v_id and b.remaining = 0;
    end if;
end
{{ body }};
