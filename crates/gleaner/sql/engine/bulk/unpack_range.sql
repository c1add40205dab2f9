{%- from "macros.sql" import act -%}
{%- set waiting -%}q.{{ col.lease }} = -1 and q.{{ status.column }} = {{ status.ready }}{%- endset -%}
{%- set this -%}r.queue = {{ name_literal }} and r.kind = p_range.kind and r.class = p_range.class and r.due_at = p_range.due_at and r.first = p_range.first{%- endset -%}
/*
 * Lets the rows of a bulk range wait each by itself, up to the key p_upto; the rest stays a range. For claims of few rows, which would
 * otherwise block each other, and for a queue that is to have no ranges any more.
 * Calls    with the range's lock.
 * Races    skip locked: a row that is about to change stays where it is, in a range of its own.
 * Rejected a row that rejects the change stays so, too, is noted, and tried again later.
 * Returns  the keys of those that stayed.
 */
create or replace function gleaner.unpack_range_{{ name }}(p_range gleaner.bulk_range, p_upto bigint) returns bigint[]
set enable_bitmapscan = off {{ act() }}
declare
    v_now    timestamptz := clock_timestamp();
    v_last   bigint := least(p_range.last, p_upto);
    v_stayed bigint[] := '{}';
    v_key    bigint;
    v_wait   interval;
begin
    begin
        update {{ table }} as q set {{ col.lease }} = 0
        where q.{{ key.column }} = any (array(
            select q.{{ key.column }} from {{ table }} as q
            where q.{{ key.column }} between p_range.first and v_last and {{ waiting }}
            order by q.{{ key.column }}
            for no key update skip locked));
    exception when others then
        perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
    end;
    if v_last < p_range.last then
        update gleaner.bulk_range as r set first = v_last + 1 where {{ this }};
    else
        delete from gleaner.bulk_range as r where {{ this }};
    end if;
    for v_key in
        select q.{{ key.column }} from {{ table }} as q
        where q.{{ key.column }} between p_range.first and v_last and {{ waiting }}
        order by q.{{ key.column }}
    loop
        v_wait := interval '0';
        perform from {{ table }} as q where q.{{ key.column }} = v_key and {{ waiting }} for no key update skip locked;
        if found then
            begin
                update {{ table }} as q set {{ col.lease }} = 0 where q.{{ key.column }} = v_key;
                continue when not exists (select from {{ table }} as q where q.{{ key.column }} = v_key and {{ waiting }});
                v_wait := gleaner.reject_row({{ name_literal }}, '', v_key::text, 'a trigger skipped the change');
            exception when others then
                perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
                v_wait := gleaner.reject_row({{ name_literal }}, '', v_key::text, sqlerrm);
            end;
        end if;
        v_stayed := v_stayed || v_key;
        insert into gleaner.bulk_range (queue, kind, class, due_at, first, last)
        values ({{ name_literal }}, p_range.kind, p_range.class, case when v_wait = interval '0' then p_range.due_at else v_now + v_wait end, v_key, v_key);
    end loop;
    return v_stayed;
end
{{ body }};
