{#- How a claim takes what was put in together and waits by one record. Part of claim.sql, whose variables it reads and writes. -#}
{%- from "macros.sql" import lying_kinds -%}
{%- from "take.sql" import bound_row, hold_by_sheaf -%}
{%- set head_start = priority.head_start if priority else "interval '0'" -%}
{#- A lane's name in the floors. -#}
{%- set lane_name -%}c.class::text || ':' || k.kind{%- endset -%}
{%- set this -%}s.queue = '{{ name }}' and s.kind = v_swath.kind and s.class = v_swath.class and s.due_at = v_swath.due_at and s.first = v_swath.first{%- endset -%}
{%- set lying -%}q.{{ key.column }} between v_first and v_last and q.{{ col.lease }} = -1 and q.{{ status.column }} = {{ status.ready }}{%- endset -%}
{#- The first swath in the line: what comes before it is looked for row by row. -#}
{%- macro pick_swath() %}
                v_begun := clock_timestamp();
                v_swath_floor := case when (v_floors #>> '{swaths,until}')::double precision > extract(epoch from v_begun) then v_floors -> 'swaths' end;
                v_hidden := v_hidden or v_swath_floor is not null;
{%- if kind %}
                -- A kind nobody has seen waits a moment longer while others keep the session busy.
                v_lying := case when p_kinds is not null then p_kinds
                    when jsonb_typeof(v_swath_floor -> 'kinds') = 'array' then array(select jsonb_array_elements_text(v_swath_floor -> 'kinds'))
                    else {{ lying_kinds() }} end;
{%- endif %}
                select s.* into v_swath
                from unnest({{ "v_lying" if kind else "array['']" }}) as k (kind)
                cross join generate_series(0, {{ priority.last if priority else 0 }}) as c (class)
                cross join lateral (
                    select s.*
                    from gleaner.swath as s
                    where s.queue = '{{ name }}' and s.kind = k.kind and s.class = c.class and s.due_at <= v_by
                      and (s.due_at, s.first) >= (coalesce((v_swath_floor #>> array['lanes', {{ lane_name }}, '0'])::timestamptz, '-infinity'),
                                                  coalesce((v_swath_floor #>> array['lanes', {{ lane_name }}, '1'])::bigint, {{ key.min }}))
                      and s.first <> all (v_elsewhere)
                    order by s.due_at, s.first
                    limit 1
                ) as s
                order by s.due_at + s.class * {{ head_start }}, s.first
                limit 1;
                v_before_at := coalesce(v_swath.due_at + v_swath.class * {{ head_start }}, 'infinity');
                v_before_key := coalesce(v_swath.first, 9223372036854775807);
                v_picked := clock_timestamp() - v_begun;
{%- endmacro -%}
{#- Takes the head off the swath: bound in the claim's sheaf, or, for claims of few rows, spread for them to look at next. -#}
{%- macro take_swath() %}
                    -- Locked only now, when it is its turn: a claim that stopped before it does not stand in its way.
                    select s.* into v_locked from gleaner.swath as s where {{ this }} for update skip locked;
                    if not found then
                        -- Somebody is at it, or has taken its head: then what is left has another first key.
                        v_elsewhere := v_elsewhere || v_swath.first;
                        continue fill;
                    end if;
                    -- As it is now: all but its first key may have been spread between the look and the lock.
                    v_swath := v_locked;
                    if not v_binds then
                        v_elsewhere := v_elsewhere || gleaner.spread_{{ name }}(v_swath, v_swath.first + 127);
                        -- What was spread stands now where a floor says that nothing stands.
                        v_floors := v_floors - v_place;
                        perform set_config('gleaner.floor_{{ name }}', v_floors::text, false);
                        continue fill;
                    end if;
                    -- Nobody else comes to rows that lie in a swath but those who end them, so its lock is theirs.
                    v_first := v_swath.first;
                    v_last := least(v_swath.last, v_first + v_left - 1);
                    v_bound := int8multirange(int8range(v_first, v_last, '[]'));
                    if v_last = v_swath.last then
                        delete from gleaner.swath as s where {{ this }};
                    else
                        update gleaner.swath as s set first = v_last + 1 where {{ this }};
                    end if;
{{- hold_by_sheaf() }}
                    return query
                    select {{ bound_row("-v_sheaf", "v_due", "v_deadline", "p_started", "p_agent", "v_session") }}
                    from {{ table }} as q
                    where {{ lying }}
                    order by q.{{ key.column }};
                    get diagnostics v_count = row_count;
                    if p_request is not null or v_count <= v_last - v_first then
                        v_fine := array(
                            select q.{{ key.column }}
                            from {{ table }} as q
                            where {{ lying }}
                            order by q.{{ key.column }});
                        v_taken := v_taken || v_fine;
                        -- What was cancelled or deleted while it lay there is nothing to hold.
                        v_bound := v_bound - (select coalesce(range_agg(int8range(i, i, '[]')), '{}') from unnest(v_fine) as i);
                        update gleaner.sheaf as s set keys = s.keys - v_bound, begun = s.begun - v_bound where s.id = v_sheaf and s.keys && v_bound;
                        delete from gleaner.sheaf as s where s.id = v_sheaf and isempty(s.keys);
                        if found then
                            v_sheaf := null;
                        end if;
                    end if;
                    v_total := v_total + v_count;
                    v_left := v_left - v_count;
                    -- As with rows: while a forgotten transaction pins them, the swaths that were taken pile up at the head. Looks at both
                    -- from the start are to take a twentieth of the time together.
                    v_floors := jsonb_set(v_floors, '{swaths}', jsonb_build_object(
                        'until', coalesce((v_swath_floor ->> 'until')::double precision, extract(epoch from v_now + greatest(40 * v_picked, interval '100 milliseconds'))),
{%- if kind %}
                        'kinds', case when p_kinds is null then to_jsonb(v_lying) end,
{%- endif %}
                        'lanes', coalesce(v_swath_floor -> 'lanes', '{}') || jsonb_build_object(v_swath.class || ':' || v_swath.kind, jsonb_build_array(v_swath.due_at, v_last + 1))));
                    perform set_config('gleaner.floor_{{ name }}', v_floors::text, false);
                    continue fill;
{%- endmacro -%}
