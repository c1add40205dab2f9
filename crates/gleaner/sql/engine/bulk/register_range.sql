{%- from "macros.sql" import act -%}
{%- set reserved -%}coalesce(nullif(current_setting('gleaner.reserved_{{ name }}', true), ''), '{}')::int8multirange{%- endset -%}
/*
 * Keys for p_count rows that are about to be enqueued together, as ranges; mostly one. For enqueue by COPY, which writes the rows with
 * the lease -1 and then registers their ranges, in the same transaction.
 * Returns  nothing where rows cannot wait in bulk ranges: the key is not drawn from a sequence of its own, something on the table could
 *          reject a change or make rows differ that were enqueued alike{{ ", as the adapter does here" if adapt_inserts }}.
 */
create or replace function gleaner.reserve_keys_{{ name }}(p_count integer) returns table (first bigint, last bigint)
{{ act() }}
declare
    v_sequence text := pg_get_serial_sequence({{ table_literal }}, {{ key.literal }});
    v_keys     bigint[];
    v_pieces   int8multirange;
begin
    if {{ "true or " if adapt_inserts }}v_sequence is null or p_count < 1 or not has_sequence_privilege(v_sequence, 'usage') or not {{ plain }}
       or exists (
           select from pg_attribute as a
           left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
           where a.attrelid = {{ table_literal }}::regclass and (
               a.attname = {{ key.literal }} and a.attidentity = '' and pg_get_expr(d.adbin, d.adrelid) not like 'nextval(%'
{%- for part in [kind, priority] if part %}
               or a.attname = {{ part.literal }} and (a.attgenerated <> '' or pg_get_expr(d.adbin, d.adrelid) like '%(%')
{%- endfor %}))
       or exists (select from pg_trigger as t where t.tgrelid = {{ table_literal }}::regclass and not t.tgisinternal and t.tgtype & 7 = 7) then
        return;
    end if;
    v_keys := array(select nextval(v_sequence::regclass) from generate_series(1, p_count));
    -- A session's keys ascend: the ends tell whether others drew from the sequence meanwhile.
    if v_keys[p_count] = v_keys[1] + p_count - 1 then
        v_pieces := int8multirange(int8range(v_keys[1], v_keys[p_count], '[]'));
    else
        v_pieces := (select range_agg(int8range(k, k, '[]')) from unnest(v_keys) as k);
    end if;
    perform set_config('gleaner.reserved_{{ name }}', ({{ reserved }} + v_pieces)::text, true);
    return query select lower(p), upper(p) - 1 from unnest(v_pieces) as p;
end
{{ body }};

/*
 * Lets rows that this transaction inserted wait as bulk ranges: from p_first[i] to p_last[i] all of one kind and one class, with the
 * lease -1. The first row of each says when it is due.
 * Refuses  keys that this transaction did not reserve, and those it has registered: a key in two ranges would be handed out twice. A
 *          guard against mistakes: comparing with all ranges would cost every batch more than registering it.
 */
create or replace function gleaner.register_range_{{ name }}(p_first bigint[], p_last bigint[]) returns void
{{ act() }}
declare
    v_reserved int8multirange := {{ reserved }};
    v_piece    record;
    v_count    integer;
begin
    for v_piece in select u.first, u.last from unnest(p_first, p_last) as u (first, last) loop
        if (v_piece.first <= v_piece.last and v_reserved @> int8range(v_piece.first, v_piece.last, '[]')) is not true then
            raise exception 'the keys % to % of {{ table_text }} cannot be registered', v_piece.first, v_piece.last using errcode = 'GL002',
                hint = 'Ask gleaner.reserve_keys_{{ name }} for keys in the same transaction, and register each once.';
        end if;
        v_reserved := v_reserved - int8multirange(int8range(v_piece.first, v_piece.last, '[]'));
    end loop;
    insert into gleaner.bulk_range (queue, kind, class, due_at, first, last)
    select {{ name_literal }}, {{ kind.of ~ "::text" if kind else "''" }}, {{ priority.of if priority else "0" }}, q.{{ col.due }}, u.first, u.last
    from unnest(p_first, p_last) as u (first, last)
    join {{ table }} as q on q.{{ key.column }} = u.first
    where q.{{ col.lease }} = -1 and q.{{ status.column }} = {{ status.ready }};
    get diagnostics v_count = row_count;
    if v_count <> cardinality(p_first) then
        raise exception 'rows of {{ table_text }} in a bulk range wait with the lease -1' using errcode = 'GL002';
    end if;
    perform set_config('gleaner.reserved_{{ name }}', v_reserved::text, true);
end
{{ body }};
