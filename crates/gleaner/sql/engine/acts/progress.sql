{%- from "macros.sql" import act, tenant_param, tenant_arg, same_row, keep_open, in_zone, enter, leave_batch -%}
{#- Whether stage or percent differ from what the row shows. -#}
{%- set says_more -%}
{%- if not progress -%}
{%- elif progress.type == "jsonb" -%}
(p_stage is not null and p_stage is distinct from v_row.{{ progress.column }} ->> 'stage'
        or p_percent is not null and to_jsonb(p_percent) is distinct from v_row.{{ progress.column }} -> 'percent')
{%- elif progress.numeric -%}(p_percent is not null and p_percent is distinct from v_row.{{ progress.column }}::numeric)
{%- else -%}(p_stage is not null and p_stage is distinct from v_row.{{ progress.column }})
{%- endif -%}
{%- endset -%}
/*
 * Shows life: stage, percent and partial results, for people to see and for the next agent to resume from. Extends the lease by p_hold or
 * the declared hold, up to the deadline that the claim set, when less than half of it is left: each extension writes every index.
 */
create or replace function gleaner.progress_{{ name }}(
    {{ tenant_param() }}p_id {{ key.type }}, p_lease bigint, p_stage text default null, p_percent numeric default null,
    p_partial jsonb default null, p_hold interval default null
) returns table (id {{ key.type }}, outcome text, status text, due_at timestamptz)
{{ act() }}
declare
    v_now     timestamptz := clock_timestamp();
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_it      record; v_row {{ table }}; v_hold interval; v_due timestamptz;{% if result and result.type == "jsonb" %} v_result jsonb;{% endif %}
begin
    {{ enter() }}
    {{- leave_batch("array[p_id]", "p_lease") }}
    v_it := gleaner.lock_{{ name }}({{ tenant_arg() }}p_id, p_lease);
    if v_it.outcome <> 'done' then
        return query select p_id, case v_it.outcome when 'already' then 'lost' else v_it.outcome end, v_it.status, null::timestamptz;
        return;
    end if;
    v_row := v_it.held; v_hold := coalesce(p_hold, {{ hold_of_row }});
    -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
    v_due := case when v_row.{{ col.due }} - v_now < v_hold / 2 then greatest(v_row.{{ col.due }}, least(v_now + v_hold, v_row.{{ col.deadline }}))
                  else v_row.{{ col.due }} end;
{%- if result and result.type == "jsonb" %}
    v_result := case when p_partial is null then v_row.{{ result.column }}
                     when jsonb_typeof(v_row.{{ result.column }}) = 'object' and jsonb_typeof(p_partial) = 'object' then v_row.{{ result.column }} || p_partial
                     else p_partial end;
{%- endif %}
    -- What is written already is not written again: people's triggers and subscribers would all hear of it.
    if v_due is distinct from v_row.{{ col.due }} or v_row.{{ col.started }} < v_started{{ " or v_row." ~ status.column ~ " <> " ~ status.running if status.claimed }}
{%- if progress %}
       or {{ says_more }}
{%- endif %}
{%- if result and result.type == "jsonb" %}
       or v_result is distinct from v_row.{{ result.column }}
{%- endif %} then
        update {{ table }} as q
        set {{ col.started }} = greatest(q.{{ col.started }}, v_started), {{ col.due }} = v_due
{%- if owner %},
            {{ col.open }} = {{ keep_open("q", "v_due") }}
{%- endif %}
{%- if holder.at and not holder.keep %},
            -- Programs that watch the lock's age by themselves must see that its holder lives.
            {{ holder.at.column }} = case when v_due is distinct from q.{{ col.due }} then {{ in_zone("v_now", holder.at.type) }} else q.{{ holder.at.column }} end
{%- endif %}
{%- if status.claimed %},
            {{ status.column }} = {{ status.running }}
{%- endif %}
{%- if progress %}
{%- if progress.type == "jsonb" %},
            {{ progress.column }} = coalesce(q.{{ progress.column }}, '{}') || jsonb_strip_nulls(jsonb_build_object('stage', p_stage, 'percent', p_percent, 'at', v_now))
{%- elif progress.numeric %},
            {{ progress.column }} = coalesce(p_percent, q.{{ progress.column }})
{%- else %},
            {{ progress.column }} = coalesce(p_stage, q.{{ progress.column }})
{%- endif %}
{%- endif %}
{%- if result and result.type == "jsonb" %},
            {{ result.column }} = v_result
{%- endif %}
        where {{ same_row("q", "v_row") }};
    end if;
    return query select p_id, 'done', ({{ status.running }})::text, v_due;
end
{{ body }};
