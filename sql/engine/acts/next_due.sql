{%- from "macros.sql" import quick_definer, tenant_param, tenant_is, unheld -%}
{%- macro soonest(condition, at) -%}
{%- if kind -%}
select min(p.at)
            from unnest(coalesce(p_kinds::{{ kind.type }}[], array(
                with recursive kinds as (
                    (select {{ kind.of }} as kind from {{ table }} as q
                     where {{ tenant_is("q") }}{{ condition }} and {{ claimable }} order by {{ kind.of }} limit 1)
                    union all
                    select (select {{ kind.of }} from {{ table }} as q
                            where {{ tenant_is("q") }}{{ condition }} and {{ claimable }} and {{ kind.of }} > kinds.kind
                            order by {{ kind.of }} limit 1)
                    from kinds where kinds.kind is not null
                )
                select k.kind from kinds as k where k.kind is not null))) as l (kind)
            cross join generate_series(0, {{ priority.last if priority else 0 }}) as c (class)
            cross join lateral (
                select {{ at }} as at from {{ table }} as q
                where {{ tenant_is("q") }}{{ condition }} and {{ claimable }} and {{ kind.of }} = l.kind and q.{{ key.column }} <> all (v_passed){{ unheld() }}
{%- if priority %} and {{ priority.of }} = c.class{% endif %}
                order by {{ at }}, q.{{ key.column }} limit 1
            ) as p
{%- else -%}
select min(p.at)
            from generate_series(0, {{ priority.last if priority else 0 }}) as c (class)
            cross join lateral (
                select {{ at }} as at from {{ table }} as q
                where {{ tenant_is("q") }}{{ condition }} and {{ claimable }} and q.{{ key.column }} <> all (v_passed){{ unheld() }}
{%- if priority %} and {{ priority.of }} = c.class{% endif %}
                order by {{ at }}, q.{{ key.column }} limit 1
            ) as p
{%- endif -%}
{%- endmacro -%}
/*
 * How long until a claim with the same arguments could find a row: zero when one is due, null when nothing waits.
 * A duration and not a time: the caller's clock is not the database's.
 */
create or replace function gleaner.next_due_{{ name }}(
    {% if tenant %}p_tenant {{ tenant.type }}{{ ", " if owner or kind }}{% endif %}
{%- if owner %}p_owner {{ owner.type }} default null{% if kind %}, {% endif %}{% endif %}
{%- if kind %}p_kinds text[] default null{% endif %}
) returns interval
language plpgsql
{{ quick_definer() }}
as $next_due$
declare
    v_at     timestamptz;
    v_until  timestamptz;
    v_passed {{ key.type }}[];
{%- if sheaf %}
    v_sheaves int8multirange;
    v_lapses  timestamptz;
{%- endif %}
begin
    -- Claims step over rows that refused a change a moment ago; who waits for one of those waits until it is tried again.
    select coalesce(array_agg(o.key::{{ key.type }}), '{}'), min(o.until)
    into v_passed, v_until
    from gleaner.offender as o where o.queue = '{{ name }}' and o.until > clock_timestamp();
{%- if sheaf %}
    select coalesce(range_agg(s.keys), '{}'), min(s.due_at) into v_sheaves, v_lapses from gleaner.sheaf as s where s.queue = '{{ name }}';
{%- endif %}
{%- if owner %}
    p_owner := gleaner.own_{{ name }}(p_owner);
    select least(
        ({{ soonest("q." ~ owner.column ~ " = p_owner", "q." ~ col.due) }}),
        ({{ soonest("q." ~ owner.column ~ " is null", "q." ~ col.due) }}),
        ({{ soonest("q." ~ owner.column ~ " is not null and q." ~ col.open ~ " is not null", "q." ~ col.open) }}))
    into v_at;
{%- else %}
    {{ soonest("true", "q." ~ col.due) }}
    into v_at;
{%- endif %}
    v_at := least(v_at, v_until{{ ', v_lapses' if sheaf }});
    -- Not by greatest alone, which passes over a null: nothing waits would read as due now.
    return case when v_at is not null then greatest(v_at - clock_timestamp(), interval '0') end;
end
$next_due$;
