{%- from "macros.sql" import act, tenant_param, tenant_arg, enter, leave_batch -%}
-- The work failed, which counts an attempt: the row waits, longer each time, or is dead.
create or replace function gleaner.fail_{{ name }}(
    {{ tenant_param() }}p_id {{ key.type }}, p_lease bigint, p_message text, p_category text default 'Error',
    p_retryable boolean default true, p_retry_in interval default null
) returns table (id {{ key.type }}, outcome text, status text)
{{ act() }}
declare
    v_now      timestamptz := clock_timestamp();
    v_it       record; v_row {{ table }}; v_attempts integer; v_due timestamptz;
begin
    {{ enter() }}
    {{- leave_batch("array[p_id]", "p_lease") }}
    v_it := gleaner.lock_{{ name }}({{ tenant_arg() }}p_id, p_lease);
    if v_it.outcome = 'done' then
        v_row := v_it.held;
        v_attempts := v_row.{{ col.attempts }} + 1;
        v_due := case when p_retryable and {{ may_retry }} then v_now + coalesce(p_retry_in, gleaner.backoff({{ retry.first }}, {{ retry.cap }}, v_attempts, p_id::text)) end;
        v_it.status := gleaner.settle_{{ name }}(v_row, {{ status.failed }}, v_due, true, v_attempts, v_row.{{ col.lost }}, coalesce(p_category, 'Error'), p_message);
    end if;
    return query select p_id, v_it.outcome, v_it.status;
end
{{ body }};
