{%- from "macros.sql" import tenant_param, tenant_is, not_rejected, claimable_now, is_paused, inner -%}
{%- from "find.sql" import setting, asked -%}
{%- from "take.sql" import change -%}
{%- macro first(condition) -%}
select case when q.{{ col.lost }} = 0 and q.{{ status.column }} in ({{ status.waiting }}) then q.{{ key.column }} end{% if engine == "bulk" %} into v_key{% endif %} from {{ table }} as q
where {{ tenant_is("q") }}{{ condition }}{{ standing }}{% if lane %} and {{ lane.of }} = v_lane{% endif %}{% if kind %} and (p_kinds is null or {{ kind.of }} = any (p_kinds)){% endif %}
  and {{ claimable_now("q." ~ col.due, "v_now", "p_by") }}
  and {{ not_rejected("v_now") }}
  and not {{ is_paused() }}{% if engine == "bulk" %} and not exists (select from gleaner.bulk_range as r where r.queue = {{ name_literal }}){% endif %}
order by q.{{ col.due }}, q.{{ key.column }} limit 1 for no key update skip locked
{%- endmacro -%}
{%- macro take_first(class, condition) %}
/*
 * Takes the first row of the line{% if lane %}, in the lane whose head comes first{% endif %}: the usual claim, of one row.
 * Returns  null where a longer look is needed: the row had a holder before, {% if lane %}there are many lanes, {% endif %}{% if engine == "bulk" %}rows wait in bulk ranges, a batch lease holds it or ran out, {% endif %}or nothing is due.
 * Cursor   where dead entries before the row make this look slow, the next looks of this session begin where the last one ended.
 */
create or replace function gleaner.take_first_{{ class ~ "_" if class }}{{ name }}(
    {{ tenant_param() }}p_by timestamptz{% if class == "own" %}, p_owner {{ owner.type }}{% endif %}{% if kind %}, p_kinds {{ kind.type }}[]{% endif %}, p_agent text, v_session text, v_now timestamptz, p_hold interval, p_started boolean{% if holder.by %}, v_holder {{ holder.by.type }}{% endif %}
) returns {{ key.type }} {{ inner() }}
declare
    v_begun timestamptz := clock_timestamp();
    v_lease bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_key   {{ key.type }};
{%- if lane %}
    v_head  record; v_from bigint := -9223372036854775808; v_lane bigint; v_at timestamptz; v_id {{ key.type }};
{%- endif %}
begin
{%- if lane %}
    -- The first row of each lane: one descent of the index, and less work than one statement for all of them.
    for v_n in 1 .. 17 loop
        select {{ lane.of }} as lane, {% if kind %}{{ kind.of }} as kind, {% endif %}q.{{ col.due }} as at, q.{{ key.column }} as id into v_head from {{ table }} as q
        where {{ tenant_is("q") }}{{ condition }}{{ standing }} and {{ lane.of }} >= v_from
        order by {{ lane.of }}, q.{{ col.due }}, q.{{ key.column }} limit 1;
        exit when not found;
        if v_n > 16 then return null; end if;
        v_from := v_head.lane + 1;
        continue when v_head.at > p_by{% if kind %} or v_head.kind <> all (p_kinds){% endif %};
{%- if priority %}
        v_head.at := v_head.at + (v_head.lane & 15) * {{ priority.head_start }};
{%- endif %}
        if v_lane is null or (v_head.at, v_head.id) < (v_at, v_id) then
            v_lane := v_head.lane; v_at := v_head.at; v_id := v_head.id;
        end if;
    end loop;
{%- endif %}
{%- if engine == "bulk" %}
    {{ first(condition) | indent(4) }};
    -- By now the row is locked: a batch lease that does not hold it yet cannot come to hold it.
    {{ change("p_started", true) | indent(4) }}
    where q.{{ key.column }} = v_key
      and not exists (select from gleaner.batch_lease as b where b.queue = {{ name_literal }} and (b.due_at <= v_now or b.mark = 0 and b.keys @> v_key))
    returning q.{{ key.column }} into v_key;
{%- else %}
    {{ change("p_started", true) | indent(4) }}
    where {{ tenant_is("q") }}q.{{ key.column }} = (
        {{ first(condition) | indent(8) }})
    returning q.{{ key.column }} into v_key;
{%- endif %}
    if clock_timestamp() - v_begun > interval '3 milliseconds' then
        perform gleaner.write_cursor('{{ setting(class) }}', {{ asked(class) }}, null, v_now, clock_timestamp() - v_begun, '{}');
    end if;
    return v_key;
end
{{ body }};
{%- endmacro -%}
{%- if parts or distributed -%}
{%- elif owner %}
{{ take_first("own", "q." ~ owner.column ~ " = p_owner and ") }}
{{ take_first("global", "q." ~ owner.column ~ " is null and ") }}
{%- else %}
{{ take_first("", "") }}
{%- endif %}
