{%- from "macros.sql" import quick_definer, tenant_param, tenant_is, same_caller, status_for_caller -%}
-- Puts the work off until a time, without burning an attempt.
create or replace function gleaner.snooze_{{ name }}({{ tenant_param() }}p_id {{ key.type }}, p_lease bigint, p_until timestamptz)
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ quick_definer() }}
as $snooze$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_row     {{ table }};
begin
    if p_until is null then
        raise exception 'snooze needs a time' using errcode = 'GL002', hint = 'Pass p_until, for example now() + interval ''10 minutes''.';
    end if;
{%- if sheaf %}
    if p_lease < 0 then
        perform gleaner.loosen_{{ name }}(array[p_id], -p_lease);
    end if;
{%- endif %}
    select q.* into v_row from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = p_id for no key update;
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
$snooze$;
