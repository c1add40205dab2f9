{%- from "macros.sql" import act, enter -%}
{%- set ran_out -%}
q.{{ status.column }} in ({{ status.held }}) and q.{{ col.due }} <= v_now - p_older_than{% if engine == "bulk" %} and q.{{ col.lease }} <> -1{% endif %}
{%- endset -%}
-- For display: up to a thousand rows whose lease ran out p_older_than ago wait again. Claims take such rows without it.
create or replace function gleaner.recover_{{ name }}(p_older_than interval default '0') returns integer
{{ act() }}
declare
    v_now timestamptz := clock_timestamp(); v_count integer;
begin
    {{ enter() }}
{%- if engine == "bulk" %}
    perform gleaner.unbatch_{{ name }}(null, array(select b.id from gleaner.batch_lease as b where b.queue = {{ name_literal }} and b.due_at <= v_now - p_older_than));
{%- endif %}
    perform gleaner.lose_{{ name }}(q) from (
        select q.* from {{ table }} as q
        where {{ ran_out }}
{%- if owner %}
          -- Through the indexes of owned rows and of the others.
          and q.{{ key.column }} = any (array(select q.{{ key.column }} from {{ unfinished }} where {{ ran_out }} order by q.{{ key.column }} limit 1000))
{%- endif %}
        order by q.{{ key.column }} limit 1000 for no key update skip locked) as q;
    get diagnostics v_count = row_count;
    return v_count;
end
{{ body }};
