{%- from "macros.sql" import short_act, tenant_param, tenant_arg -%}
-- Puts the work off until a time, without burning an attempt.
create or replace function gleaner.snooze_{{ name }}({{ tenant_param() }}p_id {{ key.type }}, p_lease bigint, p_until timestamptz) returns table (id {{ key.type }}, outcome text, status text)
{{ short_act() }}
    select * from gleaner.put_back_{{ name }}({{ tenant_arg() }}array[p_id], array[p_lease], p_until);
{{ body }};
