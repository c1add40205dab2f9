{%- from "macros.sql" import tenant_text, join_meant -%}
{#- The result column's new value. -#}
{%- macro result_value() -%}
{%- if result.type == "jsonb" -%}
case when u.result is null then q.{{ result.column }}
                -- Partial results of earlier stages stay beside the final ones.
                when jsonb_typeof(q.{{ result.column }}) = 'object' and jsonb_typeof(u.result) = 'object' then q.{{ result.column }} || u.result
                else u.result end
{%- else -%}
coalesce(u.result #>> '{}', q.{{ result.column }})
{%- endif -%}
{%- endmacro -%}
{#- Keeps results that came too late, of callers who can have held the row: a row's leases only grow, so a former one is below
    its lease, and a caller who signed in anew knows the present one. -#}
{%- macro keep_late() -%}
{%- if not distributed -%}
perform gleaner.keep_late({{ name_literal }}, {{ tenant_text() }}, u.id::text, u.lease, u.result)
        from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
        {{ join_meant() }}
        where (v_trusted or u.lease <= q.{{ col.lease }}) and (q.{{ col.lease }} = u.lease and q.{{ status.column }} = {{ status.done }}) is not true;
{%- else -%}
for v_late in
            select u.id::text as key, u.lease, u.result from unnest(p_ids, p_leases, p_results) with ordinality as u (id, lease, result, n)
            {{ join_meant() }}
            where (v_trusted or u.lease <= q.{{ col.lease }}) and (q.{{ col.lease }} = u.lease and q.{{ status.column }} = {{ status.done }}) is not true
            order by u.n
        loop
            perform gleaner.keep_late({{ name_literal }}, {{ tenant_text() }}, v_late.key, v_late.lease, v_late.result);
        end loop;
{%- endif -%}
{%- endmacro -%}
