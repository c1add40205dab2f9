{%- from "macros.sql" import long_act, enter, tenant_param, tenant_arg -%}
-- Lets rows wait again until p_due, for the holder, without counting an attempt. In key order, so that two of them never deadlock.
create or replace function gleaner.put_back_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_leases bigint[], p_due timestamptz)
returns table (id {{ key.type }}, outcome text, status text)
{{ long_act() }}
declare
    v_item record; v_it record;
begin
    {{ enter() }}
    perform gleaner.check_time('snooze', p_due);
    perform gleaner.check_leases(p_ids, p_leases);
{%- if engine == "bulk" %}
    perform gleaner.unbatch_{{ name }}(p_ids, array(select distinct -l from unnest(p_leases) as l where l < 0));
{%- endif %}
    for v_item in select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id loop
        v_it := gleaner.lock_{{ name }}({{ tenant_arg() }}v_item.id, v_item.lease);
        id := v_item.id; outcome := v_it.outcome; status := v_it.status;
        if outcome = 'done' then
            status := gleaner.settle_{{ name }}(v_it.held, {{ status.ready }}, p_due, true, (v_it.held).{{ col.attempts }}, (v_it.held).{{ col.lost }});
        end if;
        return next;
    end loop;
end
{{ body }};
