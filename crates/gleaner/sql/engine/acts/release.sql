{%- from "macros.sql" import short_act, tenant_param, tenant_arg -%}
-- Gives work back without burning an attempt: an agent that shuts down, or took more than it can do.
create or replace function gleaner.release_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_leases bigint[]) returns table (id {{ key.type }}, outcome text, status text)
{{ short_act() }}
    select * from gleaner.put_back_{{ name }}({{ tenant_arg() }}p_ids, p_leases, clock_timestamp());
{{ body }};
