{%- from "macros.sql" import act, in_zone, inner -%}
{%- if finished %}
{#- A row that ended for good, by alias. -#}
{%- macro final(a) -%}
({{ a }}.{{ status.column }} in ({{ status.final }}) or {{ a }}.{{ status.column }} = {{ status.failed }} and {{ a }}.{{ col.due }} is null)
{%- endmacro -%}
{%- set first = "-9223372036854775808" -%}
{%- set last = "9223372036854775807" -%}
{#- Notes where the range that is being walked now begins, and what is known of it. -#}
{%- macro remember(begins, oldest, unread_since) -%}
insert into gleaner.prune_mark (queue, begins, oldest, unread_since) values ({{ name_literal }}, {{ begins }}, {{ oldest }}, {{ unread_since }});
{%- endmacro -%}
/*
 * One step of gleaner.prune_{{ name }}: reads p_size rows from p_from on, deletes at most p_most that ended before p_before, and lets rows
 * whose bulk range is lost wait by themselves again.
 * Returns  how many rows were old, deleted, and left; the earliest end and creation among them; where the next step begins, and whether p_upto was reached.
 */
create or replace function gleaner.prune_slice_{{ name }}(
    p_from bigint, p_upto bigint, p_size integer, p_most integer, p_before timestamptz,
    out old integer, out gone integer, out stayed integer, out ended timestamptz, out created timestamptz, out next bigint, out whole boolean
) {{ inner() }}
declare
    v_read    integer;
    v_last    bigint;
    v_young   timestamptz;
    v_oldest  timestamptz;
    v_old     bigint[];
    v_in_range bigint[];
begin
    select count(*), max(s.id), min(s.ended) filter (where s.ended >= p_before), min(s.ended), min(s.created),
           coalesce(array_agg(s.id) filter (where s.ended < p_before), '{}'), array_agg(s.id) filter (where s.in_range)
    into v_read, v_last, v_young, v_oldest, created, v_old, v_in_range
    from (select q.{{ key.column }} as id,
                 case when {{ final("q") }} then {{ in_zone("q." ~ finished.column, finished.type) }} end as ended,
                 q.{{ col.lease }} = -1 and q.{{ status.column }} = {{ status.ready }} as in_range,
                 {% if created %}{{ in_zone("q." ~ created.column, created.type) }}{% else %}null::timestamptz{% endif %} as created
          from {{ table }} as q
          where q.{{ key.column }} between p_from and p_upto
          order by q.{{ key.column }}
          limit p_size) as s;
    whole := v_read < p_size or v_last = p_upto;
    next := case when whole and p_upto < {{ last }} then p_upto + 1 else coalesce(v_last + (v_last < {{ last }})::integer, p_from) end;
    stayed := v_read - cardinality(v_old);
    if cardinality(v_old) > p_most then
        whole := false;
        next := v_old[p_most + 1];
        v_old := v_old[:p_most];
    end if;
    if v_in_range is not null then
        update {{ table }} as q set {{ col.lease }} = 0
        where q.{{ key.column }} = any (array(
            select q.{{ key.column }}
            from {{ table }} as q
            where q.{{ key.column }} = any (v_in_range) and q.{{ col.lease }} = -1 and q.{{ status.column }} = {{ status.ready }}
              and not q.{{ key.column }} <@ ((select gleaner.range_keys({{ name_literal }})) + (select gleaner.batch_keys({{ name_literal }})))
            for no key update skip locked));
    end if;
    old := cardinality(v_old);
    gone := 0;
    if old > 0 then
        delete from {{ table }} as q
        where q.{{ key.column }} = any (array(
            select q.{{ key.column }}
            from {{ table }} as q
            where q.{{ key.column }} = any (v_old) and {{ final("q") }} and {{ in_zone("q." ~ finished.column, finished.type) }} < p_before
            for update skip locked));
        get diagnostics gone = row_count;
    end if;
    -- A row that is locked stays for the next call.
    stayed := stayed + old - gone;
    ended := case when gone < old then v_oldest else v_young end;
end
{{ body }};

/*
 * Deletes finished rows older than {{ "the declared retention, or than p_older_than" if retain else "p_older_than; nothing without it, for no retention is declared and the row is the record" }}.
 * At most p_limit rows per call, so that no call holds locks for long: repeat until it answers fewer.
 *
 * Walks    the keys, slice by slice. An index on the end of the work would cost every completion more than this costs in all.
 *          Of what it has read it notes the earliest end that stayed (gleaner.prune_mark), and does not look there again before
 *          that is too old: neither at rows that wait for ever, nor at the dead entries of rows that are gone.
 * Infers   that keys ascend with time: behind a slice of rows that are all too young it does not read, and looks at the rest
 *          once they have come of age. After twice the retention it reads to the end all the same: a row whose key is out of
 *          order, or whose end was written in the past, goes late and is not forgotten.
 * Mends    rows whose bulk range is lost, where it comes by.
 * Races    skip locked, rows and marks: two calls share the work, and what one is at is that one's to end.
 * Ends     with a short answer before its time when half of the caller's statement_timeout is over; the next call goes on there.
 */
create or replace function gleaner.prune_{{ name }}(p_limit integer default 1000, p_older_than interval default null) returns integer
-- A slice is a walk along the key, whatever the statistics say.
set enable_sort = off {{ act() }}
declare
    -- Read once: a clock that may move from row to row is nothing an index can be asked about.
    v_now        timestamptz := clock_timestamp();
    v_older_than interval := coalesce(p_older_than, {{ retain if retain else "null" }});
    v_before     timestamptz := v_now - v_older_than;
    v_until      timestamptz := statement_timestamp() + nullif(current_setting('statement_timeout')::interval, '0') / 2;
    v_count      integer := 0;
    v_begins     bigint;
    v_mark    gleaner.prune_mark;
    v_upto       bigint;
    v_from       bigint;
    v_size       integer;
    v_slice      record;
    -- Why the walk ends here: with the limit or the time, or with rows that are all too young.
    v_enough     boolean;
    v_too_young  boolean;
    -- What becomes one note: slices read one after the other, how many rows stayed of them, and the earliest end of those.
    v_part       bigint;
    v_stayed     integer;
    v_ended      timestamptz;
begin
    perform gleaner.operates({{ name_literal }}, {{ grant.operate }}, '{}');
    perform gleaner.prune_notes({{ name_literal }}, v_now);
    if v_older_than is null then
        return 0;
    end if;
    -- Asked first, for an insert would wait for a call that is about to write the same note.
    if not exists (select from gleaner.prune_mark as s where s.queue = {{ name_literal }} and s.begins = {{ first }}) then
        insert into gleaner.prune_mark (queue, begins, oldest, unread_since) values ({{ name_literal }}, {{ first }}, '-infinity', v_now)
        on conflict do nothing;
    end if;
    <<walk>>
    for v_begins in
        select s.begins from gleaner.prune_mark as s where s.queue = {{ name_literal }} and s.oldest < v_before order by s.oldest
    loop
        exit when v_count >= p_limit;
        select s.* into v_mark
        from gleaner.prune_mark as s
        where s.queue = {{ name_literal }} and s.begins = v_begins and s.oldest < v_before
        for update skip locked;
        continue when not found;
        delete from gleaner.prune_mark as s where s.queue = {{ name_literal }} and s.begins = v_begins;
        v_upto := coalesce((select min(s.begins) - 1 from gleaner.prune_mark as s where s.queue = {{ name_literal }} and s.begins > v_begins), {{ last }});
        v_from := v_begins;
        v_part := v_begins;
        v_stayed := 0;
        v_ended := v_now;
        -- As many rows as may go: more would be read for nothing where all are old.
        v_size := greatest(least(p_limit - v_count, 10000), 100);
        loop
            v_slice := gleaner.prune_slice_{{ name }}(v_from, v_upto, v_size, p_limit - v_count, v_before);
            v_count := v_count + v_slice.gone;
            v_stayed := v_stayed + v_slice.stayed;
            v_ended := least(v_ended, v_slice.ended);
            v_enough := v_count >= p_limit or coalesce(clock_timestamp() > v_until, false);
            v_too_young := coalesce(v_slice.created >= v_before and v_now < v_mark.unread_since + 2 * v_older_than, false);
            -- A part of which nothing stayed needs no note of its own: what may yet come there belongs to the part before.
            if v_slice.whole or v_enough or v_too_young or v_stayed >= 10000 then
                if v_slice.next > v_part and (v_stayed > 0 or v_part = {{ first }}) then
                    {{ remember("v_part", "v_ended", "null") }}
                end if;
                v_part := v_slice.next;
                v_stayed := 0;
                v_ended := v_now;
            end if;
            if v_slice.whole then
                if v_upto = {{ last }} then
                    {{ remember("v_slice.next", "v_now", "v_now") }}
                end if;
                exit;
            elsif v_enough then
                {{ remember("v_slice.next", "v_mark.oldest", "v_mark.unread_since") }}
                exit walk;
            elsif v_too_young then
                -- Due by then, however young those are who come before.
                {{ remember("v_slice.next", "least(v_slice.created, v_mark.unread_since + v_older_than)", "v_mark.unread_since") }}
                exit;
            end if;
            v_from := v_slice.next;
            v_size := case when v_slice.old > 0 then greatest(least(p_limit - v_count, 10000), 100) else least(2 * v_size, 10000) end;
        end loop;
    end loop;
    perform gleaner.note_prune({{ name_literal }}, v_count, v_older_than);
    return v_count;
end
{{ body }};
{%- endif %}
