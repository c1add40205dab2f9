{%- from "macros.sql" import act, enter -%}
/*
 * A sweep for display: rows whose lease ran out at least p_older_than ago wait again, to be seen as waiting.
 * Nothing depends on it: a claim takes such rows by itself. At most a thousand rows of a tenant and a hundred tenants per call: rows are
 * locked one shard at a time.
 */
create or replace function gleaner.recover_{{ name }}(p_older_than interval default '0') returns integer
{{ act() }}
declare
    v_now    timestamptz := clock_timestamp();
    v_before timestamptz := v_now - p_older_than;
    v_count  integer := 0;
    v_tenant {{ tenant.type }};
    v_row    {{ table }};
begin
    foreach v_tenant in array array(
        select q.{{ tenant.column }} from {{ table }} as q
        where q.{{ status.column }} in ({{ status.held }}) and q.{{ col.due }} <= v_before
        group by q.{{ tenant.column }} order by q.{{ tenant.column }} limit 100)
    loop
        for v_row in
            select q.*
            from {{ table }} as q
            where q.{{ tenant.column }} = v_tenant and q.{{ status.column }} in ({{ status.held }}) and q.{{ col.due }} <= v_before
            order by q.{{ key.column }}
            limit 1000
            for no key update skip locked
        loop
            perform gleaner.lose_{{ name }}(v_row);
            v_count := v_count + 1;
        end loop;
    end loop;
    return v_count;
end
{{ body }};
