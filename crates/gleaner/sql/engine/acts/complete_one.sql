{%- from "macros.sql" import act, tenant_param, tenant_arg -%}
-- The same for one row: for people at a prompt, and programs that work one at a time.
create or replace function gleaner.complete_{{ name }}({{ tenant_param() }}p_id {{ key.type }}, p_lease bigint, p_result jsonb default null) returns table (id {{ key.type }}, outcome text, status text)
language plpgsql security definer set search_path = {{ search_path }} set jit = off as {{ body }}
begin
    return query
    select p_id, m.outcome, m.status from gleaner.complete_{{ name }}_many({{ tenant_arg() }}array[p_id], array[p_lease], array[p_result]) as m;
end
{{ body }};
