{#- How a claim looks: the lanes of a probe, the rows at their heads, and what sheaves hold. Part of claim.sql, whose variables it reads and writes. -#}
{%- from "macros.sql" import tenant_is, in_lane, waiting_kinds, unheld -%}
{#- Holds for what comes before the swath that the claim is at; for every row when it is at none. -#}
{%- macro before_swath(at, class_is) -%}
{%- if sheaf %} and ({{ at }}, q.{{ key.column }}) < (v_before_at{% if priority %} - {{ class_is }} * {{ priority.head_start }}{% endif %}, v_before_key){% endif -%}
{%- endmacro -%}
{#- The rows of one lane, in their order, locked by the index. -#}
{%- macro rows_of_lane(condition, at, kind_is, class_is, floor, take) %}
                                select q.{{ key.column }} as id, {{ at }} as at,
                                       (q.{{ status.column }} in ({{ status.held }}) or q.{{ col.lost }} > 0) as odd
{%- if sheaf %},
                                       -- 1: never touched, 2: and fit for a sheaf. A row with a unique key is not: the key is free again while it is worked.
                                       case when q.{{ col.lease }} <> 0 then 0{% if unique %} when q.{{ unique.column }} is not null then 1{% endif %} when q.{{ status.column }} = {{ status.ready }} then 2 else 1 end as fresh,
                                       q.ctid as tid
{%- endif %}
                                from {{ table }} as q
                                where {{ tenant_is("q") }}{{ condition }} and {{ standing }}{{ in_lane(kind_is, class_is) }}
                                  and {{ at }} <= v_by{{ before_swath(at, class_is) }} and ({{ at }}, q.{{ key.column }}) >= ({{ floor }})
                                  and q.{{ key.column }} <> all (v_passed){{ unheld() }}
                                order by {{ at }}, q.{{ key.column }}
                                limit {{ take }}
                                for no key update skip locked
{%- endmacro -%}
{#- One probe: lanes that have a due row, then the rows themselves, locked by the index. -#}
{%- macro probe(class, condition, at) %}
{%- if kind %}
            -- A kind nobody has seen waits a moment longer while others keep the session busy: see below for floors.
            if p_kinds is null and (v_floors #>> array[v_place, 'kinds_until'])::double precision > extract(epoch from v_begun) then
                v_hidden := true;
                v_kinds := array(select jsonb_array_elements_text(v_floors #> array[v_place, 'kinds']))::{{ kind.type }}[];
                v_kinds_until := (v_floors #>> array[v_place, 'kinds_until'])::double precision;
            elsif p_kinds is null then
                v_kinds := {{ waiting_kinds(condition) }};
                v_kinds_until := extract(epoch from v_begun + greatest(20 * (clock_timestamp() - v_begun), interval '1 second'));
            end if;
{%- endif %}
            -- Only lanes with a due row go on, and begin there: what is dead before it is waded through once.
            select coalesce(array_agg({{ "l.kind" if kind else "''::text" }}), '{}'), coalesce(array_agg(l.class), '{}'), array_agg(due.at), array_agg(due.id)
            into v_lane_kind, v_lane_class, v_floor_at, v_floor_key
            from (select {% if kind %}k.kind, {% endif %}c.class
                  from {% if kind %}unnest(v_kinds) as k (kind) cross join {% endif %}generate_series(0, {{ priority.last if priority else 0 }}) as c (class)) as l
            -- Not `exists`: the planner would turn that into a join over every due row.
            cross join lateral (
                select {{ at }} as at, q.{{ key.column }} as id
                from {{ table }} as q
                where {{ tenant_is("q") }}{{ condition }} and {{ standing }}{{ in_lane("l.kind", "l.class") }}{{ unheld() }}
                  and {{ at }} <= v_by{{ before_swath(at, "l.class") }}
                  and ({{ at }}, q.{{ key.column }}) >= (
                      coalesce((v_floor #>> array[l.class::text{% if kind %} || ':' || l.kind{% endif %}, '0'])::timestamptz, '-infinity'),
                      coalesce((v_floor #>> array[l.class::text{% if kind %} || ':' || l.kind{% endif %}, '1'])::{{ key.type }}, {{ key.min }}))
                order by {{ at }}, q.{{ key.column }}
                limit 1
            ) as due;
            if cardinality(v_lane_class) > 0 then
                v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                if cardinality(v_lane_class) > 1 and v_left > 1 then
                    -- How many rows of each lane the batch will hold, so that no more are locked than are taken.
                    with head as (
                        select l.lane
                        from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key) with ordinality as l (kind, class, floor_at, floor_key, lane)
                        cross join lateral (
                            select {{ at }} as at, q.{{ key.column }} as id
                            from {{ table }} as q
                            where {{ tenant_is("q") }}{{ condition }} and {{ standing }}{{ in_lane("l.kind", "l.class") }}
                              and {{ at }} <= v_by{{ before_swath(at, "l.class") }} and ({{ at }}, q.{{ key.column }}) >= (l.floor_at, l.floor_key)
                              and q.{{ key.column }} <> all (v_passed){{ unheld() }}
                            order by {{ at }}, q.{{ key.column }}
                            limit v_left
                        ) as p
                        order by p.at + l.class * {{ priority.head_start if priority else "interval '0'" }}, p.id
                        limit v_left
                    )
                    select array(select (select count(*)::integer from head where head.lane = i)
                                 from generate_subscripts(v_lane_class, 1) as i order by i)
                    into v_take;
                end if;
                loop
                    if cardinality(v_lane_class) = 1 then
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'), coalesce(array_agg(p.at), '{}'){% if sheaf %}, coalesce(array_agg(p.fresh), '{}'), array_agg(p.tid){% endif %}
                        into v_keys, v_odd, v_at{% if sheaf %}, v_fresh, v_tids{% endif %}
                        from ({{ rows_of_lane(condition, at, "v_lane_kind[1]", "v_lane_class[1]", "v_floor_at[1], v_floor_key[1]", "v_left") }}
                        ) as p;
                        v_lane := '{}';
                    else
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'),
                               coalesce(array_agg(p.at), '{}'), coalesce(array_agg(p.lane), '{}'){% if sheaf %}, coalesce(array_agg(p.fresh), '{}'), array_agg(p.tid){% endif %}
                        into v_keys, v_odd, v_at, v_lane{% if sheaf %}, v_fresh, v_tids{% endif %}
                        from (
                            select p.id, p.odd, p.at, l.lane::integer as lane,{% if sheaf %} p.fresh, p.tid,{% endif %}
                                   p.at + l.class * {{ priority.head_start if priority else "interval '0'" }} as rank
                            from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key, v_take) with ordinality as l (kind, class, floor_at, floor_key, take, lane)
                            cross join lateral ({{ rows_of_lane(condition, at, "l.kind", "l.class", "l.floor_at, l.floor_key", "l.take") }}
                            ) as p
                            order by rank, p.id
                            limit v_left
                        ) as p;
                    end if;
{%- if sheaf %}
                    v_dropped := 0;
                    if cardinality(v_keys) > 0 then
                        -- Somebody may have bound a sheaf and committed between the look and the lock. What is locked now cannot be
                        -- bound by others any more, so a second look is the last word.
{{- look_at_sheaves("v_bound") }}
                        if not v_sheaves @> v_bound then
                            v_dropped := cardinality(v_keys);
                            select coalesce(array_agg(v_keys[s] order by s), '{}'), coalesce(array_agg(v_odd[s] order by s), '{}'),
                                   coalesce(array_agg(v_at[s] order by s), '{}'), coalesce(array_agg(v_lane[s] order by s), '{}'),
                                   coalesce(array_agg(v_fresh[s] order by s), '{}')
                            into v_keys, v_odd, v_at, v_lane, v_fresh
                            from generate_subscripts(v_keys, 1) as s
                            where v_fresh[s] = 0 or not v_bound @> v_keys[s];
                            v_dropped := v_dropped - cardinality(v_keys);
                            v_tids := null;
                        end if;
                        v_sheaves := v_bound;
                        if v_dropped > 0 and cardinality(v_keys) = 0 and v_looks < 10 then
                            v_looks := v_looks + 1;
                            continue;
                        end if;
                    end if;
{%- endif %}
                    -- What was counted may be locked by now, and then the other lanes are due: a claim that can find work does.
                    exit when cardinality(v_keys) > 0 or v_left <= all (v_take);
                    v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                end loop;
            else
                v_keys := '{}'; v_odd := '{}'; v_at := '{}'; v_lane := '{}';
            end if;
{%- endmacro -%}
{#- What sheaves hold by now, and whether one ran out. The line of sheaves, too, has dead entries at its head while a forgotten
    transaction pins them: every look begins at the oldest transaction that could have left an open sheaf, as the look before
    it has proved. -#}
{%- macro look_at_sheaves(into) %}
                        select coalesce(range_agg(s.keys), '{}'), coalesce(bool_or(s.due_at <= v_now), false),
                               least(min(s.xid), pg_snapshot_xmin(pg_current_snapshot()))
                        into {{ into }}, v_lapsed, v_oldest
                        from gleaner.sheaf as s where s.queue = '{{ name }}' and s.xid >= v_oldest;
{%- endmacro -%}
