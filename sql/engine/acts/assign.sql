{%- from "macros.sql" import definer, tenant_param, tenant_is, waiting_since -%}
{%- if owner %}
/*
 * An operator's change of owner; null gives the row to everybody. A running row stays with its holder; from now on the
 * new owner's policy says who may take it next.
 */
create or replace function gleaner.assign_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_owner {{ owner.type }})
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ definer() }}
as $assign$
#variable_conflict use_column
declare
    v_done {{ key.type }}[];
begin
    perform from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = any (p_ids) order by q.{{ key.column }} for no key update;
    insert into gleaner.audit (queue, key, act, caller, detail)
    select '{{ name }}', q.{{ key.column }}::text, 'assign', gleaner.caller_session(), jsonb_build_object('from', q.{{ owner.column }}, 'to', p_owner)
    from {{ table }} as q
    where {{ tenant_is("q") }}q.{{ key.column }} = any (p_ids) and q.{{ owner.column }} is distinct from p_owner;
    with changed as (
        update {{ table }} as q
        set {{ owner.column }} = p_owner,
            {{ col.open }} = case when p_owner is null then q.{{ col.due }}
                             else gleaner.open_{{ name }}(p_owner, {{ waiting_since("q") }}, q.{{ col.due }}) end
        where {{ tenant_is("q") }}q.{{ key.column }} = any (p_ids) and q.{{ owner.column }} is distinct from p_owner
        returning q.{{ key.column }} as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    return query
    select u.id,
           case when u.id = any (v_done) then 'done' when q.{{ key.column }} is null then 'gone' else 'already' end,
           q.{{ status.column }}::text
    from unnest(p_ids) as u (id)
    left join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = u.id;
end
$assign$;
{%- endif %}
