{%- from "macros.sql" import act, tenant_text, tenant_param, tenant_is, enter, leave_batch -%}
-- An operator's skip: the row is dead, whatever it was doing, with the reason.
create or replace function gleaner.bury_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_reason text default null)
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ act() }}
as {{ body }}
#variable_conflict use_column
declare
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
        if v_row.{{ status.column }} not in ({{ status.claimable }}) or v_row.{{ col.due }} is null then
            return query select v_row.{{ key.column }}, 'already', v_row.{{ status.column }}::text;
            continue;
        end if;
        insert into gleaner.audit (queue, tenant, key, act, caller, detail)
        values ({{ name_literal }}, {{ tenant_text() }}, v_row.{{ key.column }}::text, 'bury', gleaner.caller_session(),
                jsonb_build_object('from', v_row.{{ status.column }}, 'reason', p_reason));
        perform gleaner.end_{{ name }}(v_row, coalesce(p_reason, 'buried by hand'), 'Buried', v_row.{{ col.attempts }}, v_row.{{ col.lost }});
        return query select v_row.{{ key.column }}, 'done', ({{ status.failed }})::text;
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = u.id);
end
{{ body }};
