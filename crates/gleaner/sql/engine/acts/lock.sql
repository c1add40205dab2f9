{%- from "macros.sql" import inner, tenant_param, tenant_is, by_lease, as_held -%}
-- The row that a holder means, locked, and how an act about it ends: done where the caller holds it. A caller who is not trusted reads
-- lost for a row that is gone, as for the row of another: it does not learn which rows there are.
create or replace function gleaner.lock_{{ name }}(
    {{ tenant_param() }}p_id {{ key.type }}, p_lease bigint, out held {{ table }}, out outcome text, out status text
) {{ inner() }}
declare
    v_own boolean;
begin
    select q.* into held from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = p_id{{ by_lease("p_lease") }} for no key update;
    {{- as_held("held") }}
    v_own := gleaner.is_trusted() or held.{{ col.session }} = gleaner.caller_session();
    outcome := case
        when held.{{ key.column }} is null and gleaner.is_trusted() then 'gone'
        when held.{{ status.column }} in ({{ status.held }}) and held.{{ col.lease }} = p_lease and v_own then 'done'
        when held.{{ status.column }} not in ({{ status.held }}) and held.{{ col.lease }} = p_lease + 1 then 'already'
        else 'lost'
    end;
    -- A caller who did not hold it last does not learn its status.
    status := case when v_own then held.{{ status.column }}::text end;
end
{{ body }};
