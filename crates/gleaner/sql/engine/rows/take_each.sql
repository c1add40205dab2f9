{%- from "macros.sql" import row_of_key, tenant_param, tenant_is, tenant_text, tenant_arg -%}
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
) returns setof {{ table }}
language plpgsql
as {{ body }}
declare
    v_lease    bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_keys     {{ key.type }}[] := p_keys;
{%- for part in parts %}
    v_part_{{ loop.index }} {{ part.type }}[] := p_part_{{ loop.index }};
{%- endfor %}
{%- if parts %}
    v_before   integer := p_before;
{%- endif %}
    v_count    integer;
    v_wait     interval;
    v_reason   text;
begin
    if cardinality(p_keys) <= p_most then
        begin
            {{ take("p_started") | indent(4) }};
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
        end;
    end if;
    return query
    select q.*
    from unnest(p_keys{% for part in parts %}, p_part_{{ loop.index }}{% endfor %}) as k (id{% for part in parts %}, part_{{ loop.index }}{% endfor %})
    join {{ table }} as q on {{ row_of_key() }} and {{ is_taken }};
    get diagnostics v_count = row_count;
    p_most := p_most - v_count;
    if v_count = cardinality(p_keys) then
        return;
    end if;
    v_count := 0;
    for v_i in 1 .. cardinality(p_keys) loop
        -- Where all reject, a claim must still end.
        exit when v_count >= 100 or p_most <= 0;
        continue when exists (select from {{ table }} as q where {{ this_row }} and {{ is_taken }});
        v_keys := p_keys[v_i : v_i];
{%- for part in parts %}
        v_part_{{ loop.index }} := p_part_{{ loop.index }}[v_i : v_i];
{%- endfor %}
{%- if parts %}
        v_before := p_before + v_i - 1;
{%- endif %}
        v_reason := 'a trigger skipped the claim, or set another status';
        begin
            {{ take("p_started") | indent(4) }};
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
            v_reason := sqlerrm;
        end;
        return query select q.* from {{ table }} as q where {{ this_row }} and {{ is_taken }};
        if found then
            p_most := p_most - 1;
            continue;
        end if;
        v_count := v_count + 1;
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
