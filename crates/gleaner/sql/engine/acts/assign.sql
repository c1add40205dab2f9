{%- from "macros.sql" import act, tenant_text, tenant_param, tenant_arg, tenant_is, waiting_since, enter -%}
{%- if owner %}
/*
 * An operator's change of owner; null removes the owner, so that every agent may take the row. A running row stays with its holder; from now on the
 * new owner's policy says who may take it next.
 */
create or replace function gleaner.assign_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_owner {{ owner.type }})
returns table (id {{ key.type }}, outcome text, status text)
{{ act() }}
#variable_conflict use_column
declare
    v_done {{ key.type }}[];
begin
    {{ enter() }}
    perform gleaner.admit_{{ name }}({{ tenant_arg() }}p_ids);
    perform from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = any (p_ids) order by q.{{ key.column }} for no key update;
    insert into gleaner.audit (queue, tenant, key, act, caller, detail)
    select {{ name_literal }}, {{ tenant_text() }}, q.{{ key.column }}::text, 'assign', gleaner.caller_session(), jsonb_build_object('from', q.{{ owner.column }}, 'to', p_owner)
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
{%- if notify %}
    perform pg_notify('gleaner', {{ name_literal }});
{%- endif %}
    return query
    select u.id, u.outcome, q.{{ status.column }}::text
    from (select d, 'done' from unnest(v_done) as d
          union all
          (select i, 'already' from unnest(p_ids) as i except select d, 'already' from unnest(v_done) as d)) as u (id, outcome)
    join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = any (array[u.id]);
    return query
    select i, 'gone', null::text from unnest(p_ids) as i
    where not exists (select from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = i);
end
{{ body }};
{%- endif %}
