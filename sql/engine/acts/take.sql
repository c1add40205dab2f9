{#- How a claim takes the rows it found: by a lease on each, or all of them by one sheaf. Part of claim.sql, whose variables it reads and writes. -#}
{%- from "macros.sql" import tenant_is, in_zone, keep_open, untouched -%}
{#- A row that a sheaf holds, as it would be had it been claimed alone. With `mixed` only where a sheaf holds it. -#}
{%- macro bound_row(lease, due, deadline, begun, agent, session, mixed=false) %}
{%- set values = {"status": status.taken, "lease": lease, "due": due, "deadline": deadline, "started": "case when " ~ begun ~ " then 1 else 0 end",
                  "agent": agent, "session": session} %}
{%- for c in sheaf.columns %}{{ ", " if not loop.first }}
{%- if not values[c.role] %}q.{{ c.column }}
{%- elif mixed %}case when {{ untouched("q") }} then ({{ values[c.role] }})::{{ c.type }} else q.{{ c.column }} end
{%- else %}({{ values[c.role] }})::{{ c.type }}{% endif %}
{%- endfor %}
{%- endmacro -%}
{#- The change a claim makes to the rows whose keys the set `keys` names, in its order. -#}
{%- macro take(keys, started) %}
                update {{ table }} as q
                set {{ status.column }} = {{ status.taken }},
                    {{ col.due }} = v_now + least(coalesce(p_hold, {{ hold }}), {{ deadline }}),
{%- if owner %}
                    {{ col.open }} = {{ keep_open("q", "v_now + least(coalesce(p_hold, " ~ hold ~ "), " ~ deadline ~ ")") }},
{%- endif %}
                    {{ col.lease }} = greatest(q.{{ col.lease }} + 1, v_lease),
                    {{ col.deadline }} = v_now + {{ deadline }},
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    {{ col.lost }} = q.{{ col.lost }} + {{ lost_now }},
{%- if recovered %}
                    {{ recovered.column }} = case when {{ lost_now }} = 1 then {{ recovered_value }} else q.{{ recovered.column }} end,
{%- endif %}
                    {{ col.started }} = {{ started }},
                    {{ col.agent }} = p_agent,
                    {{ col.session }} = v_session
{%- if holder.by %},
                    {{ holder.by.column }} = v_holder
{%- endif %}
{%- if holder.at %},
                    {{ holder.at.column }} = {{ in_zone("v_now", holder.at.type) }}
{%- endif %}
                from {{ keys }} as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where {{ tenant_is("q") }}q.{{ key.column }} = any (array[taken.id])
{%- endmacro -%}
{#- Puts the keys v_bound in the sheaf of this claim. -#}
{%- macro hold_by_sheaf() %}
                    if v_sheaf is null then
                        insert into gleaner.sheaf (queue, keys, begun, agent, session, due_at, deadline_at)
                        values ('{{ name }}', v_bound, case when p_started then v_bound else '{}' end, p_agent, v_session, v_due, v_deadline)
                        returning sheaf.id into v_sheaf;
                    else
                        update gleaner.sheaf as s
                        set keys = s.keys + v_bound, begun = case when p_started then s.begun + v_bound else s.begun end
                        where s.id = v_sheaf;
                    end if;
                    v_sheaves := v_sheaves + v_bound;
{%- endmacro -%}
{#- Holds by one record what was never touched, if that is enough for a sheaf, and gives the batch out; v_fine is empty then. -#}
{%- macro bind(plain) %}

                v_stalks := '{}';
                if v_binds and not v_alone and cardinality(v_keys) >= {{ sheaf.from }} then
                    if 2 = all (v_fresh) and cardinality(v_fine) = cardinality(v_keys) then
                        v_stalks := v_keys;
                    else
                        v_tids := null;
                        v_plain := coalesce(v_plain, {{ plain }});
                        if v_plain then
                            v_stalks := array(select v_keys[s] from generate_subscripts(v_keys, 1) as s where v_fresh[s] = 2 order by s);
                        end if;
                    end if;
                end if;
                if cardinality(v_stalks) >= {{ sheaf.from }} then
                    -- They mostly follow each other as they were numbered, and then are one piece of the key.
                    v_first := v_stalks[1];
                    v_last := v_first + cardinality(v_stalks) - 1;
                    v_piece := v_stalks[cardinality(v_stalks)] = v_last
                        -- Of one due time they come by key, and then the ends tell; otherwise each is looked at.
                        and (cardinality(v_lane_class) = 1 and v_at[1] = v_at[cardinality(v_at)] or v_stalks = array(select generate_series(v_first, v_last)));
                    v_bound := case when v_piece then int8multirange(int8range(v_first, v_last, '[]'))
                                    else (select range_agg(int8range(i, i, '[]')) from unnest(v_stalks) as i) end;
{{- hold_by_sheaf() }}
                    if v_piece and cardinality(v_stalks) = cardinality(v_fine) then
                        return query
                        select {{ bound_row("-v_sheaf", "v_due", "v_deadline", "p_started", "p_agent", "v_session") }}
                        from {{ table }} as q
                        where q.{{ key.column }} between v_first and v_last
                        order by q.{{ key.column }};
                    elsif v_tids is not null then
                        return query
                        select {{ bound_row("-v_sheaf", "v_due", "v_deadline", "p_started", "p_agent", "v_session") }}
                        from unnest(v_tids) with ordinality as k (tid, n)
                        join {{ table }} as q on q.ctid = k.tid
                        order by k.n;
                    else
                        -- What has a past, or a unique key, is claimed row by row; all are given out in the order of the line.
                        v_others := array(select f from unnest(v_fine) as f where not v_bound @> f);
{{- take("unnest(v_others)", "case when p_started then 1 else 0 end") }};
                        return query
                        select {{ bound_row("-v_sheaf", "v_due", "v_deadline", "p_started", "p_agent", "v_session", true) }}
                        from unnest(v_fine) with ordinality as k (id, n)
                        join {{ table }} as q on q.{{ key.column }} = k.id
                        order by k.n;
                    end if;
                    v_taken := v_taken || v_fine;
                    v_total := v_total + cardinality(v_fine);
                    v_left := v_left - cardinality(v_fine);
                    v_fine := '{}';
                end if;
{%- endmacro -%}
