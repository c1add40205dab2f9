{%- from "macros.sql" import quick_definer, tenant_param, tenant_is, in_lane, waiting_kinds, lying_kinds, unheld -%}
{%- macro soonest(condition, at) -%}
select min(p.at)
            from {% if kind %}unnest(coalesce(p_kinds::{{ kind.type }}[], {{ waiting_kinds(condition) }})) as l (kind) cross join {% endif %}generate_series(0, {{ priority.last if priority else 0 }}) as c (class)
            cross join lateral (
                select {{ at }} as at from {{ table }} as q
                where {{ tenant_is("q") }}{{ condition }} and {{ standing }}{{ in_lane("l.kind", "c.class") }} and q.{{ key.column }} <> all (v_passed){{ unheld() }}
                order by {{ at }}, q.{{ key.column }} limit 1
            ) as p
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
    v_swath   timestamptz;
{%- endif %}
begin
    -- Claims step over rows that refused a change a moment ago; who waits for one of those waits until it is tried again.
    select coalesce(array_agg(o.key::{{ key.type }}), '{}'), min(o.until)
    into v_passed, v_until
    from gleaner.offender as o where o.queue = '{{ name }}' and o.until > clock_timestamp();
{%- if sheaf %}
    select coalesce(range_agg(s.keys), '{}'), min(s.due_at) into v_sheaves, v_lapses from gleaner.sheaf as s where s.queue = '{{ name }}';
    select min(head.due_at)
    into v_swath
    from unnest({% if kind %}coalesce(p_kinds, {{ lying_kinds() }}){% else %}array['']{% endif %}) as k (kind)
    cross join generate_series(0, {{ priority.last if priority else 0 }}) as c (class)
    cross join lateral (
        select s.due_at from gleaner.swath as s
        where s.queue = '{{ name }}' and s.kind = k.kind and s.class = c.class order by s.due_at, s.first limit 1
    ) as head;
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
    v_at := least(v_at, v_until{{ ', v_lapses, v_swath' if sheaf }});
    -- Not by greatest alone, which passes over a null: nothing waits would read as due now.
    return case when v_at is not null then greatest(v_at - clock_timestamp(), interval '0') end;
end
$next_due$;
