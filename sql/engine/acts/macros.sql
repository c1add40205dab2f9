{#- Fragments that several acts share. Everything about the queue is a global of the renderer. -#}

{#- Every act is a definer function of the engine's role with a pinned search path: see engine-hazards C. -#}
{%- macro definer() -%}
security definer
set search_path = {{ search_path }}
{%- endmacro -%}

{#- The same for the acts of holders. Their plans are made once: each statement has one index that can serve it, so knowing
    the values would not change the plan, and planning costs more than running. -#}
{%- macro quick_definer() -%}
security definer
set search_path = {{ search_path }}
set plan_cache_mode = force_generic_plan
{%- endmacro -%}

{#- Parameter and condition that lead every statement of a queue that declares a tenant. -#}
{%- macro tenant_param() -%}{% if tenant %}p_tenant {{ tenant.type }}, {% endif %}{%- endmacro -%}
{%- macro tenant_arg() -%}{% if tenant %}p_tenant, {% endif %}{%- endmacro -%}
{%- macro tenant_is(a) -%}{% if tenant %}{{ a }}.{{ tenant.column }} = p_tenant and {% endif %}{%- endmacro -%}

{#- A time between the engine's timestamptz and the table's own column, either way: a `timestamp` is meant in the declared zone. -#}
{%- macro in_zone(expr, type) -%}
{%- if type == "timestamp without time zone" -%}({{ expr }} at time zone {{ zone }}){%- else -%}{{ expr }}{%- endif -%}
{%- endmacro -%}

{#- When the row began to wait, for alias `a`: its creation, or its appointed time where that is later. -#}
{%- macro waiting_since(a) -%}
{%- if created and due -%}greatest({{ in_zone(a ~ "." ~ created.column, created.type) }}, {{ in_zone(a ~ "." ~ due.column, due.type) }})
{%- elif created -%}{{ in_zone(a ~ "." ~ created.column, created.type) }}
{%- elif due -%}{{ in_zone(a ~ "." ~ due.column, due.type) }}
{%- else -%}null::timestamptz
{%- endif -%}
{%- endmacro -%}

{#- The later of what `open_at` was and a new due time; a private row stays private through every act. -#}
{%- macro keep_open(a, at) -%}
case when {{ a }}.{{ col.open }} is null then null else greatest({{ a }}.{{ col.open }}, {{ at }}) end
{%- endmacro -%}

{#- A holder who signed in may act for its own sign-in alone; the lease fences all the rest. -#}
{%- macro same_caller(a) -%}(v_trusted or {{ a }}.{{ col.session }} = v_session){%- endmacro -%}

{#- The status of a row that an act could not change: whoever did not hold it last is not told. Where the row was changed before,
    by this lease, it is `already` and the caller knows. -#}
{%- macro status_for_caller(a) -%}case when {{ same_caller(a) }} then {{ a }}.{{ status.column }}::text end{%- endmacro -%}

{#- New lease after an act of the holder, and after anybody else's: the first lets a repeated act be recognised. -#}
{%- macro lease_after_own(a) -%}{{ a }}.{{ col.lease }} + 1{%- endmacro -%}
{%- macro lease_after_other(a) -%}greatest({{ a }}.{{ col.lease }} + 2, (extract(epoch from v_now) * 1000000)::bigint){%- endmacro -%}

{#- Clears who holds the row, in the engine's columns and, unless they are kept as a record, in the table's own. -#}
{%- macro clear_holder() -%}
        {{ col.deadline }} = null,
        {{ col.started }} = 0
{%- if holder.by and not holder.keep %},
        {{ holder.by.column }} = null
{%- endif %}
{%- if holder.at and not holder.keep %},
        {{ holder.at.column }} = null
{%- endif %}
{%- endmacro -%}

{#- The error column's new value: an object, an object inside a jsonb column, or the bare message. -#}
{%- macro error_value(a, category, message, agent, attempts) -%}
{%- set object -%}jsonb_build_object('timestamp', v_now, 'type', {{ category }}, 'message', {{ message }}, 'agent_id', {{ agent }}, 'retry_count', {{ attempts }}){%- endset -%}
{%- if error.path -%}jsonb_set(coalesce({{ a }}.{{ error.column }}, '{}'), {{ error.path }}, {{ object }})
{%- elif error.type == "jsonb" -%}{{ object }}
{%- else -%}{{ message }}
{%- endif -%}
{%- endmacro -%}

{#- Holds for the rows of one lane: those of a kind and a class, each an expression. By its number, which the index leads with, and
    by the kind itself, because two may share a number. -#}
{%- macro in_lane(kind_is, class_is) -%}
{%- if lane %} and {{ lane.of }} = {{ lane.at | replace("KIND", kind_is) | replace("CLASS", class_is) }}{% endif -%}
{%- if kind %} and {{ kind.of }} = {{ kind_is }}{% endif -%}
{%- endmacro -%}

{#- The kinds that have claimable rows which fulfil the condition. A loose index scan: one descent per kind that has work, so a kind
    nobody announced is found too. -#}
{%- macro waiting_kinds(condition) -%}
array(
                    with recursive kinds as (
                        (select {{ lane.of }} as lane, {{ kind.of }} as kind from {{ table }} as q
                         where {{ tenant_is("q") }}{{ condition }} and {{ standing }} order by {{ lane.of }} limit 1)
                        union all
                        select next.lane, next.kind
                        from kinds
                        cross join lateral (
                            select {{ lane.of }} as lane, {{ kind.of }} as kind from {{ table }} as q
                            where {{ tenant_is("q") }}{{ condition }} and {{ standing }} and {{ lane.of }} > (kinds.lane | 15)
                            order by {{ lane.of }} limit 1
                        ) as next
                    )
                    select k.kind from kinds as k)
{%- endmacro -%}

{#- Whether no act ever wrote the row, so that a sheaf may hold it: it stands alone, or it lies in a swath or did. -#}
{%- macro untouched(a) -%}{{ a }}.{{ col.lease }} in (0, -1){%- endmacro -%}

{#- The kinds that lie in swaths: one descent for each, however many swaths it has. -#}
{%- macro lying_kinds() -%}
array(
                    with recursive kinds as (
                        (select s.kind from gleaner.swath as s where s.queue = '{{ name }}' order by s.kind limit 1)
                        union all
                        select next.kind
                        from kinds
                        cross join lateral (
                            select s.kind from gleaner.swath as s where s.queue = '{{ name }}' and s.kind > kinds.kind order by s.kind limit 1
                        ) as next
                    )
                    select k.kind from kinds as k)
{%- endmacro -%}

{#- What keeps a row out of a claim's sight although it says that it is ready: a sheaf holds it. -#}
{%- macro unheld() -%}{% if sheaf %} and (q.{{ col.lease }} <> 0 or not v_sheaves @> q.{{ key.column }}){% endif %}{%- endmacro -%}

{#- Lets a fetched row that a sheaf holds look like one that was claimed alone. -#}
{%- macro as_held(a) -%}
{%- if sheaf %}
    if {{ untouched(a) }} and {{ a }}.{{ status.column }} = {{ status.ready }} then
        select s.* into v_sheaf from gleaner.sheaf as s where s.queue = '{{ name }}' and s.keys @> {{ a }}.{{ key.column }};
        if found then
            {{ a }}.{{ status.column }} := {{ status.taken }};
            {{ a }}.{{ col.lease }} := -v_sheaf.id;
            {{ a }}.{{ col.due }} := v_sheaf.due_at;
            {{ a }}.{{ col.deadline }} := v_sheaf.deadline_at;
            {{ a }}.{{ col.started }} := case when v_sheaf.begun @> {{ a }}.{{ key.column }} then 1 else 0 end;
            {{ a }}.{{ col.agent }} := v_sheaf.agent;
            {{ a }}.{{ col.session }} := v_sheaf.session;
        end if;
    end if;
{%- endif %}
{%- endmacro -%}

{#- The rows an act could not change, each with its outcome: never by raising. -#}
{%- macro others(ids, leases, already) -%}
    select u.id,
           case
               when q.{{ key.column }} is null then 'gone'
               when {{ already }} then 'already'
               else 'lost'
           end,
           {{ status_for_caller("q") }}
    from unnest({{ ids }}, {{ leases }}) as u (id, lease)
    left join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = u.id
    where u.id <> all (v_done)
{%- endmacro -%}
