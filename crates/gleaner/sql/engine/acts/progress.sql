{%- from "macros.sql" import act, tenant_param, lock_row, same_row, same_caller, status_for_caller, keep_open, in_zone, enter, leave_batch -%}
{#- Whether stage or percent differ from what the row shows. -#}
{%- set says_more -%}
{%- if not progress -%}false
{%- elif progress.type == "jsonb" -%}
(p_stage is not null and p_stage is distinct from v_row.{{ progress.column }} ->> 'stage'
        or p_percent is not null and to_jsonb(p_percent) is distinct from v_row.{{ progress.column }} -> 'percent')
{%- elif progress.numeric -%}(p_percent is not null and p_percent is distinct from v_row.{{ progress.column }}::numeric)
{%- else -%}(p_stage is not null and p_stage is distinct from v_row.{{ progress.column }})
{%- endif -%}
{%- endset -%}
{#- Whether the partial results differ from those the row has. -#}
{%- set brings_more -%}
{%- if result and result.type == "jsonb" -%}
(p_partial is not null and (case when jsonb_typeof(v_row.{{ result.column }}) = 'object' and jsonb_typeof(p_partial) = 'object'
        then v_row.{{ result.column }} || p_partial else p_partial end) is distinct from v_row.{{ result.column }})
{%- else -%}false
{%- endif -%}
{%- endset -%}
/*
 * Shows life: stage, percent and partial results, for people to see and for the next agent to resume from.
 * Also extends the lease, so slow work is never stolen while it shows life, up to the hard deadline stored at the claim.
 * The extension is by p_hold, as the claim asked for, or by the declared hold. It is written only when less than half of that is left: each one writes every index.
 */
create or replace function gleaner.progress_{{ name }}(
    {{ tenant_param() }}p_id {{ key.type }},
    p_lease bigint,
    p_stage text default null,
    p_percent numeric default null,
    p_partial jsonb default null,
    p_hold interval default null
) returns table (id {{ key.type }}, outcome text, status text, due_at timestamptz)
language plpgsql
{{ act() }}
as {{ body }}
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_due     timestamptz;
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_hold    interval;
    v_row     {{ table }};
begin
    {{ enter() }}
    {{- leave_batch("array[p_id]", "p_lease") }}
    {{ lock_row() }}
    if not found then
        return query select p_id, 'gone', null::text, null::timestamptz;
        return;
    end if;
    if v_row.{{ col.lease }} is distinct from p_lease or v_row.{{ status.column }} not in ({{ status.held }}) or not {{ same_caller("v_row") }} then
        return query select p_id, 'lost', {{ status_for_caller("v_row") }}, null::timestamptz;
        return;
    end if;
    v_due := v_row.{{ col.due }};
    v_hold := coalesce(p_hold, {{ hold_of_row }});
    if v_due - v_now < v_hold / 2 then
        -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
        v_due := greatest(v_due, least(v_now + v_hold, v_row.{{ col.deadline }}));
    end if;
{%- if progress %}
    -- What is written already is not written again: people's triggers and subscribers would all hear of it.
    if {{ says_more }} or {{ brings_more }}
       or v_due is distinct from v_row.{{ col.due }} or v_row.{{ col.started }} < v_started {{ "or v_row." ~ status.column ~ " <> " ~ status.running if status.claimed }} then
{%- else %}
    if {{ brings_more }} or v_due is distinct from v_row.{{ col.due }} or v_row.{{ col.started }} < v_started {{ "or v_row." ~ status.column ~ " <> " ~ status.running if status.claimed }} then
{%- endif %}
        update {{ table }} as q
        set {{ col.started }} = greatest(q.{{ col.started }}, v_started),
            {{ col.due }} = v_due
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
            {{ result.column }} = case when p_partial is null then q.{{ result.column }}
                when jsonb_typeof(q.{{ result.column }}) = 'object' and jsonb_typeof(p_partial) = 'object' then q.{{ result.column }} || p_partial
                else p_partial end
{%- endif %}
        where {{ same_row("q", "v_row") }};
    end if;
    return query select p_id, 'done', ({{ status.running }})::text, v_due;
end
{{ body }};
