{%- from "macros.sql" import quick_definer, tenant_param, tenant_is, same_caller, others, untouched -%}
/*
 * Marks claimed rows as begun. From here on a lost lease counts against the row; before, it was only parked with an agent
 * that went away. Agents that prefetch call it for many rows at once.
 */
create or replace function gleaner.start_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_leases bigint[])
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ quick_definer() }}
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
as $start$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    {{ key.type }}[];
{%- if sheaf %}
    v_of      {{ key.type }}[];
    v_begun   {{ key.type }}[] := '{}';
    v_sheaf   gleaner.sheaf;
{%- endif %}
begin
{%- if sheaf %}
    for v_sheaf in
        select s.*
        from gleaner.sheaf as s
        where s.queue = '{{ name }}' and s.id = any (array(select distinct -l from unnest(p_leases) as l where l < 0)) and {{ same_caller("s") }}
        order by s.id
        for update
    loop
        v_of := array(
            select u.id
            from unnest(p_ids, p_leases) as u (id, lease)
            join {{ table }} as q on q.{{ key.column }} = u.id
            where u.lease = -v_sheaf.id and v_sheaf.keys @> u.id and {{ untouched("q") }} and q.{{ status.column }} = {{ status.ready }});
        update gleaner.sheaf as s set begun = s.begun + (select range_agg(int8range(i, i, '[]')) from unnest(v_of) as i)
        where s.id = v_sheaf.id and cardinality(v_of) > 0;
        return query select d, 'done', ({{ status.running }})::text from unnest(v_of) as d;
        v_begun := v_begun || v_of;
    end loop;
{%- endif %}
    with changed as (
        update {{ table }} as q
        set {{ col.started }} = greatest(q.{{ col.started }}, 1)
{%- if status.claimed %},
            {{ status.column }} = {{ status.running }}
{%- endif %}
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where {{ tenant_is("q") }}q.{{ key.column }} = u.id and q.{{ col.lease }} = u.lease
          and q.{{ status.column }} in ({{ status.held }}) and {{ same_caller("q") }}
        returning q.{{ key.column }} as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    return query select d, 'done', ({{ status.running }})::text from unnest(v_done) as d;
{%- if sheaf %}
    v_done := v_done || v_begun;
{%- endif %}
    if cardinality(v_done) < cardinality(p_ids) then
        return query
{{ others("p_ids", "p_leases", "false") }};
    end if;
end
$start$;
