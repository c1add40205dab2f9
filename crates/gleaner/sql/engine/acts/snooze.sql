{%- from "macros.sql" import act, tenant_param, lock_row, same_caller, status_for_caller, enter, leave_batch -%}
-- Puts the work off until a time, without burning an attempt.
create or replace function gleaner.snooze_{{ name }}({{ tenant_param() }}p_id {{ key.type }}, p_lease bigint, p_until timestamptz)
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ act() }}
as {{ body }}
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_row     {{ table }};
begin
    {{ enter() }}
    if p_until is null then
        raise exception 'snooze needs a time' using errcode = 'GL002', hint = 'Pass p_until, for example now() + interval ''10 minutes''.';
    end if;
    {{- leave_batch("array[p_id]", "p_lease") }}
    {{ lock_row() }}
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.{{ col.lease }} = p_lease + 1 and v_row.{{ status.column }} not in ({{ status.held }}) then
        return query select p_id, 'already', v_row.{{ status.column }}::text;
    elsif v_row.{{ col.lease }} is distinct from p_lease or v_row.{{ status.column }} not in ({{ status.held }}) or not {{ same_caller("v_row") }} then
        return query select p_id, 'lost', {{ status_for_caller("v_row") }};
    else
        return query select p_id, 'done', gleaner.put_back_{{ name }}(
            v_row, {{ status.ready }}, p_until, true, v_row.{{ col.attempts }}, v_row.{{ col.lost }});
    end if;
end
{{ body }};
