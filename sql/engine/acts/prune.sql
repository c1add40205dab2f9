{%- from "macros.sql" import definer, quick_definer, in_zone -%}
{%- if finished %}
{#- A row that ended for good, by alias. -#}
{%- macro final(a) -%}
({{ a }}.{{ status.column }} in ({{ status.final }}) or {{ a }}.{{ status.column }} = {{ status.failed }} and {{ a }}.{{ col.due }} is null)
{%- endmacro -%}
{%- set first = "-9223372036854775808" -%}
{%- set last = "9223372036854775807" -%}
{#- Notes where the stretch that is being walked now begins, and what is known of it. -#}
{%- macro remember(begins, oldest, unread_since) -%}
insert into gleaner.stretch (queue, begins, oldest, unread_since) values ('{{ name }}', {{ begins }}, {{ oldest }}, {{ unread_since }});
{%- endmacro -%}
/*
 * Deletes finished rows older than {{ "the declared retention, or than p_older_than" if retain else "p_older_than; nothing without it, for no retention is declared and the row is the record" }}.
 * At most p_limit rows per call, so that no call holds locks for long: repeat until it answers fewer.
{%- if sheaf %}
 *
 * Walks    the keys, slice by slice. An index on the end of the work would cost every completion more than this costs in all.
 *          Of what it has read it notes the earliest end that stayed (gleaner.stretch), and does not look there again before
 *          that is too old: neither at rows that wait for ever, nor at the dead entries of rows that are gone.
 * Infers   that keys ascend with time: behind a slice of rows that are all too young it does not read, and looks at the rest
 *          once they have come of age. After twice the retention it reads to the end all the same: a row whose key is out of
 *          order, or whose end was written in the past, goes late and is not forgotten.
 * Mends    rows that say they lie in a swath and do not, where it comes by.
 * Races    skip locked, rows and stretches: two calls share the work, and what one is at is that one's to end.
 * Ends     with a short answer before its time when half of the caller's statement_timeout is over; the next call goes on there.
{%- endif %}
 */
create or replace function gleaner.prune_{{ name }}(p_limit integer default 1000, p_older_than interval default null) returns integer
language plpgsql
{%- if sheaf %}
{{ quick_definer() }}
-- A slice is a walk along the key, whatever the statistics say, and none is worth compiling.
set enable_sort = off
set jit = off
{%- else %}
{{ definer() }}
{%- endif %}
as $prune$
declare
    -- Read once: a clock that may move from row to row is nothing an index can be asked about.
    v_now        timestamptz := clock_timestamp();
    v_older_than interval := coalesce(p_older_than, {{ retain if retain else "null" }});
{%- if sheaf %}
    v_before     timestamptz := v_now - v_older_than;
    v_until      timestamptz := statement_timestamp() + nullif(current_setting('statement_timeout')::interval, '0') / 2;
    v_count      integer := 0;
    v_begins     bigint;
    v_stretch    gleaner.stretch;
    v_upto       bigint;
    -- The slice: where it begins, how many rows it may have, how many it had, what they say, and where the next one begins.
    v_from       bigint;
    v_slice      integer;
    v_read       integer;
    v_last       bigint;
    v_young      timestamptz;
    v_oldest     timestamptz;
    v_created    timestamptz;
    v_old        bigint[];
    v_lying      bigint[];
    v_gone       integer;
    v_next       bigint;
    -- Why the walk ends here: with the stretch, with the limit or the time, or with rows that are all too young.
    v_whole      boolean;
    v_enough     boolean;
    v_too_young  boolean;
    -- What becomes one note: slices read one after the other, how many rows stayed of them, and the earliest end of those.
    v_part       bigint;
    v_stayed     integer;
    v_ended      timestamptz;
{%- else %}
    v_before     {{ finished.type }};
    v_count      integer;
{%- endif %}
begin
    -- Evidence and lost answers are kept for a week, whatever the queue keeps.
    delete from gleaner.request as r where r.at < v_now - interval '1 day';
    delete from gleaner.late_result as l where l.queue = '{{ name }}' and l.at < v_now - interval '7 days';
    delete from gleaner.offender as o where o.queue = '{{ name }}' and o.until < v_now;
    if v_older_than is null then
        return 0;
    end if;
{%- if sheaf %}
    -- Asked first, for an insert would wait for a call that is about to write the same note.
    if not exists (select from gleaner.stretch as s where s.queue = '{{ name }}' and s.begins = {{ first }}) then
        insert into gleaner.stretch (queue, begins, oldest, unread_since) values ('{{ name }}', {{ first }}, '-infinity', v_now)
        on conflict do nothing;
    end if;
    <<walk>>
    for v_begins in
        select s.begins from gleaner.stretch as s where s.queue = '{{ name }}' and s.oldest < v_before order by s.oldest
    loop
        exit when v_count >= p_limit;
        select s.* into v_stretch
        from gleaner.stretch as s
        where s.queue = '{{ name }}' and s.begins = v_begins and s.oldest < v_before
        for update skip locked;
        continue when not found;
        delete from gleaner.stretch as s where s.queue = '{{ name }}' and s.begins = v_begins;
        v_upto := coalesce((select min(s.begins) - 1 from gleaner.stretch as s where s.queue = '{{ name }}' and s.begins > v_begins), {{ last }});
        v_from := v_begins;
        v_part := v_begins;
        v_stayed := 0;
        v_ended := v_now;
        -- As many rows as may go: more would be read for nothing where all are old.
        v_slice := greatest(least(p_limit - v_count, 10000), 100);
        loop
            select count(*), max(s.id), min(s.ended) filter (where s.ended >= v_before), min(s.ended), min(s.created),
                   coalesce(array_agg(s.id) filter (where s.ended < v_before), '{}'), array_agg(s.id) filter (where s.lies)
            into v_read, v_last, v_young, v_oldest, v_created, v_old, v_lying
            from (select q.{{ key.column }} as id,
                         case when {{ final("q") }} then {{ in_zone("q." ~ finished.column, finished.type) }} end as ended,
                         q.{{ col.lease }} = -1 and q.{{ status.column }} = {{ status.ready }} as lies,
                         {{ in_zone("q." ~ created.column, created.type) if created else "null::timestamptz" }} as created
                  from {{ table }} as q
                  where q.{{ key.column }} between v_from and v_upto
                  order by q.{{ key.column }}
                  limit v_slice) as s;
            v_whole := v_read < v_slice or v_last = v_upto;
            v_next := case when v_whole and v_upto < {{ last }} then v_upto + 1 else coalesce(v_last + (v_last < {{ last }})::integer, v_from) end;
            v_stayed := v_stayed + v_read - cardinality(v_old);
            if cardinality(v_old) > p_limit - v_count then
                v_whole := false;
                v_next := v_old[p_limit - v_count + 1];
                v_old := v_old[:p_limit - v_count];
            end if;
            if v_lying is not null then
                -- Restored or copied without its swath a row would lie there for ever: it stands alone again.
                update {{ table }} as q set {{ col.lease }} = 0
                where q.{{ key.column }} = any (array(
                    select q.{{ key.column }}
                    from {{ table }} as q
                    where q.{{ key.column }} = any (v_lying) and q.{{ col.lease }} = -1 and q.{{ status.column }} = {{ status.ready }}
                      and not q.{{ key.column }} <@ ((select gleaner.swaths('{{ name }}')) + (select gleaner.sheaves('{{ name }}')))
                    for no key update skip locked));
            end if;
            v_gone := 0;
            if cardinality(v_old) > 0 then
                delete from {{ table }} as q
                where q.{{ key.column }} = any (array(
                    select q.{{ key.column }}
                    from {{ table }} as q
                    where q.{{ key.column }} = any (v_old) and {{ final("q") }}
                      and {{ in_zone("q." ~ finished.column, finished.type) }} < v_before
                    for update skip locked));
                get diagnostics v_gone = row_count;
            end if;
            v_count := v_count + v_gone;
            -- What somebody has locked stays for the next call.
            v_stayed := v_stayed + cardinality(v_old) - v_gone;
            v_ended := least(v_ended, case when v_gone < cardinality(v_old) then v_oldest else v_young end);

            v_enough := v_count >= p_limit or coalesce(clock_timestamp() > v_until, false);
            v_too_young := coalesce(v_created >= v_before and v_now < v_stretch.unread_since + 2 * v_older_than, false);
            -- A part of which nothing stayed needs no note of its own: what may yet come there belongs to the part before.
            if v_whole or v_enough or v_too_young or v_stayed >= 10000 then
                if v_next > v_part and (v_stayed > 0 or v_part = {{ first }}) then
                    {{ remember("v_part", "v_ended", "null") }}
                end if;
                v_part := v_next;
                v_stayed := 0;
                v_ended := v_now;
            end if;
            if v_whole then
                if v_upto = {{ last }} then
                    {{ remember("v_next", "v_now", "v_now") }}
                end if;
                exit;
            elsif v_enough then
                {{ remember("v_next", "v_stretch.oldest", "v_stretch.unread_since") }}
                exit walk;
            elsif v_too_young then
                -- Due by then, however young those are who come before.
                {{ remember("v_next", "least(v_created, v_stretch.unread_since + v_older_than)", "v_stretch.unread_since") }}
                exit;
            end if;
            v_from := v_next;
            v_slice := case when cardinality(v_old) > 0 then greatest(least(p_limit - v_count, 10000), 100) else least(2 * v_slice, 10000) end;
        end loop;
    end loop;
    return v_count;
{%- else %}
    v_before := v_now{% if finished.type == "timestamp without time zone" %} at time zone {{ zone }}{% endif %} - v_older_than;
    delete from {{ table }} as q
    where q.{{ key.column }} = any (array(
        select q.{{ key.column }}
        from {{ table }} as q
        where q.{{ finished.column }} < v_before
          and {{ final("q") }}
        limit p_limit
        for update skip locked));
    get diagnostics v_count = row_count;
    return v_count;
{%- endif %}
end
$prune$;
{%- endif %}
