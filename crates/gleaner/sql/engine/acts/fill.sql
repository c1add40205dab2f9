{%- from "macros.sql" import waiting_since, in_zone -%}
{#- Run by attach and not kept: gives rows that were there before the queue their times. -#}
update {{ table }} as q
set {{ col.due }} = case when {{ when.q.held }} then {{ held_until }}
                    else {% if due %}coalesce({{ in_zone("q." ~ due.column, due.type) }}, {{ now }}){% elif created %}least(coalesce({{ in_zone("q." ~ created.column, created.type) }}, {{ now }}), {{ now }}){% else %}{{ now }}{% endif %} end
{%- if owner %},
    {{ col.open }} = case when q.{{ owner.column }} is null then {{ waiting_since("q") }}
                     else gleaner.open_{{ name }}(q.{{ owner.column }}, coalesce({{ waiting_since("q") }}, {{ now }}),
                          case when {{ when.q.held }} then {{ held_until }} else {{ waiting_since("q") }} end) end
{%- endif %}
where q.{{ col.due }} is null and q.{{ status.column }} in ({{ status.ready }}, {{ status.held }}) and {{ condition }}
