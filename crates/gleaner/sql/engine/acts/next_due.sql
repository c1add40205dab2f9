{%- from "macros.sql" import act, tenant_param, tenant_is, tenant_text, in_lane, not_rejected, declare_rejected, is_paused -%}
{#- The first due time: of all rows, or of each lane. -#}
{%- macro soonest(condition, at) -%}
(
{%- if kind %}
            with recursive waiting as (
                (select {{ lane.of }} as lane, {{ kind.of }} as kind, 1 as n from {{ table }} as q
                 where p_kinds is null and {{ tenant_is("q") }}{{ condition }}{{ standing }} order by {{ lane.of }} limit 1)
                union all
                select next.lane, next.kind, waiting.n + 1
                from waiting
                cross join lateral (
                    select {{ lane.of }} as lane, {{ kind.of }} as kind from {{ table }} as q
                    where {{ tenant_is("q") }}{{ condition }}{{ standing }} and {{ lane.of }} > (waiting.lane | 15) order by {{ lane.of }} limit 1
                ) as next
                where waiting.n < 1000
            )
{%- endif %}
{%- if kind or priority %}
            select min(p.at)
            from {% if kind %}(select k::{{ kind.type }} as kind from unnest(p_kinds) as k union all select w.kind from waiting as w) as k cross join {% endif %}generate_series(0, {{ priority.last if priority else 0 }}) as c (class)
            cross join lateral (
                {{ first(condition, at) | indent(8) }}
            ) as p)
{%- else -%}
{{ first(condition, at) }})
{%- endif %}
{%- endmacro -%}
{%- macro first(condition, at) -%}
select {{ at }} as at from {{ table }} as q
        where {{ tenant_is("q") }}{{ condition }}{{ standing }}{{ in_lane("k.kind", "c.class") }}
          and {{ not_rejected("v_now") }}
{%- if engine == "bulk" %}
          and (q.{{ col.lease }} <> 0 or not v_batches @> q.{{ key.column }})
{%- endif %}
        order by {{ at }}, q.{{ key.column }} limit 1
{%- endmacro -%}
-- How long until a claim with the same arguments could find a row: zero when one is due, null when nothing waits.
create or replace function gleaner.next_due_{{ name }}(
{%- if tenant %}p_tenant {{ tenant.type }}{{ ", " if owner or kind }}{% endif %}
{%- if owner %}p_owner {{ owner.type }} default null{% if kind %}, {% endif %}{% endif %}
{%- if kind %}p_kinds text[] default null{% endif %}) returns interval
{{ act() }}
declare
    v_now timestamptz := clock_timestamp(); v_at timestamptz;
{{- declare_rejected("v_now") }}
{%- if engine == "bulk" %}
    v_batches int8multirange;
{%- endif %}
begin
{%- if engine == "bulk" %}
    select coalesce(range_agg(b.keys) filter (where b.mark = 0), '{}'), min(b.due_at) into v_batches, v_at from gleaner.batch_lease as b where b.queue = {{ name_literal }};
    v_at := least(v_at, gleaner.next_range_{{ name }}({% if kind %}p_kinds{% endif %}));
{%- endif %}
{%- if owner %}
    p_owner := gleaner.own_{{ name }}(p_owner);
{%- endif %}
    v_at := least(v_at,
        -- A rejected row is tried again when its time is over.
        (select min(r.until) from gleaner.rejected_row as r where r.queue = {{ name_literal }} and r.tenant = {{ tenant_text() }} and r.until > v_now),
{%- if owner %}
        {{ soonest("q." ~ owner.column ~ " = p_owner and ", "q." ~ col.due) }},
        {{ soonest("q." ~ owner.column ~ " is null and ", "q." ~ col.due) }},
        {{ soonest("q." ~ owner.column ~ " is not null and q." ~ col.open ~ " is not null and ", "q." ~ col.open) }});
{%- else %}
        {{ soonest("", "q." ~ col.due) }});
{%- endif %}
    -- Not by greatest alone, which passes over a null. Nothing while the queue is paused: whoever resumes it notifies those who wait.
    return case when v_at is not null and not {{ is_paused() }} then greatest(v_at - v_now, interval '0') end;
end
{{ body }};
