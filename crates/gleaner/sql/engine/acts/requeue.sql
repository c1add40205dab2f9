{%- from "macros.sql" import act, tenant_text, tenant_param, tenant_is, enter, leave_batch -%}
/*
 * An operator's retry: the row waits again, due now, with its counts at zero. Also for finished and cancelled rows;
 * a running one is taken from its holder. Already waiting and due: nothing to do.
 */
create or replace function gleaner.requeue_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[])
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ act() }}
as {{ body }}
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
    v_row {{ table }};
begin
    {{ enter() }}
    {{- leave_batch("p_ids") }}
    for v_row in
        select q.*
        from {{ table }} as q
        where {{ tenant_is("q") }}q.{{ key.column }} = any (p_ids)
        order by q.{{ key.column }}
        for no key update
    loop
        if v_row.{{ status.column }} = {{ status.ready }} and v_row.{{ col.due }} <= v_now
{%- if engine == "bulk" %}
           -- A row whose bulk range is lost waits where no claim looks; it goes back in the line by itself.
           and (v_row.{{ col.lease }} <> -1 or (gleaner.range_keys({{ name_literal }}) + gleaner.batch_keys({{ name_literal }})) @> v_row.{{ key.column }})
{%- endif %} then
            return query select v_row.{{ key.column }}, 'already', v_row.{{ status.column }}::text;
            continue;
        end if;
        insert into gleaner.audit (queue, tenant, key, act, caller, detail)
        values ({{ name_literal }}, {{ tenant_text() }}, v_row.{{ key.column }}::text, 'requeue', gleaner.caller_session(), jsonb_build_object('from', v_row.{{ status.column }}));
        return query select v_row.{{ key.column }}, 'done', gleaner.put_back_{{ name }}(v_row, {{ status.ready }}, v_now, false, 0, 0);
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = u.id);
end
{{ body }};
