{#- Fragments that several acts share. Everything about the queue is a global of the renderer. -#}

{#- How every act runs: as the engine's role, with a pinned search path. Plans are made once: each statement has one index that can
    serve it, so knowing the values would not change the plan, and planning costs more than running. Nothing here is worth compiling.
    The last setting marks the act's own statements for the adapter, see triggers.sql: a number that ends with the function. PostgreSQL
    lets only superusers attach a setting of our own to a function, and this one means nothing where VACUUM cannot run. -#}
{%- macro act(language="plpgsql") -%}
language {{ language }} security definer set search_path = {{ search_path }}{% if not distributed %} set plan_cache_mode = force_generic_plan{% endif %}
set enable_seqscan = off set jit = off set vacuum_cost_page_hit = 0 as {{ body }}
{%- endmacro -%}
{#- The same for acts that only call one function, and for that function. -#}
{%- macro short_act() -%}language sql security definer set search_path = {{ search_path }} set jit = off as {{ body }}{%- endmacro -%}
{%- macro long_act() -%}
language plpgsql{% if not distributed %} set plan_cache_mode = force_generic_plan{% endif %} set enable_seqscan = off set jit = off set vacuum_cost_page_hit = 0 as {{ body }}
{%- endmacro -%}
{#- How the functions run that only acts call: as part of the act. -#}
{%- macro inner() -%}language plpgsql as {{ body }}{%- endmacro -%}

{#- First in every act that writes the table. Inside a trigger, only statements at this depth are the act's own. -#}
{%- macro enter() -%}
if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
{%- endmacro -%}

{#- Parameter, argument and condition that lead every statement of a queue that declares a tenant. -#}
{%- macro tenant_param() -%}{% if tenant %}p_tenant {{ tenant.type }}, {% endif %}{%- endmacro -%}
{%- macro tenant_arg() -%}{% if tenant %}p_tenant, {% endif %}{%- endmacro -%}
{%- macro tenant_is(a) -%}{% if tenant %}{{ a }}.{{ tenant.column }} = p_tenant and {% endif %}{%- endmacro -%}
{%- macro tenant_text() -%}{% if tenant %}p_tenant::text{% else %}''{% endif %}{%- endmacro -%}

{#- The columns that tell rows apart, tenant first; and the predicate that finds one row again, by all of them. -#}
{%- macro whole_key(a) -%}
{% if tenant %}{{ a }}.{{ tenant.column }}, {% endif %}{{ a }}.{{ key.column }}{% for part in parts %}, {{ a }}.{{ part.column }}{% endfor %}
{%- endmacro -%}
{%- macro same_row(a, b) -%}
{% if tenant %}{{ a }}.{{ tenant.column }} = {{ b }}.{{ tenant.column }} and {% endif %}{{ a }}.{{ key.column }} = {{ b }}.{{ key.column }}
{%- for part in parts %} and {{ a }}.{{ part.column }} = {{ b }}.{{ part.column }}{% endfor %}
{%- endmacro -%}

{#- The row that `k` names, where rows are wanted in the order of `k`. Nothing here is a constant or a plain `=`: the planner could then
    begin with the table, and hand rows out in its order. -#}
{%- macro row_of_key() -%}
{%- if tenant %}q.{{ tenant.column }} = {% if distributed %}p_tenant{% else %}any (array[case when k.id is not null then p_tenant end]){% endif %} and {% endif -%}
q.{{ key.column }} = any (array[k.id]){% for part in parts %} and q.{{ part.column }} = any (array[k.part_{{ loop.index }}]){% endfor %}
{%- endmacro -%}

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

{#- Held by the caller: the lease, the status, and, for signed-in callers, the sign-in that claimed. -#}
{%- macro is_held(a) -%}{{ a }}.{{ status.column }} in ({{ status.held }}){%- endmacro -%}
{%- macro same_caller(a) -%}(v_trusted or {{ a }}.{{ col.session }} = v_session){%- endmacro -%}

{#- The status of a row that an act could not change; a caller who did not hold it last does not learn it. -#}
{%- macro status_for_caller(a) -%}case when {{ same_caller(a) }} then {{ a }}.{{ status.column }}::text end{%- endmacro -%}

{#- New lease after an act of the holder, and after any other: the first lets a repeated act be recognised. -#}
{%- macro lease_after_own(a) -%}{{ a }}.{{ col.lease }} + 1{%- endmacro -%}
{%- macro lease_after_other(a, stamp="(extract(epoch from v_now) * 1000000)::bigint") -%}greatest({{ a }}.{{ col.lease }} + 2, {{ stamp }}){%- endmacro -%}

{#- Clears who holds the row, in the engine's columns and, unless they are kept as a record, in the table's own. -#}
{%- macro clear_holder() -%}
{{ col.deadline }} = null, {{ col.started }} = 0
{%- if holder and holder.by and not holder.keep %},
        {{ holder.by.column }} = null
{%- endif %}
{%- if holder and holder.at and not holder.keep %},
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

{#- The condition of one lane, those rows of one kind and one class: by its number, which leads the index, and by the kind itself,
    because two kinds may share a number. -#}
{%- macro in_lane(kind_is, class_is) -%}
{%- if lane %} and {{ lane.of }} = {{ lane.at | replace("KIND", kind_is) | replace("CLASS", class_is) }}{% endif -%}
{%- if kind %} and {{ kind.of }} = {{ kind_is }}{% endif -%}
{%- endmacro -%}

{#- A row that an earlier claim could not change is left out until its time is over. -#}
{%- macro not_rejected(now) -%}
{%- if distributed -%}
{{ rejected_key("q") }} <> all (v_rejected)
{%- else -%}
{{ rejected_key("q") }} not in (select r.key from gleaner.rejected_row as r where r.queue = {{ name_literal }} and r.tenant = {{ tenant_text() }} and r.until > {{ now }})
{%- endif -%}
{%- endmacro -%}
{#- Such rows as a variable, where a shard cannot ask the coordinator's table. -#}
{%- macro declare_rejected(now) -%}
{%- if distributed %}
    v_rejected text[] := array(select r.key from gleaner.rejected_row as r where r.queue = {{ name_literal }} and r.tenant = {{ tenant_text() }} and r.until > {{ now }});
{%- endif -%}
{%- endmacro -%}
{#- What tells a row apart within its tenant, as text. -#}
{%- macro rejected_key(a) -%}
{% if parts %}({{ a }}.{{ key.column }}{% for part in parts %}, {{ a }}.{{ part.column }}{% endfor %})::text{% else %}{{ a }}.{{ key.column }}::text{% endif %}
{%- endmacro -%}

{#- 0 for a row that no earlier holder lost. A row whose holder died before it began: how often that happened. -1 for one that was begun, -2
    for one that lost too many leases: see gleaner.choose_rows. -#}
{%- macro held_before(a) -%}
case when {{ a }}.{{ col.lost }} = 0 and {{ a }}.{{ status.column }} not in ({{ status.held }}) then 0
                    when {{ a }}.{{ col.lost }} = 0 and {{ a }}.{{ col.started }} <= 0 then 1 - {{ a }}.{{ col.started }} when {{ poisoned }} then -2 else -1 end
{%- endmacro -%}

{#- What must be true of a row to be claimed now. Early claims are for rows that wait, never for one that is held. -#}
{%- macro claimable_now(at, now, by) -%}
{{ at }} <= {{ by }} and (q.{{ col.due }} <= {{ now }} or q.{{ status.column }} in ({{ status.waiting }}))
{%- endmacro -%}

{#- Where ids repeat from partition to partition, the lease tells which row a holder means. -#}
{%- macro by_lease(lease) -%}
{% if parts %} order by q.{{ col.lease }} = {{ lease }} desc, q.{{ col.lease }} = {{ lease }} + 1 desc limit 1{% endif %}
{%- endmacro -%}
{#- The same for the rows `u` of a call about many: joined as `q`, where there is one. -#}
{%- macro join_meant() -%}
{%- if parts -%}
left join lateral (select q.* from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = any (array[u.id]){{ by_lease("u.lease") }}) as q on true
{%- else -%}
left join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = any (array[u.id])
{%- endif -%}
{%- endmacro -%}

{#- The rows an act could not change, each with its outcome: never by raising. By `except`, which stays linear whatever the planner expects. -#}
{%- macro others(already) -%}
select u.id, case when q.{{ key.column }} is null and gleaner.is_trusted() then 'gone'{% if already != "false" %} when {{ already }} then 'already'{% endif %} else 'lost' end,
           {% if engine == "bulk" %}case when {{ same_caller("q") }} then (gleaner.as_held_{{ name }}(q)).{{ status.column }}::text end{% else %}{{ status_for_caller("q") }}{% endif %}
    from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
    {{ join_meant() }}
{%- endmacro -%}

{#- Whether claims find nothing in this queue. The table has as many rows as there are paused queues. -#}
{%- macro is_paused() -%}exists (select from gleaner.pause as p where p.queue = {{ name_literal }}){%- endmacro -%}

{#- Arrays that belong together have one length: a lease for every row, not one for all. -#}
{%- macro one_lease_each() -%}
perform gleaner.check_leases(p_ids, p_leases);
{%- endmacro -%}

{#- In a queue with batch leases an act about single rows first takes them out of their batch, and from there on has one form. -#}
{%- macro leave_batch(ids, lease="") -%}
{%- if engine == "bulk" and lease %}
    if {{ lease }} < 0 then
        perform gleaner.unbatch_{{ name }}({{ ids }}, array[-{{ lease }}]);
    end if;
{%- elif engine == "bulk" %}
    perform gleaner.unbatch_{{ name }}({{ ids }});
{%- endif %}
{%- endmacro -%}
{#- Lets a fetched row that a batch lease holds look like one that was claimed alone. -#}
{%- macro as_held(a) -%}
{%- if engine == "bulk" %}
    {{ a }} := gleaner.as_held_{{ name }}({{ a }});
{%- endif %}
{%- endmacro -%}
