{%- from "macros.sql" import quick_definer, tenant_param, tenant_is, in_lane, waiting_since, same_caller, untouched -%}
{%- from "probe.sql" import probe, look_at_sheaves -%}
{%- from "take.sql" import bound_row, take, bind -%}
{%- from "swath.sql" import pick_swath, take_swath -%}
{#- Inside `exception when others`: trouble of the moment is the caller's to retry; the rest is the row's fault. -#}
{%- macro unless_momentary() %}
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
{%- endmacro -%}
{#- A row that refused is stepped over, now and for a while. A hundred a call: where all refuse, a claim must still end. -#}
{%- macro note(key) %}
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || {{ key }};
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('{{ name }}', {{ key }}::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
{%- endmacro -%}
{%- macro mend(keys, times) %}
                            update {{ table }} as q
                            set {{ col.open }} = u.open_at
                            from unnest({{ keys }}, {{ times }}) as u (id, open_at)
                            where {{ tenant_is("q") }}q.{{ key.column }} = u.id
{%- endmacro -%}
{#- The rows of a repeated request that its caller still holds, in the order they were given out; with `bound` those of sheaves as well. -#}
{%- macro give_again(bound) %}
            return query
            select {% if bound %}{{ bound_row("-s.id", "s.due_at", "s.deadline_at", "s.begun @> q." ~ key.column, "s.agent", "s.session", true) }}{% else %}q.*{% endif %}
            from gleaner.request as r
            cross join lateral unnest(r.keys, r.leases) with ordinality as k (id, lease, n)
            join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = k.id::{{ key.type }}
{%- if bound %}
            left join gleaner.sheaf as s on s.id = -k.lease and s.queue = '{{ name }}' and s.keys @> k.id::{{ key.type }}
{%- endif %}
            -- Whoever knows another's request is not given its rows.
            where r.queue = '{{ name }}' and r.id = p_request
              and (q.{{ col.lease }} = k.lease and q.{{ status.column }} in ({{ status.held }}) and {{ same_caller("q") }}
{%- if bound %}
                   or s.id is not null and {{ untouched("q") }} and q.{{ status.column }} = {{ status.ready }} and {{ same_caller("s") }}
{%- endif -%}
              )
            order by k.n;
{%- endmacro -%}
{#- Sheaves give rows out in the shape the table had when this was rendered; a table that grew since is claimed row by row. -#}
{%- set in_shape -%}
array[{{ sheaf.names }}] = array(
        select a.attname::text from pg_attribute as a
        where a.attrelid = {{ table_literal }}::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum)
{%- endset -%}
/*
 * Takes up to p_limit rows for p_agent{% if owner %}: its owner's own first, then those that belong to nobody, then what other
 * owners left standing longer than they allow{% endif %}. Each probe runs on its own index, in order of due time, then key.
 *
 * Changes  status to running, a new lease, due_at to the end of the hold; counts a lost lease, and buries what lost too many.
 * Races    skip locked: no row is handed out twice and no caller waits for another.
 * Returns  the rows as they now stand, lease included; none when nothing is due. A short answer is no proof of emptiness.
 * Agent    null: the caller is known by its sign-in alone and will end the work by plain updates, as the specs' programs do.
{%- if sheaf %}
 * Sheaf    {{ sheaf.from }} rows and more that nobody ever touched are not changed at all: one record holds them together, and
 *          their lease is its id, negated. They are returned as if each had been claimed alone.
 * Swath    rows that were put in together wait by one record, too: its head is bound as it lies, or, for fewer rows, spread.
{%- endif %}
 * Repeats  with the same p_request the same rows come back, for as long as their leases stand.
 */
create or replace function gleaner.claim_{{ name }}(
    {{ tenant_param() }}p_agent text,
    p_limit integer default 1,
{%- if owner %}
    p_owner {{ owner.type }} default null,
    p_classes text[] default '{own,global,stale}',
{%- endif %}
{%- if kind %}
    p_kinds text[] default null,
{%- endif %}
    p_request uuid default null,
    p_started boolean default false,
    p_hold interval default null,
    p_early interval default '0'
{%- if holder.by %},
    p_holder text default null
{%- endif %}
) returns setof {{ table }}
language plpgsql
{{ quick_definer() }}
-- Joins follow arrays of keys: one index descent each, in the order of the array, under every plan.
set enable_hashjoin = off
set enable_mergejoin = off
-- Nor does one begin at a table that was nearly empty when it was last analysed, or read a piece of the key by reading all.
set enable_seqscan = off
{%- if sheaf %}
set enable_bitmapscan = off
{%- endif %}
as $claim$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now        timestamptz := clock_timestamp();
    v_by         timestamptz := v_now + p_early;
    v_lease      bigint      := (extract(epoch from v_now) * 1000000)::bigint;
    v_session    text        := gleaner.caller_session();
    v_trusted    boolean     := p_request is not null and gleaner.is_trusted();
    v_left       integer     := least(p_limit, 10000);
    v_total      integer     := 0;
    v_class      text;
    v_keys       {{ key.type }}[];
    v_odd        boolean[];
    v_at         timestamptz[];
    v_lane       integer[];
    v_fine       {{ key.type }}[];
    v_passed     {{ key.type }}[];
    v_taken      {{ key.type }}[] := '{}';
    v_buried     integer;
    v_count      integer;
    v_alone      boolean := false;
    v_stepped    boolean;
    v_rounds     integer;
    v_lane_kind  {{ kind.type if kind else "text" }}[];
    v_lane_class integer[];
    v_take       integer[];
    v_floor_at   timestamptz[];
    v_floor_key  {{ key.type }}[];
    v_floors     jsonb := coalesce(nullif(current_setting('gleaner.floor_{{ name }}', true), '')::jsonb, '{}');
    v_floor      jsonb;
    v_floored    boolean;
{%- if kind %}
    v_kinds_until double precision;
{%- endif %}
    v_place      text;
    v_hidden     boolean := false;
    v_begun      timestamptz;
    v_slow       interval;
    v_row        {{ table }};
    v_reason     text;
    v_refusals   integer := 0;
    -- Nothing can refuse: rows are returned as they change. Otherwise each refusal is looked at.
    v_plain      boolean{% if not sheaf %} := {{ plain }}{% endif %};
    v_lost       integer;
{%- if sheaf %}
    v_sheaves    int8multirange;
    v_bound      int8multirange;
    v_stalks     {{ key.type }}[];
    v_others     {{ key.type }}[];
    v_fresh      integer[];
    -- Where the locked rows lie: they cannot move. Null when the other arrays no longer speak of the same rows.
    v_tids       tid[];
    v_lapsed     boolean;
    v_dropped    integer;
    v_looks      integer := 0;
    v_sheaf      bigint;
    v_first      bigint;
    v_last       bigint;
    v_piece      boolean;
    v_due        timestamptz := v_now + least(coalesce(p_hold, {{ hold }}), {{ deadline }});
    v_deadline   timestamptz := v_now + {{ deadline }};
    v_swath      gleaner.swath;
    v_locked     gleaner.swath;
    v_swath_floor jsonb;
    v_picked     interval;
{%- if kind %}
    v_lying      text[];
{%- endif %}
    v_elsewhere  bigint[] := '{}';
    -- Where the swath of this claim stands in the line: what is looked for row by row comes before it.
    v_before_at  timestamptz;
    v_before_key bigint;
    v_oldest     xid8 := coalesce(nullif(current_setting('gleaner.sheaf_{{ name }}', true), ''), '0')::xid8;
    v_binds      boolean := p_limit >= {{ sheaf.from }} and {{ in_shape }};
{%- endif %}
{%- if kind %}
    v_kinds      {{ kind.type }}[] := p_kinds::{{ kind.type }}[];
{%- endif %}
{%- if owner %}
    v_classes    text[] := array(select c from unnest(array['own', 'global', 'stale']) as c where c = any (p_classes));
    v_refused    boolean := false;
    v_mended     {{ key.type }}[];
    v_mended_at  timestamptz[];
    v_not_now    {{ key.type }}[];
{%- else %}
    v_classes    text[] := '{global}';
{%- endif %}
{%- if holder.by %}
    v_holder     {{ holder.by.type }};
{%- endif %}
begin
    perform gleaner.require_read_committed();
    if p_agent = '' then
        raise exception 'the agent id is empty' using errcode = 'GL002',
            hint = 'Pass a text that is new at each process start, or null to be known by your sign-in alone and end the work by plain updates.';
    end if;
    -- A worker's key may be for some queues and kinds alone. Direct logins have no key, and pay nothing for the question.
    if current_setting('request.jwt.claims', true) <> '' then
{%- if kind %}
        p_kinds := gleaner.scoped_kinds('{{ name }}', p_kinds);
        v_kinds := p_kinds::{{ kind.type }}[];
{%- else %}
        perform gleaner.scoped_kinds('{{ name }}', null);
{%- endif %}
    end if;
{%- if owner %}
    p_owner := gleaner.own_{{ name }}(p_owner);
{%- endif %}
{%- if holder.by %}
{%- if holder.by.type == "uuid" %}
    v_holder := coalesce(p_holder::uuid, gleaner.caller_uid());
{%- if owner.user %}
    if v_holder is null and p_owner is not null then
        select o.{{ owner.user }} into v_holder from {{ owner.table }} as o where o.{{ owner.key }} = p_owner;
    end if;
{%- endif %}
{%- else %}
    v_holder := coalesce(p_holder, p_agent);
{%- endif %}
{%- endif %}

    if p_request is not null then
        insert into gleaner.request (queue, id, at) values ('{{ name }}', p_request, v_now) on conflict do nothing;
        if not found then
            -- One that was given nothing yet looks again: a claim that waits does. The lock lets the second of two at once see
            -- what the first was given.
            perform from gleaner.request as r
            where r.queue = '{{ name }}' and r.id = p_request and r.keys = '{}'
            for update;
        end if;
        if not found then
{%- if sheaf %}
            if {{ in_shape }} then
{{- give_again(true) | replace("            ", "                ") }}
                return;
            end if;
{%- endif %}
{{- give_again(false) }}
            return;
        end if;
    end if;
{%- if sheaf %}

{{- look_at_sheaves("v_sheaves") | replace("                        ", "    ") }}
    if v_lapsed then
        -- The lease of a sheaf that ran out becomes its rows' own, and those are found below as any other's.
        for v_sheaf in
            select s.id from gleaner.sheaf as s where s.queue = '{{ name }}' and s.due_at <= v_now order by s.id for update skip locked
        loop
            perform gleaner.loosen_{{ name }}(null, v_sheaf);
        end loop;
        v_sheaf := null;
{{- look_at_sheaves("v_sheaves") | replace("                        ", "        ") }}
    end if;
    perform set_config('gleaner.sheaf_{{ name }}', v_oldest::text, false);
{%- endif %}

    -- Rows that refused a change a moment ago are stepped over for a while.
    v_passed := array(select o.key::{{ key.type }} from gleaner.offender as o where o.queue = '{{ name }}' and o.until > v_now);

    <<passes>>
    for v_pass in 1 .. 2 loop
        -- Second pass: nothing was found, but a floor hid part of the line. A floor never reports "empty".
        if v_pass = 2 then
            exit when v_total > 0 or not v_hidden;
            v_floors := '{}';
        end if;

        <<classes>>
        foreach v_class in array v_classes{% if owner %} || '{shared}'::text[]{% endif %} loop
{%- if owner %}
            continue when v_class = 'own' and p_owner is null;
            -- The exact look, owner by owner: needed when policies changed after rows were stamped with them.
            continue when v_class = 'shared' and ('stale' <> all (p_classes) or not (v_refused or v_total = 0));
{%- endif %}

            v_rounds := 0;
            <<fill>>
            loop
                exit passes when v_left <= 0 or v_alone or v_refusals >= 100;
                v_stepped := false;
{%- if sheaf %}
{{- pick_swath() }}
{%- endif %}
                v_begun := clock_timestamp();
                v_place := v_class{% if owner %} || case when v_class = 'own' then ':' || p_owner::text else '' end{% endif %}{% if tenant %} || '@' || p_tenant::text{% endif %};
                v_floor := case when (v_floors #>> array[v_place, 'until'])::double precision > extract(epoch from v_begun)
                                then v_floors #> array[v_place, 'lanes'] end;
                v_floored := v_floor is not null;
                v_hidden := v_hidden or v_floored;
{%- if owner %}
                if v_class = 'own' then
{{- probe("own", "q." ~ owner.column ~ " = p_owner", "q." ~ col.due) }}
                elsif v_class = 'global' then
{{- probe("global", "q." ~ owner.column ~ " is null", "q." ~ col.due) }}
                elsif v_class = 'stale' then
{{- probe("stale", "q." ~ owner.column ~ " is not null and q." ~ col.open ~ " is not null", "q." ~ col.open) }}
                    -- open_at only orders the line. Whether the row may be taken is for its owner's row to say, now.
                    -- One's own come first or not at all: what was passed over in its class does not follow behind global work.
                    select coalesce(array_agg(p.id) filter (where p.open is not true), '{}'),
                           coalesce(array_agg(p.open_at) filter (where p.open is not true), '{}'),
                           coalesce(array_agg(p.id) filter (where p.open is not true or p.own), '{}')
                    into v_mended, v_mended_at, v_not_now
                    from (
                        select k.id,
                               q.{{ owner.column }} is not distinct from p_owner and 'own' = any (p_classes) as own,
                               q.{{ owner.column }} is not distinct from p_owner or ({{ owner.shared }} and {{ waiting_since("q") }} + {{ owner.open_after }} <= v_by) as open,
                               case when {{ owner.shared }} then greatest({{ waiting_since("q") }} + {{ owner.open_after }}, q.{{ col.due }}) end as open_at
                        from unnest(v_keys) as k (id)
                        join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = k.id
{%- if owner.table %}
                        left join {{ owner.table }} as o on o.{{ owner.key }} = q.{{ owner.column }}
{%- endif %}
                    ) as p;
                    if cardinality(v_mended) > 0 then
                        v_refused := true;
                        -- A refused row gets the time its owner's policy gives it, or it would be read by every claim.
                        begin
{{- mend("v_mended", "v_mended_at") }};
                        exception when others then
{{- unless_momentary() }}
                            for v_i in 1 .. cardinality(v_mended) loop
                                begin
{{- mend("v_mended[v_i : v_i]", "v_mended_at[v_i : v_i]") }};
                                exception when others then
{{- unless_momentary() }}
                                    v_reason := sqlerrm;
{{- note("v_mended[v_i]") }}
                                end;
                            end loop;
                        end;
                    end if;
                    if cardinality(v_not_now) > 0 then
                        select coalesce(array_agg(v_keys[s] order by s), '{}'), coalesce(array_agg(v_odd[s] order by s), '{}'),
                               coalesce(array_agg(v_at[s] order by s), '{}'), coalesce(array_agg(v_lane[s] order by s), '{}')
                        into v_keys, v_odd, v_at, v_lane
                        from generate_subscripts(v_keys, 1) as s
                        where v_keys[s] <> all (v_not_now);
                    end if;
                else
                    -- Per owner that shares, straight from the owner's own line: exact whatever rows were stamped with.
                    with recursive fields as (
                        (select q.{{ owner.column }} as owner{% if kind %}, {{ kind.of }} as kind, {{ lane.of }} as lane{% endif %}
                         from {{ table }} as q
                         where {{ tenant_is("q") }}q.{{ owner.column }} is not null and {{ standing }}
                         order by q.{{ owner.column }}{% if kind %}, {{ lane.of }}{% endif %} limit 1)
                        union all
                        select next.owner{% if kind %}, next.kind, next.lane{% endif %}
                        from fields
                        cross join lateral (
                            select q.{{ owner.column }} as owner{% if kind %}, {{ kind.of }} as kind, {{ lane.of }} as lane{% endif %}
                            from {{ table }} as q
                            where {{ tenant_is("q") }}q.{{ owner.column }} is not null and {{ standing }}
                              and {% if kind %}(q.{{ owner.column }}, {{ lane.of }}) > (fields.owner, fields.lane | 15){% else %}q.{{ owner.column }} > fields.owner{% endif %}
                            order by q.{{ owner.column }}{% if kind %}, {{ lane.of }}{% endif %} limit 1
                        ) as next
                    ), lanes as (
                        select f.owner{% if kind %}, f.kind{% endif %}, c.class, {{ owner.open_after }} as open_after
                        from (select * from fields limit 2000) as f
{%- if owner.table %}
                        join {{ owner.table }} as o on o.{{ owner.key }} = f.owner
{%- endif %}
                        cross join generate_series(0, {{ priority.last if priority else 0 }}) as c (class)
                        where {{ owner.shared }} and f.owner is distinct from p_owner
{%- if kind %}
                          and (p_kinds is null or f.kind = any (p_kinds::{{ kind.type }}[]))
{%- endif %}
                    ), share as (
                        select greatest(1, ceil(v_left::numeric / greatest(count(*), 1)))::integer as take from lanes
                    )
                    select coalesce(array_agg(p.id order by p.at, p.id), '{}'), coalesce(array_agg(p.odd order by p.at, p.id), '{}')
                    into v_keys, v_odd
                    from (
                        select p.*
                        from lanes
                        cross join share
                        cross join lateral (
                            select q.{{ key.column }} as id, q.{{ col.due }} as at,
                                   (q.{{ status.column }} in ({{ status.held }}) or q.{{ col.lost }} > 0) as odd
                            from {{ table }} as q
                            where {{ tenant_is("q") }}q.{{ owner.column }} = lanes.owner and {{ standing }}{{ in_lane("lanes.kind", "lanes.class") }}
                              -- The first keeps it on the index; the second is the policy, for a due time may be earlier than the row.
                              and q.{{ col.due }} <= v_by - lanes.open_after and {{ waiting_since("q") }} <= v_by - lanes.open_after
                              and q.{{ key.column }} <> all (v_passed)
                            order by q.{{ col.due }}, q.{{ key.column }}
                            limit share.take
                            for no key update skip locked
                        ) as p
                        order by p.at, p.id
                        limit v_left
                    ) as p;
                    v_at := '{}';
                end if;
{%- else %}
{{- probe("global", "true", "q." ~ col.due) }}
{%- endif %}

                -- Dead index entries at the head of the line make a look from the start slow: a few after every large
                -- batch, millions while a forgotten transaction pins them. The next claims of this session then begin
                -- where this one ended, for a moment, or until twenty times the slow look has passed. What the rows of the
                -- batch cost themselves is no slowness, or a batch of thousands would hide latecomers for seconds.
                v_count := cardinality(v_at);
                v_slow := clock_timestamp() - v_begun - v_count * interval '5 microseconds';
                if {% if sheaf %}(v_count > 0 or v_swath.first is not null){% else %}v_count > 0{% endif %} and (v_floor is not null or v_count >= 64 and v_count = v_left
                                    or v_slow > interval '3 milliseconds') then
                    v_floor := coalesce(v_floor, '{}') || case
{%- if sheaf %}
                        -- Nothing stands before the swath, and nobody need wade through what is dead there once more.
                        when v_count = 0 then (
                            select coalesce(jsonb_object_agg(c.class::text{% if kind %} || ':' || k.kind{% endif %}, jsonb_build_array(
                                       least(v_by, v_before_at{% if priority %} - c.class * {{ priority.head_start }}{% endif %}), {{ key.min }})), '{}')
                            from {% if kind %}unnest(v_kinds) as k (kind) cross join {% endif %}generate_series(0, {{ priority.last if priority else 0 }}) as c (class))
{%- endif %}
                        when cardinality(v_lane_class) = 1
                        then jsonb_build_object(v_lane_class[1]::text{% if kind %} || ':' || v_lane_kind[1]{% endif %}, jsonb_build_array(v_at[v_count], v_keys[v_count]))
                        else (select jsonb_object_agg(v_lane_class[f.lane]::text{% if kind %} || ':' || v_lane_kind[f.lane]{% endif %}, jsonb_build_array(f.at, f.id))
                              from (select distinct on (u.lane) u.lane, u.at, u.id
                                    from unnest(v_lane, v_at, v_keys) as u (lane, at, id)
                                    order by u.lane, u.at desc, u.id desc) as f) end;
                    v_floors := jsonb_set(v_floors, array[v_place], jsonb_build_object(
                        'until', case when v_floored then (v_floors #>> array[v_place, 'until'])::double precision
                                      else extract(epoch from v_now + greatest({% if sheaf %}case when v_swath.first is null then 20 else 40 end{% else %}20{% endif %} * v_slow, interval '100 milliseconds')) end,
{%- if kind %}
                        'kinds', case when p_kinds is null then to_jsonb(v_kinds) end, 'kinds_until', v_kinds_until,
{%- endif %}
                        'lanes', v_floor));
                    perform set_config('gleaner.floor_{{ name }}', v_floors::text, false);
                end if;
{%- if sheaf %}
                if cardinality(v_keys) = 0 and v_swath.first is not null then
{{- take_swath() }}
                end if;
{%- endif %}
                exit fill when cardinality(v_keys) = 0;

                v_fine := v_keys;
                v_buried := 0;
                if true = any (v_odd) then
                    v_fine := '{}';
                    for v_i in 1 .. cardinality(v_keys) loop
                        if not v_odd[v_i] then
                            v_fine := v_fine || v_keys[v_i];
                            continue;
                        end if;
                        select q.* into v_row from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = v_keys[v_i];
                        v_lost := v_row.{{ col.lost }} + case when v_row.{{ status.column }} in ({{ status.held }}) and v_row.{{ col.started }} >= 1 then 1 else 0 end;
                        v_reason := {{ poison_reason }};
                        if v_reason is not null then
                            begin
                                perform gleaner.rest_{{ name }}(v_row, v_reason, {{ poison_category }}, v_row.{{ col.attempts }}, v_lost);
                                v_reason := case when exists (select from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = v_keys[v_i] and {{ claimable }})
                                                 then 'a trigger swallowed the burial' end;
                            exception when others then
{{- unless_momentary() }}
                                v_reason := sqlerrm;
                            end;
                            if v_reason is not null then
{{- note("v_keys[v_i]") }}
                            end if;
                            v_buried := v_buried + 1;
                        elsif v_total = 0 and cardinality(v_fine) = 0 then
                            -- A row that lost a lease travels alone: if it brings its agent down, no other row suffers.
                            v_fine := array[v_keys[v_i]];
                            v_alone := true;
                            exit;
                        else
                            v_passed := v_passed || v_keys[v_i];
                            v_stepped := true;
                        end if;
                    end loop;
                end if;

{%- if sheaf %}
{{- bind(plain) }}
{%- endif %}

                if cardinality(v_fine) > 0 then
                    v_count := -1;
{%- if sheaf %}
                    v_plain := coalesce(v_plain, {{ plain }});
{%- endif %}
                    if v_plain then
                        return query
{{- take("unnest(v_fine)", "case when p_started or v_alone then 1 else 0 end") }}
                        returning q.*;
                        v_count := cardinality(v_fine);
                    else
                        begin
{{- take("unnest(v_fine)", "case when p_started or v_alone then 1 else 0 end") }};
                            get diagnostics v_count = row_count;
                        exception when others then
{{- unless_momentary() }}
                        end;
                    end if;
                    if v_count < cardinality(v_fine) then
                        -- Some row refused: a check that does not hold, a trigger that raised or swallowed the change.
                        -- One by one, so that the others are worked, and the offender is noted.
                        v_keys := v_fine;
                        v_fine := '{}';
                        v_buried := 1;
                        for v_i in 1 .. cardinality(v_keys) loop
                            if v_count > 0 and exists (select from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = v_keys[v_i] and q.{{ col.lease }} >= v_lease and q.{{ col.agent }} is not distinct from p_agent) then
                                v_fine := v_fine || v_keys[v_i];
                                continue;
                            end if;
                            v_reason := 'a trigger swallowed the claim';
                            begin
{{- take("unnest(v_keys[v_i : v_i])", "case when p_started or v_alone then 1 else 0 end") }};
                                if found then
                                    v_reason := null;
                                end if;
                            exception when others then
{{- unless_momentary() }}
                                v_reason := sqlerrm;
                            end;
                            if v_reason is null then
                                v_fine := v_fine || v_keys[v_i];
                            else
{{- note("v_keys[v_i]") }}
                            end if;
                        end loop;
                        v_alone := v_alone and cardinality(v_fine) > 0;
                    end if;
                    if not v_plain then
                        -- Only now: what a statement has returned before it failed, in a trigger that runs after it, say,
                        -- cannot be taken back, and its reader would work on a row that nobody holds.
                        return query
                        select q.*
                        from unnest(v_fine) with ordinality as k (id, n)
                        join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = k.id
                        order by k.n;
                    end if;
                    v_taken := v_taken || v_fine;
                    v_total := v_total + cardinality(v_fine);
                    v_left := v_left - cardinality(v_fine);
                end if;
                -- Burying made room, and so did what travels alone: fill the batch up. Otherwise this probe has given what it has.
                exit fill when v_buried = 0 and not v_stepped{% if sheaf %} and v_swath.first is null{% endif %};
                if v_buried = 0 and v_stepped then
                    -- A line of nothing but such rows is not read to its end; what the next classes have waits for the next claim.
                    v_rounds := v_rounds + 1;
                    exit passes when v_rounds >= 4;
                end if;
            end loop;
        end loop;
    end loop;

    if v_total = 0 and v_hidden then
        perform set_config('gleaner.floor_{{ name }}', '', false);
    end if;
    if p_request is not null and v_total > 0 then
        update gleaner.request as r
        set keys = v_taken::text[],
            leases = array(select {% if sheaf %}case when {{ untouched("q") }} then -v_sheaf else q.{{ col.lease }} end{% else %}q.{{ col.lease }}{% endif %}
                           from unnest(v_taken) with ordinality as k (id, n)
                           left join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = k.id
                           order by k.n)
        where r.queue = '{{ name }}' and r.id = p_request;
    end if;
end
$claim$;
