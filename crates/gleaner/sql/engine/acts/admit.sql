{%- from "macros.sql" import inner, tenant_param, tenant_is -%}
{%- if owner or grant.admits %}
/*
 * Admits an operator to these rows, before anything changes. Roles that may operate, the service key and administrators are admitted
 * to all rows{% if grant.own != "'{}'" %}; members to {% if owner %}rows of their own and rows without an owner{% elif grant.groups %}rows of their groups{% else %}rows that the declaration's function admits{% endif %}{% endif %}.
 * Raises   42501 for other callers, and for a member where a row is not theirs or does not exist: the answer to both is the same, so that
 *          nobody learns which rows others have.
{%- if owner %}
 * Locks    a member's rows in key order: an owner that was checked stays the owner.
{%- endif %}
 */
create or replace function gleaner.admit_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[]) returns void {{ inner() }}
{%- if owner %}
declare
    v_owner {{ owner.type }};
    v_other {{ key.type }};
begin
    if gleaner.operates({{ name_literal }}, {{ grant.operate }}, {{ grant.own }}) = 'all' then
        return;
    end if;
    v_owner := gleaner.own_{{ name }}(null);
    perform from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = any (p_ids) order by q.{{ key.column }} for no key update;
    select i.id into v_other from unnest(p_ids) as i (id)
    where not exists (
        select from {{ table }} as q
        where {{ tenant_is("q") }}q.{{ key.column }} = any (array[i.id]) and (q.{{ owner.column }} is null or q.{{ owner.column }} = v_owner))
    limit 1;
    if found then
        raise exception '% does not exist or belongs to another owner: only administrators may do this', v_other
            using errcode = '42501', hint = 'Leave it out, or ask an administrator of the team.';
    end if;
end
{%- else %}
declare
    v_other {{ key.type }};
begin
    if gleaner.operates({{ name_literal }}, {{ grant.operate }}, {{ grant.own }}) = 'all' then
        return;
    end if;
    select i.id into v_other from unnest(p_ids) as i (id)
    where not exists (
        select from {{ table }} as q
        where {{ tenant_is("q") }}q.{{ key.column }} = any (array[i.id]) and {{ grant.admits }})
    limit 1;
    if found then
        raise exception '% does not exist or belongs to another {{ "group" if grant.groups else "member" }}: only administrators may do this', v_other
            using errcode = '42501', hint = 'Leave it out, or ask an administrator of the team.';
    end if;
end
{%- endif %}
{{ body }};
{%- endif %}
