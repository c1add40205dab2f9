{%- from "macros.sql" import inner, row_of_key, tenant_param, tenant_is, tenant_text, tenant_arg -%}
{%- from "take.sql" import take -%}
{%- set holder_param = holder and holder.by -%}
{%- set this_row -%}
{{ tenant_is("q") }}q.{{ key.column }} = p_keys[v_i]{% for part in parts %} and q.{{ part.column }} = p_part_{{ loop.index }}[v_i]{% endfor %}
{%- endset -%}
{%- set is_taken -%}
q.{{ status.column }} = {{ status.taken }} and q.{{ col.lease }} >= v_lease and q.{{ col.agent }} is not distinct from p_agent
{%- endset -%}
/*
 * Takes rows of a table on which something may reject the change: a check, a trigger that raises or skips it or sets another status.
 * All at once first; where that fails one by one, so that the others are worked. A row that rejects the claim is put off for a minute,
 * longer each time, and where it rejects that too it is noted and left out of claims for as long (gleaner.rejected_row).
 * Returns  the rows as they now stand, read after the change: what a failing statement returned could not be taken back.
 */
create or replace function gleaner.take_each_{{ name }}(
    {{ tenant_param() }}p_keys {{ key.type }}[]{% for part in parts %}, p_part_{{ loop.index }} {{ part.type }}[]{% endfor %}, p_most integer, p_agent text, v_session text, v_now timestamptz, p_hold interval, p_started boolean{% if holder_param %}, v_holder {{ holder.by.type }}{% endif %}{% if parts %}, p_before integer{% endif %}
) returns setof {{ table }} {{ inner() }}
declare
    v_lease  bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_keys   {{ key.type }}[];{% for part in parts %} v_part_{{ loop.index }} {{ part.type }}[];{% endfor %}{% if parts %} v_before integer;{% endif %} v_count integer; v_rejected integer := 0; v_wait interval; v_reason text;
begin
    for v_i in 0 .. cardinality(p_keys) loop
        -- Where all reject, a claim must still end.
        exit when v_rejected >= 100 or p_most <= 0;
        -- All at once, then each that was not taken.
        continue when case when v_i = 0 then cardinality(p_keys) > p_most else exists (select from {{ table }} as q where {{ this_row }} and {{ is_taken }}) end;
        v_keys := case when v_i = 0 then p_keys else p_keys[v_i : v_i] end;
{%- for part in parts %}
        v_part_{{ loop.index }} := case when v_i = 0 then p_part_{{ loop.index }} else p_part_{{ loop.index }}[v_i : v_i] end;
{%- endfor %}
{%- if parts %}
        v_before := p_before + greatest(v_i - 1, 0);
{%- endif %}
        v_reason := 'a trigger skipped the claim, or set another status';
        begin
            {{ take("p_started") | indent(12) }};
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
            v_reason := sqlerrm;
        end;
        return query select q.* from unnest(v_keys{% for part in parts %}, v_part_{{ loop.index }}{% endfor %}) as k (id{% for part in parts %}, part_{{ loop.index }}{% endfor %}) join {{ table }} as q on {{ row_of_key() }} and {{ is_taken }};
        get diagnostics v_count = row_count;
        exit when v_count = cardinality(p_keys);
        p_most := p_most - v_count;
        continue when v_i = 0 or v_count > 0;
        v_rejected := v_rejected + 1;
        v_wait := gleaner.reject_row({{ name_literal }}, {{ tenant_text() }}, {% if parts %}(p_keys[v_i]{% for part in parts %}, p_part_{{ loop.index }}[v_i]{% endfor %})::text{% else %}p_keys[v_i]::text{% endif %}, v_reason);
        begin
            -- The row moves, where it lets itself be moved, so that the next claims need not step over it.
            update {{ table }} as q set {{ col.due }} = v_now + v_wait where {{ this_row }} and {{ claimable }};
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
        end;
    end loop;
end
{{ body }};
