{%- from "macros.sql" import tenant_param, tenant_is, not_rejected, claimable_now, inner -%}
{%- from "find.sql" import setting, asked -%}
{#- The first row of the line or of the lane `h`, locked; null where it had a holder before. -#}
{%- macro first_row(condition) -%}
select case when q.{{ col.lost }} = 0 and q.{{ status.column }} in ({{ status.waiting }}) then q.{{ key.column }} end as id{% if not lane %} into v_key{% endif %} from {{ table }} as q
where {{ tenant_is("q") }}{{ condition }}{{ standing }}{% if lane %} and {{ lane.of }} = h.lane{% endif %}{% if kind %} and (p_kinds is null or {{ kind.of }} = any (p_kinds)){% endif %}
  and {{ claimable_now("q." ~ col.due, "p_now", "p_by") }} and {{ not_rejected("p_now") }}
order by q.{{ col.due }}, q.{{ key.column }} limit 1 for no key update skip locked
{%- endmacro -%}
{#- The first row of a lane: one descent of the index. -#}
{%- macro head(condition, and) -%}
select {{ lane.of }} as lane, {% if kind %}{{ kind.of }} as kind, {% endif %}q.{{ col.due }} as at, q.{{ key.column }} as id from {{ table }} as q
where {{ tenant_is("q") }}{{ condition }}{{ standing }}{{ and }} order by {{ lane.of }}, q.{{ col.due }}, q.{{ key.column }} limit 1
{%- endmacro -%}
{%- macro first(class, condition) %}
/*
 * The row that a claim of one takes: the first of the line{% if lane %}, in the lane whose head comes first{% endif %}, locked.
 * Returns  null where a longer look is needed: the row had a holder before, {% if lane %}there are many lanes, {% endif %}{% if engine == "bulk" %}rows wait in bulk ranges, a batch lease holds it or ran out, {% endif %}or nothing is due.
 * Cursor   where dead entries before the row make this look slow, the next looks of this session begin where the last one ended.
 */
create or replace function gleaner.first_{{ class ~ "_" if class }}{{ name }}({{ tenant_param() }}p_now timestamptz, p_by timestamptz{% if class == "own" %}, p_owner {{ owner.type }}{% endif %}{% if kind %}, p_kinds {{ kind.type }}[]{% endif %}) returns {{ key.type }} {{ inner() }}
declare
    v_begun timestamptz := clock_timestamp(); v_key {{ key.type }};
begin
{%- if lane %}
    with recursive heads as (
        ({{ head(condition, "") | indent(9) }})
        union all
        select next.* from heads cross join lateral (
            {{ head(condition, " and " ~ lane.of ~ " > heads.lane") | indent(12) }}
        ) as next
    ), few as (select * from heads limit 16)
    select f.id into v_key
    from (
        select h.lane from few as h
        where h.at <= p_by and (select count(*) from few) < 16{% if kind %} and (p_kinds is null or h.kind = any (p_kinds)){% endif %}
        order by h.at{% if priority %} + (h.lane & 15) * {{ priority.head_start }}{% endif %}, h.id limit 1
    ) as h
    cross join lateral (
        {{ first_row(condition) | indent(8) }}
    ) as f
{%- if engine == "bulk" %}
    where not exists (select from gleaner.bulk_range as r where r.queue = {{ name_literal }})
{%- endif %};
{%- else %}
    {{ first_row(condition) | indent(4) }};
{%- if engine == "bulk" %}
    if exists (select from gleaner.bulk_range as r where r.queue = {{ name_literal }}) then
        v_key := null;
    end if;
{%- endif %}
{%- endif %}
{%- if engine == "bulk" %}
    -- By now the row is locked: no other claim can put it in a batch any more.
    if exists (select from gleaner.batch_lease as b where b.queue = {{ name_literal }} and (b.due_at <= p_now or b.mark = 0 and b.keys @> v_key)) then
        v_key := null;
    end if;
{%- endif %}
    if clock_timestamp() - v_begun > interval '3 milliseconds' then
        perform gleaner.write_cursor('{{ setting(class) }}', {{ asked(class) }}, null, p_now, clock_timestamp() - v_begun, '{}');
    end if;
    return v_key;
end
{{ body }};
{%- endmacro -%}
{%- if parts or distributed -%}
{%- elif owner %}
{{ first("own", "q." ~ owner.column ~ " = p_owner and ") }}
{{ first("global", "q." ~ owner.column ~ " is null and ") }}
{%- else %}
{{ first("", "") }}
{%- endif %}
