{%- from "macros.sql" import definer -%}
{%- if sheaf %}
{%- set lying -%}q.{{ col.lease }} = -1 and q.{{ status.column }} = {{ status.ready }}{%- endset -%}
{%- set this -%}s.queue = '{{ name }}' and s.kind = p_swath.kind and s.class = p_swath.class and s.due_at = p_swath.due_at and s.first = p_swath.first{%- endset -%}
/*
 * Lets the rows of a swath stand alone, up to the key p_upto: each gets its entry in the line, and what is left stays a swath. For claims
 * of few rows, which would otherwise stand in each other's way, and for a queue that is to have no swaths any more.
 * Calls    with the swath's lock.
 * Races    skip locked: a row that somebody is about to change stays where it is, in a swath of its own.
 * Refuses  nothing: a row that refuses the change does so too, is noted as an offender and tried again in a minute.
 * Returns  the keys of those that stayed.
 */
create or replace function gleaner.spread_{{ name }}(p_swath gleaner.swath, p_upto bigint) returns bigint[]
language plpgsql
{{ definer() }}
-- Only the key tells which rows: of the length of a piece of it the planner knows nothing.
set enable_seqscan = off
set enable_bitmapscan = off
as $spread$
declare
    v_now    timestamptz := clock_timestamp();
    v_last   bigint := least(p_swath.last, p_upto);
    v_stayed bigint[] := '{}';
    v_key    bigint;
    v_reason text;
begin
    begin
        update {{ table }} as q set {{ col.lease }} = 0
        where q.{{ key.column }} = any (array(
            select q.{{ key.column }} from {{ table }} as q
            where q.{{ key.column }} between p_swath.first and v_last and {{ lying }}
            order by q.{{ key.column }}
            for no key update skip locked));
    exception when others then
        -- Trouble of the moment is the caller's to retry; the rest is a row's fault.
        if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
            raise;
        end if;
    end;
    if v_last < p_swath.last then
        update gleaner.swath as s set first = v_last + 1 where {{ this }};
    else
        delete from gleaner.swath as s where {{ this }};
    end if;
    for v_key in
        select q.{{ key.column }} from {{ table }} as q
        where q.{{ key.column }} between p_swath.first and v_last and {{ lying }}
        order by q.{{ key.column }}
    loop
        v_reason := null;
        perform from {{ table }} as q where q.{{ key.column }} = v_key and {{ lying }} for no key update skip locked;
        if found then
            -- A check that does not hold, a trigger that raised or swallowed the change: one by one, so that the others are worked.
            begin
                update {{ table }} as q set {{ col.lease }} = 0 where q.{{ key.column }} = v_key;
                continue when not exists (select from {{ table }} as q where q.{{ key.column }} = v_key and {{ lying }});
                v_reason := 'a trigger swallowed the change';
            exception when others then
                if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                    raise;
                end if;
                v_reason := sqlerrm;
            end;
            insert into gleaner.offender as o (queue, key, until, reason)
            values ('{{ name }}', v_key::text, v_now + interval '1 minute', v_reason)
            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
        end if;
        v_stayed := v_stayed || v_key;
        insert into gleaner.swath (queue, kind, class, due_at, first, last)
        values ('{{ name }}', p_swath.kind, p_swath.class, case when v_reason is null then p_swath.due_at else v_now + interval '1 minute' end, v_key, v_key);
    end loop;
    return v_stayed;
end
$spread$;
{%- endif %}
