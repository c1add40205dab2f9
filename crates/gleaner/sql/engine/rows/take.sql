{%- from "macros.sql" import row_of_key, tenant_is, in_zone, keep_open -%}
{#- The change a claim makes to a row. A lease that ran out on work that was begun is a lost one. Of work that was not, `started` counts how often, below
    zero. -#}
{%- macro change(started, fresh) -%}
update {{ table }} as q
set {{ status.column }} = {{ status.taken }},
    {{ col.due }} = v_now + least(coalesce(p_hold, {{ hold }}), {{ deadline }}), {{ col.deadline }} = v_now + {{ deadline }},
{%- if owner %}
    {{ col.open }} = {{ keep_open("q", "v_now + least(coalesce(p_hold, " ~ hold ~ "), " ~ deadline ~ ")") }},
{%- endif %}
{%- if parts %}
    -- Rows may share an id: each has a lease of its own, and the one after it, which its holder's act leaves behind.
{%- endif %}
    {{ col.lease }} = greatest(q.{{ col.lease }} + 1, v_lease{% if parts %} + 2 * (v_before + k.n){% endif %}),
{%- if not fresh %}
    {{ col.lost }} = q.{{ col.lost }} + {{ lost_now }},
{%- endif %}
{%- if recovered and not fresh %}
    {{ recovered.column }} = case when {{ lost_now }} = 1 then {{ recovered_value }} else q.{{ recovered.column }} end,
{%- endif %}
    {{ col.started }} = case when {{ started }} then 1 {% if not fresh %}when q.{{ status.column }} in ({{ status.held }}) and q.{{ col.started }} <= 0 then greatest(q.{{ col.started }} - 1, -15) {% endif %}else 0 end,
    {{ col.agent }} = p_agent, {{ col.session }} = v_session
{%- if holder and holder.by %},
    {{ holder.by.column }} = v_holder
{%- endif %}
{%- if holder and holder.at %},
    {{ holder.at.column }} = {{ in_zone("v_now", holder.at.type) }}
{%- endif %}
{%- endmacro -%}
{#- Takes the rows whose keys stand in the array `v_keys`, in its order. -#}
{%- macro take(started) -%}
{{ change(started, false) }}
from unnest(v_keys{% for part in parts %}, v_part_{{ loop.index }}{% endfor %}){% if parts %} with ordinality{% endif %} as k (id{% for part in parts %}, part_{{ loop.index }}{% endfor %}{% if parts %}, n{% endif %}) where {{ row_of_key() }}
{%- endmacro -%}
