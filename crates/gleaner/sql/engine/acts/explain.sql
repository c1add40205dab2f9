{%- from "macros.sql" import act, inner, tenant_text, rejected_key, tenant_param, tenant_is, waiting_since, as_held -%}
-- What a row is doing, in the same words for every queue.
create or replace function gleaner.state_{{ name }}(p_row {{ table }}, p_now timestamptz) returns text language sql stable as {{ body }}
    select case
        when {{ when.p_row.held }} then 'running'
        when {{ when.p_row.done }} then 'done'
        when {{ when.p_row.dead }} then 'dead'
{%- if status.cancelled != status.failed %}
        when {{ when.p_row.cancelled }} then 'cancelled'
{%- endif %}
        when p_row.{{ status.column }} not in ({{ status.claimable }}) then 'other'
        when p_row.{{ col.due }} is null then 'unfilled'
        when {{ when.p_row.failed }} then 'backing off'
        when p_row.{{ col.due }} > p_now then 'scheduled'
        else 'ready'
    end;
{{ body }};

/*
 * Why this row is or is not claimable{% if owner %} by an agent of p_owner{% endif %}, and when it will be; null when there is no such row.
 */
create or replace function gleaner.explain_{{ name }}({{ tenant_param() }}p_id {{ key.type }}
{%- if owner %}, p_owner {{ owner.type }} default null{% endif %}
{%- if kind %}, p_kinds text[] default null{% endif %}) returns jsonb
{{ act() }}
declare
    v_now    timestamptz := clock_timestamp(); v_row {{ table }};
{%- if owner %}
    v_class  text := 'global';
    v_at     timestamptz;
    v_shared boolean := true;
    v_after  interval;
{%- endif %}
begin
    -- Those who work the queue, and those who operate it.
    perform gleaner.operates({{ name_literal }}, {{ grant.look }}, {{ grant.own }});
{%- if owner %}
    p_owner := gleaner.own_{{ name }}(p_owner);
{%- endif %}
    select q.* into v_row from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = p_id;
    {{- as_held("v_row") }}
{%- if grant.groups %}
    if gleaner.operates({{ name_literal }}, {{ grant.look }}, {{ grant.own }}) = 'own' and (v_row.{{ grant.groups.column }} = any ({{ grant.groups.mine }})) is not true then
        -- The same answer as for a row that is not there.
        return null;
    end if;
{%- endif %}
{%- if owner %}
    v_at := v_row.{{ col.due }};
    if v_row.{{ owner.column }} is not null then
        v_class := 'own';
        if v_row.{{ owner.column }} is distinct from p_owner then
            v_class := 'stale';
            select {{ owner.shared }}, {{ owner.open_after }} into v_shared, v_after
{%- if owner.table %}
            from (select v_row.{{ owner.column }} as id) as asked
            left join {{ owner.table }} as o on o.{{ owner.key }} = asked.id
{%- endif %};
            if not gleaner.is_trusted() and not gleaner.is_administrator() and not v_shared then
                -- A private row must not be revealed: the same answer as for a row that does not exist.
                return null;
            end if;
            v_at := case when v_shared then greatest(v_at, {{ waiting_since("v_row") }} + v_after) end;
        end if;
    end if;
{%- endif %}
    return gleaner.explain_row({{ name_literal }}, {{ tenant_text() }}, {{ rejected_key("v_row") }}, v_now, v_row.{{ col.session }}, jsonb_build_object(
        'id', v_row.{{ key.column }}, 'status', v_row.{{ status.column }}, 'claimable_at', {{ "v_at" if owner else "v_row." ~ col.due }}, 'due_at', v_row.{{ col.due }},
        'state', {% if bulk %}case when v_row.{{ col.lease }} = -1 and {{ when.v_row.claimable }} and not (gleaner.range_keys({{ name_literal }}) + gleaner.batch_keys({{ name_literal }})) @> p_id then 'orphan'
            else gleaner.state_{{ name }}(v_row, v_now) end{% else %}gleaner.state_{{ name }}(v_row, v_now){% endif %}, 'attempts', v_row.{{ col.attempts }}, 'lost', v_row.{{ col.lost }},
        'agent', coalesce(v_row.{{ col.agent }}, v_row.{{ col.session }}), 'deadline_at', v_row.{{ col.deadline }}
        {%- if owner %},
        'class', v_class, 'owner', v_row.{{ owner.column }}, 'open_at', v_row.{{ col.open }}{% endif %}){% if owner %},
        not v_shared{% else %}, false{% endif %}{% if kind %}, case when {{ kind.of_row }}::text <> all (p_kinds) then {{ kind.of_row }}::text end{% endif %});
end
{{ body }};
