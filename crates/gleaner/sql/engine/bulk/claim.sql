{%- from "macros.sql" import act, enter, is_paused -%}
{%- from "take.sql" import take -%}
/*
 * Takes up to p_limit rows for p_agent, in order of due time, then key{% if priority %}; urgent classes have a head start{% endif %}.
 *
 * Changes  status to {{ status.taken }}, a new lease, due_at to the end of the hold; counts a lost lease, and ends rows that lost too many.
 * Batch    {{ bulk.from }} rows and more that no act has written yet are not changed at all: one record holds them together, and their lease
 *          is its id, negated. They are returned as if each had been claimed alone.
 * Range    rows that were enqueued together wait as one record, too: its head is held as it is, or, for fewer rows, unpacked.
 * Races    skip locked: no row is handed out twice and no caller waits for another.
 * Returns  the rows as they now stand, lease included; none when nothing is due. A short answer is no proof of emptiness.
 * Agent    null: the caller is known by its sign-in alone.
 * Early    trusted callers also get rows that wait and come due within p_early; below zero: only what has been due for so long.
 * Repeats  with the same p_request the same rows come back, for as long as their leases stand.
 */
create or replace function gleaner.claim_{{ name }}(
    p_agent text, p_limit integer default 1,{% if kind %} p_kinds text[] default null,{% endif %} p_request uuid default null,
    p_started boolean default false, p_hold interval default null, p_early interval default '0'
) returns setof {{ table }}
{{ act() }}
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now         timestamptz := clock_timestamp();
    v_session     text := gleaner.begin_claim({{ name_literal }}, p_agent);
    v_by          timestamptz := v_now + case when p_early <= interval '0' or gleaner.is_trusted() then p_early else interval '0' end;
    v_lease       bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_left        integer := least(coalesce(p_limit, 1), 10000);
    v_asked       integer; v_seen integer; v_count integer; v_total integer := 0; v_tries integer := 0; v_alone boolean := false;
    v_many        boolean := v_left >= {{ bulk.from }} and gleaner.in_shape_{{ name }}();
    v_batches     int8multirange := '{}'; v_look record;
    v_range       gleaner.bulk_range; v_locked gleaner.bulk_range; v_elsewhere bigint[] := '{}';
    v_key         bigint; v_keys bigint[]; v_held_before smallint[]; v_fresh boolean[]; v_passed bigint[] := '{}'; v_taken bigint[] := '{}'; v_found record; v_chosen record;
    v_plain       double precision := coalesce(nullif(current_setting('gleaner.plain_{{ name }}', true), ''), '0');
{%- if kind %}
    v_kinds       {{ kind.type }}[];
{%- endif %}
begin
    {{ enter() }}
    if p_request is not null and gleaner.is_repeated({{ name_literal }}, p_request) then
        return query execute 'select * from gleaner.repeat_{{ name }}($1, $2)' using p_request, v_session; return;
    end if;
{%- if kind %}
    if current_setting('request.jwt.claims', true) <> '' then
        p_kinds := gleaner.scoped_kinds({{ name_literal }}, p_kinds);
    end if;
    if p_kinds is not null then
        v_kinds := array(select distinct k from unnest(p_kinds) as k);
    end if;
{%- endif %}
    if abs(v_plain) < extract(epoch from v_now) then
        v_plain := gleaner.check_plain('gleaner.plain_{{ name }}', v_now, {{ plain_arguments }});
    end if;
    if p_limit = 1 and v_plain > 0 and coalesce(current_setting('gleaner.cursor_{{ name }}', true), '') = '' then
        -- One row, the usual claim. What is not found so, such as a row that had a holder, is looked for below.
        v_key := gleaner.take_first_{{ name }}(v_by{% if kind %}, v_kinds{% endif %}, p_agent, v_session, v_now, p_hold, p_started);
        return query select q.* from {{ table }} as q where q.{{ key.column }} = v_key;
        if found then v_left := 0; v_total := 1; v_taken := array[v_key]; end if;
    end if;
    while v_left > 0 and not v_alone and v_tries < 100 loop
        exit when {{ is_paused() }};
        v_asked := case when v_plain <= 0 and v_tries % 25 > 0 then greatest(v_left, 100) else v_left end;
        v_range := gleaner.find_range_{{ name }}({% if kind %}v_kinds::text[], {% endif %}v_now, v_by, v_elsewhere);
        v_found := gleaner.find_{{ name }}(v_asked, v_now, v_by, v_passed{% if kind %}, v_kinds{% endif %}, v_batches, v_range);
        v_keys := v_found.keys; v_held_before := v_found.held_before; v_fresh := v_found.fresh; v_seen := v_found.seen;
        -- After the lock: rows that are locked now cannot be put in a batch by others any more, so this look is the last word.
        v_look := gleaner.look_at_batches({{ name_literal }}, v_now); v_batches := v_look.keys;
        if v_look.ran_out then
            perform gleaner.unbatch_{{ name }}(null, array(
                select b.id from gleaner.batch_lease as b where b.queue = {{ name_literal }} and b.due_at <= v_now for update skip locked));
            perform set_config('gleaner.cursor_{{ name }}', '', false);
            v_tries := v_tries + 25; continue;
        end if;
        if v_seen > 0 and true = any (v_fresh) and exists (select from unnest(v_keys, v_fresh) as k (id, fresh) where k.fresh and v_batches @> k.id) then
            perform set_config('gleaner.cursor_{{ name }}', '', false);
            v_tries := v_tries + 1; continue;
        end if;
        if v_seen = 0 then
            exit when v_range.first is null;
            select r.* into v_locked from gleaner.bulk_range as r
            where r.queue = {{ name_literal }} and r.kind = v_range.kind and r.class = v_range.class and r.due_at = v_range.due_at and r.first = v_range.first
            for update skip locked;
            if not found then
                v_elsewhere := v_elsewhere || v_range.first;
            elsif not v_many then
                v_elsewhere := v_elsewhere || gleaner.unpack_range_{{ name }}(v_locked, v_locked.first + 127);
                perform set_config('gleaner.cursor_{{ name }}', '', false);
            else
                return query select * from gleaner.hold_range_{{ name }}(v_locked, v_left, p_agent, v_session, v_now, p_hold, p_started);
                get diagnostics v_count = row_count;
                if p_request is not null then
                    v_taken := v_taken || array(
                        select q.{{ key.column }} from {{ table }} as q
                        where q.{{ key.column }} between v_locked.first and least(v_locked.last, v_locked.first + v_left - 1) and q.{{ col.lease }} = -1 and q.{{ status.column }} = {{ status.ready }}
                        order by q.{{ key.column }});
                end if;
                v_total := v_total + v_count; v_left := v_left - v_count;
            end if;
            continue;
        end if;
        if 0 <> any (v_held_before) then
            v_tries := v_tries + 25;
            v_chosen := gleaner.choose_rows(v_held_before, v_left, v_total);
            perform gleaner.lose_{{ name }}(q) from unnest(v_chosen.ended) as p join {{ table }} as q on q.{{ key.column }} = any (array[v_keys[p]]);
            v_passed := v_passed || array(select v_keys[p] from unnest(v_chosen.passed) as p);
            v_fresh := array(select v_fresh[p] from unnest(v_chosen.places) as p);
            v_keys := array(select v_keys[p] from unnest(v_chosen.places) as p);
            v_alone := v_chosen.alone; v_left := v_chosen.room;
            -- What was found and not chosen must be found again.
            if cardinality(v_keys) < v_seen then perform set_config('gleaner.cursor_{{ name }}', '', false); end if;
        end if;
        if v_many and cardinality(v_keys) >= {{ bulk.from }} and true = all (v_fresh) then
            return query select * from gleaner.hold_batch_{{ name }}(v_keys, p_agent, v_session, v_now, p_hold, p_started);
        elsif v_many and v_plain > 0 and not v_alone and cardinality(array_positions(v_fresh, true)) >= {{ bulk.from }} then
            return query select * from gleaner.hold_mixed_{{ name }}(v_keys, v_fresh, p_agent, v_session, v_now, p_hold, p_started);
        elsif v_plain > 0 then
            return query
            {{ take("p_started or v_alone") | indent(12) }}
            returning q.*;
        else
            -- By `execute`: a plan that was kept would not notice that the table got another column.
            return query execute 'select * from gleaner.take_each_{{ name }}($1, $2, $3, $4, $5, $6, $7)'
            using v_keys, v_left, p_agent, v_session, v_now, p_hold, p_started or v_alone;
        end if;
        get diagnostics v_count = row_count;
        v_alone := v_alone and v_count > 0; v_tries := v_tries + (v_count < least(v_seen, v_left))::integer;
        v_total := v_total + v_count; v_left := v_left - v_count; v_taken := v_taken || v_keys;
        exit when v_seen < v_asked and v_range.first is null;
    end loop;
    if p_request is not null and v_total > 0 then perform gleaner.remember_{{ name }}(p_request, v_taken, v_session, v_now); end if;
end
{{ body }};
