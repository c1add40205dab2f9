{%- from "macros.sql" import act, tenant_text, rejected_key, tenant_param, tenant_is, waiting_since, as_held -%}
/*
 * Why this row is or is not claimable{% if owner %} by an agent of p_owner{% endif %}, and when it will be.
 * Returns  {claimable, class, reason, claimable_at, …}; null when there is no such row.
 */
create or replace function gleaner.explain_{{ name }}({{ tenant_param() }}p_id {{ key.type }}
{%- if owner %}, p_owner {{ owner.type }} default null{% endif %}
{%- if kind %}, p_kinds text[] default null{% endif %}) returns jsonb
language plpgsql
{{ act() }}
as {{ body }}
declare
    v_now    timestamptz := clock_timestamp();
    v_row    {{ table }};
    v_state  text;
    v_class  text := 'global';
    v_at     timestamptz;
    v_reason text;
    v_rejected gleaner.rejected_row;
{%- if owner %}
    v_shared boolean;
    v_after  interval;
{%- endif %}
begin
{%- if owner %}
    p_owner := gleaner.own_{{ name }}(p_owner);
{%- endif %}
    select q.* into v_row from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = p_id;
    {{- as_held("v_row") }}
    -- A worker's key sees what it holds: of other rows it learns as little as of rows that are not there.
    if v_row.{{ key.column }} is null or v_row.{{ col.session }} is distinct from gleaner.worker_session() and gleaner.worker_session() is not null then
        return null;
    end if;
    v_state := case
        when v_row.{{ status.column }} in ({{ status.held }}) then 'running'
        when v_row.{{ status.column }} = {{ status.done }} then 'done'
        when v_row.{{ status.column }} = {{ status.failed }} and v_row.{{ col.due }} is null then 'dead'
{%- if status.cancelled != status.failed %}
        when v_row.{{ status.column }} = {{ status.cancelled }} then 'cancelled'
{%- endif %}
        when v_row.{{ status.column }} not in ({{ status.claimable }}) then 'other'
        when v_row.{{ col.due }} is null then 'unfilled'
{%- if bulk %}
        when v_row.{{ col.lease }} = -1 and not (gleaner.range_keys({{ name_literal }}) + gleaner.batch_keys({{ name_literal }})) @> p_id then 'orphan'
{%- endif %}
        when v_row.{{ status.column }} = {{ status.failed }} then 'backing off'
        when v_row.{{ col.due }} > v_now then 'scheduled'
        else 'ready'
    end;
    v_at := v_row.{{ col.due }};
{%- if owner %}
    if v_row.{{ owner.column }} is not null then
        v_class := 'own';
        if v_row.{{ owner.column }} is distinct from p_owner then
            v_class := 'stale';
            select {{ owner.shared }}, {{ owner.open_after }} into v_shared, v_after
{%- if owner.table %}
            from (select v_row.{{ owner.column }} as id) as asked
            left join {{ owner.table }} as o on o.{{ owner.key }} = asked.id
{%- endif %};
            if not gleaner.is_trusted() and not v_shared then
                -- A private row is nobody's business: the same answer as for a row that is not there.
                return null;
            end if;
            v_at := case when v_shared then greatest(v_at, {{ waiting_since("v_row") }} + v_after) end;
        end if;
    end if;
{%- endif %}
    select r.* into v_rejected from gleaner.rejected_row as r
    where r.queue = {{ name_literal }} and r.tenant = {{ tenant_text() }} and r.key = {{ rejected_key("v_row") }};
    v_reason := case
        when v_state in ('done', 'cancelled', 'dead', 'other') then format('it is %s (status %L)', v_state, v_row.{{ status.column }})
{%- if bulk %}
        when v_state = 'orphan' then 'it waits in a bulk range that is not there: it was copied or restored without it; requeue it'
{%- endif %}
        when v_state = 'unfilled' then 'it has no due time yet: it was written before the table was attached, or while its trigger was off'
{%- if kind %}
        when p_kinds is not null and {{ kind.of_row }}::text <> all (p_kinds) then format('its kind %L is not among those asked for', {{ kind.of_row }})
{%- endif %}
{%- if owner %}
        when v_class = 'stale' and not v_shared then format('its owner %s keeps work private', v_row.{{ owner.column }})
{%- endif %}
        when v_at is null then 'it has no due time'
        when v_at <= v_now and v_state = 'running' then format('the lease of %s ran out %s ago', coalesce(v_row.{{ col.agent }}, v_row.{{ col.session }}), v_now - v_row.{{ col.due }})
        when v_at <= v_now and v_rejected.until > v_now then format('it rejected a change, and is tried again in %s: %s', v_rejected.until - v_now, v_rejected.reason)
        when v_at <= v_now then 'its time has come'
        when v_state = 'running' then format('%s holds it; the lease ends in %s unless progress extends it', coalesce(v_row.{{ col.agent }}, v_row.{{ col.session }}), v_at - v_now)
        when v_state = 'backing off' and v_row.{{ col.due }} > v_now then format('attempt %s failed; the next try is in %s', v_row.{{ col.attempts }}, v_at - v_now)
{%- if owner %}
        when v_class = 'stale' and v_row.{{ col.due }} <= v_now then format('its owner %s has first right to it for another %s', v_row.{{ owner.column }}, v_at - v_now)
{%- endif %}
        else format('it is due in %s', v_at - v_now)
    end;
    return jsonb_build_object(
        'id', v_row.{{ key.column }},
        'state', v_state,
        'status', v_row.{{ status.column }},
        'class', v_class,
        'claimable', coalesce(v_state in ('ready', 'running', 'backing off', 'scheduled') and v_at <= v_now and coalesce(v_rejected.until <= v_now, true)
{%- if kind %}
                     and (p_kinds is null or {{ kind.of_row }}::text = any (p_kinds))
{%- endif %}, false),
        'claimable_at', case when v_state in ('ready', 'running', 'backing off', 'scheduled') then v_at end,
        'reason', v_reason,
        'due_at', v_row.{{ col.due }},
        'attempts', v_row.{{ col.attempts }},
        'lost', v_row.{{ col.lost }},
        'agent', case when v_state = 'running' then coalesce(v_row.{{ col.agent }}, v_row.{{ col.session }}) end,
        'deadline_at', v_row.{{ col.deadline }}
        {%- if owner %}, 'owner', v_row.{{ owner.column }}, 'open_at', v_row.{{ col.open }}{% endif %});
end
{{ body }};
