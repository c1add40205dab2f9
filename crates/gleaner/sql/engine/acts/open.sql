{%- if owner %}
/*
 * From when anyone may take a row of this owner that has waited since p_since: its policy today, or null when the owner
 * keeps work private. Stamped on the row to order the steal probe; the claim asks the owner's row again.
 */
create or replace function gleaner.open_{{ name }}(p_owner {{ owner.type }}, p_since timestamptz, p_due timestamptz) returns timestamptz
language plpgsql stable
as {{ body }}
begin
    return (
        select case when {{ owner.shared }} then greatest(p_since + {{ owner.open_after }}, p_due) end
{%- if owner.table %}
        from (select p_owner as id) as asked
        left join {{ owner.table }} as o on o.{{ owner.key }} = asked.id
{%- endif %});
end
{{ body }};
{%- endif %}
