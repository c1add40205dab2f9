{%- from "macros.sql" import act, enter, tenant_param, tenant_arg, tenant_is, in_zone, inner -%}
{#- When the row `r` is due, and since when it waits; what an item leaves out is null. -#}
{%- set due_of -%}
coalesce({% if due %}{{ in_zone("r." ~ due.column, due.type) }}, {% endif %}r.{{ col.due }}{% if created %}, {{ in_zone("r." ~ created.column, created.type) }}{% endif %}, $2)
{%- endset -%}
{%- if owner %}
{%- set since -%}
{% if created %}{{ "greatest(w.due, " if due }}coalesce({{ in_zone("r." ~ created.column, created.type) }}, $2){{ ")" if due }}{% else %}w.due{% endif %}
{%- endset -%}
{%- endif %}
{%- set not_written -%}
array[{{ engine_names }}, {{ col_literals.due }}{% if owner %}, {{ col_literals.open }}{% endif %}{% if tenant %}, {{ tenant.literal }}{% endif %}]
{%- endset -%}
{#- The statement that inserts a run of items: $1 the items as an array, $2 the time, $3 the tenant. What the adapter does for plain
    inserts is done here. Engine columns in an item are left out: it was read from the table and is enqueued again. -#}
{%- macro insert(run) -%}
format(
            'insert into {{ table_text }} as q (%s{% if tenant %}{{ tenant.column | in_format }}, {% endif %}{{ col.due | in_format }}{% if owner %}, {{ col.open | in_format }}{% endif %}) '
            'select %s{% if tenant %}$3, {% endif %}w.due{% if owner %}, case when r.{{ owner.column | in_format }} is null then w.due else gleaner.open_{{ name }}(r.{{ owner.column | in_format }}, {{ since | in_format }}, w.due) end{% endif %} '
            'from jsonb_populate_recordset(null::{{ table_text }}, $1) as r cross join lateral (select {{ due_of | in_format }} as due) as w ',
            {{ run }}.columns, {{ run }}.taken)
{%- endmacro -%}
{%- set all_items -%}
case jsonb_typeof(p_items) when 'array' then p_items else jsonb_build_array(p_items) end
{%- endset -%}
/*
 * Enqueues an item, or an array of items: objects whose keys are columns. Answers in their order{{ "" if unique else "." }}{% if unique %}: enqueued, standing or replaced.{% endif %}
{%- if unique %}
 * A row waiting with the same unique key stands: with 'skip' its id is returned, with 'replace' it takes the new values.
 * A running row does not stand in the way, and is never replaced. Unique keys are taken in their order, so that two calls never deadlock.
{%- endif %}
 */
create or replace function gleaner.enqueue_{{ name }}({{ tenant_param() }}p_items jsonb, p_on_duplicate text default 'skip')
returns table (id {{ key.type }}, outcome text)
{{ act() }}
declare
    v_run record;
begin
    {{ enter() }}
{%- if unique %}
    if exists (select from jsonb_array_elements({{ all_items }}) as i (item) where i.item ->> {{ unique.literal }} is not null) then
        return query select u.id, u.outcome from gleaner.enqueue_unique_{{ name }}({{ tenant_arg() }}p_items, p_on_duplicate) as u order by u.n;
        return;
    end if;
{%- endif %}
    for v_run in select * from gleaner.group_items({{ table_literal }}, p_items, p_on_duplicate, {{ not_written }}) loop
        return query execute {{ insert("v_run") }}
            || 'returning q.{{ key.column | in_text }}, ''enqueued''' using v_run.items, clock_timestamp(){% if tenant %}, p_tenant{% endif %};
    end loop;
end
{{ body }};
{%- if unique %}

-- Items of which some have a unique key, one by one, in the order of those keys. Returns each item's place.
create or replace function gleaner.enqueue_unique_{{ name }}({{ tenant_param() }}p_items jsonb, p_on_duplicate text)
returns table (n bigint, id {{ key.type }}, outcome text) {{ inner() }}
#variable_conflict use_column
declare
    v_item   record; v_run record;
    v_sql    text;
    v_update text;
begin
    for v_item in
        select i.item, i.n, i.item ->> {{ unique.literal }} as unique_key
        from jsonb_array_elements({{ all_items }}) with ordinality as i (item, n)
        order by i.item ->> {{ unique.literal }} nulls first, i.n
    loop
        n := v_item.n;
        id := null;
        select * into v_run from gleaner.group_items({{ table_literal }}, v_item.item, p_on_duplicate, {{ not_written }});
        v_sql := {{ insert("v_run") }};
        select string_agg(format('%1$I = excluded.%1$I', c), ', ') into v_update
        from (select distinct unnest(v_run.names || array[{{ col_literals.due }}{% if owner %}, {{ col_literals.open }}{% endif %}]) as c) as columns
        where c <> all (array[{{ engine_names }}, {{ unique_names }}]);
        for v_try in 1 .. 5 loop
            if v_item.unique_key is not null and p_on_duplicate = 'replace' then
                execute v_sql || ' on conflict ({{ unique.target | in_text }}) where {{ unique.predicate_in_text }} do update set ' || v_update || ' returning q.{{ key.column | in_text }}, case when q.xmax = 0 then ''enqueued'' else ''replaced'' end'
                into id, outcome using jsonb_build_array(v_item.item), clock_timestamp(){% if tenant %}, p_tenant{% endif %};
                exit;
            end if;
{%- if distributed %}
            -- Citus miscounts what `on conflict do nothing` returns.
            begin
                execute v_sql || ' returning q.{{ key.column | in_text }}' into id using jsonb_build_array(v_item.item), clock_timestamp(), p_tenant;
            exception when unique_violation then
                id := null;
            end;
{%- else %}
            execute v_sql || ' on conflict ({{ unique.target | in_text }}) where {{ unique.predicate_in_text }} do nothing returning q.{{ key.column | in_text }}'
            into id using jsonb_build_array(v_item.item), clock_timestamp(){% if tenant %}, p_tenant{% endif %};
{%- endif %}
            outcome := 'enqueued';
            exit when id is not null;
            -- The row that stands may be newer than this statement's snapshot, or taken by now: look, then try again.
            select q.{{ key.column }}, 'standing' into id, outcome
            from {{ table }} as q
            where {{ tenant_is("q") }}q.{{ unique.column }} = v_item.unique_key::{{ unique.type }}
              and q.{{ status.column }} in ({{ status.waiting }}) and q.{{ col.due }} is not null;
            exit when id is not null;
        end loop;
        if id is null then
            raise exception 'could not enqueue: the unique key % is contended', v_item.unique_key using errcode = '40001';
        end if;
        return next;
    end loop;
end
{{ body }};
{%- endif %}
