{%- from "macros.sql" import act, tenant_param, lock_row, same_caller, status_for_caller, in_zone, enter, leave_batch -%}
/*
 * Says that the work failed, and whether trying again makes sense. Attempts are counted here, not at the claim, so that
 * release and snooze have nothing to give back. While attempts remain the row waits, longer each time; then it is dead.
 */
create or replace function gleaner.fail_{{ name }}(
    {{ tenant_param() }}p_id {{ key.type }},
    p_lease bigint,
    p_message text,
    p_category text default 'Error',
    p_retryable boolean default true,
    p_retry_in interval default null
) returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ act() }}
as {{ body }}
#variable_conflict use_column
declare
    v_now      timestamptz := clock_timestamp();
    v_trusted  boolean := gleaner.is_trusted();
    v_session  text := gleaner.caller_session();
    v_attempts integer;
    v_row      {{ table }};
begin
    {{ enter() }}
    {{- leave_batch("array[p_id]", "p_lease") }}
    {{ lock_row() }}
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.{{ col.lease }} = p_lease + 1 and v_row.{{ status.column }} not in ({{ status.held }}) then
        return query select p_id, 'already', v_row.{{ status.column }}::text;
    elsif v_row.{{ col.lease }} is distinct from p_lease or v_row.{{ status.column }} not in ({{ status.held }}) or not {{ same_caller("v_row") }} then
        return query select p_id, 'lost', {{ status_for_caller("v_row") }};
    else
        v_attempts := v_row.{{ col.attempts }} + 1;
        if p_retryable and {{ may_retry }} then
            return query select p_id, 'done', gleaner.put_back_{{ name }}(
                v_row, {{ status.failed }}, v_now + coalesce(p_retry_in, gleaner.backoff({{ retry.first }}, {{ retry.cap }}, v_attempts, p_id::text)),
                true, v_attempts, v_row.{{ col.lost }}, p_category, p_message);
        else
            perform gleaner.end_{{ name }}(v_row, p_message, p_category, v_attempts, v_row.{{ col.lost }}, true);
            return query select p_id, 'done', ({{ status.failed }})::text;
        end if;
    end if;
end
{{ body }};
