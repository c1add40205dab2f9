{%- from "macros.sql" import tenant_param, tenant_text, join_meant -%}
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
/*
 * Keeps results that came too late, as evidence, of callers who can have held the row: a row's leases only grow, so a former one is below
 * its lease, and a caller who signed in anew knows the present one. Each is kept once, at most 32 for a row and 4 of one sign-in, so
 * that made-up leases cannot fill the table.
 */
create or replace function gleaner.keep_late_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_leases bigint[], p_results jsonb[]) returns void
language plpgsql
as {{ body }}
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
begin
    insert into gleaner.late_result (queue, tenant, key, lease, caller, result)
    select {{ name_literal }}, {{ tenant_text() }}, late.key, late.lease, v_session, late.result
    from (select u.id::text as key, u.lease, u.result, row_number() over (partition by u.id order by u.n) as n
          from unnest(p_ids, p_leases, p_results) with ordinality as u (id, lease, result, n)
          {{ join_meant() }}
          where u.lease is not null and (v_trusted or u.lease <= q.{{ col.lease }})
            and (q.{{ col.lease }} = u.lease and q.{{ status.column }} = {{ status.done }}) is not true) as late
    cross join lateral (
        select count(*) as total, count(*) filter (where l.caller = v_session) as own,
               coalesce(bool_or(l.lease = late.lease and l.caller = v_session), false) as known
        from gleaner.late_result as l
        where l.queue = {{ name_literal }} and l.tenant = {{ tenant_text() }} and l.key = late.key) as kept
    where not kept.known and kept.total + late.n <= 32 and (v_trusted or kept.own + late.n <= 4);
end
{{ body }};
