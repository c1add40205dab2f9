{%- from "macros.sql" import act, enter, tenant_param, tenant_arg, tenant_is, in_zone -%}
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
/*
 * The statement that inserts items with these columns: $1 the items as an array, $2 the time{% if tenant %}, $3 the tenant{% endif %}. What the adapter does for
 * plain inserts is done here: when the row is due{% if owner %}, and from when it is open to all{% endif %}. Other engine columns in an item are left out: it was
 * read from the table and is enqueued again.
 */
create or replace function gleaner.insert_sql_{{ name }}(p_names text[]) returns text
language plpgsql
as {{ body }}
declare
    v_unknown text := (
        select string_agg(n, ', ') from unnest(p_names) as n
        where not exists (select from pg_attribute as a where a.attrelid = {{ table_literal }}::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped));
begin
    if v_unknown is not null then
        raise exception 'no such column in {{ table_text }}: %', v_unknown using errcode = '42703';
    end if;
    return (
        select format(
            'insert into {{ table_text }} as q (%s{% if tenant %}{{ tenant.column | in_format }}, {% endif %}{{ col.due | in_format }}{% if owner %}, {{ col.open | in_format }}{% endif %}) '
            'select %s{% if tenant %}$3, {% endif %}w.due{% if owner %}, case when r.{{ owner.column | in_format }} is null then w.due else gleaner.open_{{ name }}(r.{{ owner.column | in_format }}, {{ since | in_format }}, w.due) end{% endif %} '
            'from jsonb_populate_recordset(null::{{ table_text }}, $1) as r cross join lateral (select {{ due_of | in_format }} as due) as w',
            coalesce(string_agg(format('%I, ', n), ''), ''), coalesce(string_agg(format('r.%I, ', n), ''), ''))
        from unnest(p_names) as n where n <> all ({{ not_written }}));
end
{{ body }};

/*
 * Enqueues one item or many: p_items is an object or an array of objects whose keys are columns of the table.
 * Part of the caller's transaction: the row exists when, and only when, that commits. Plain inserts do as well.
{%- if unique %}
 * A row waiting with the same unique key stands: with 'skip' its id is returned, with 'replace' it takes the new values.
 * A running row does not stand in the way, and is never replaced. Unique keys are taken in their order, so that two calls never deadlock.
{%- endif %}
 * Returns  per item, in order: its id and enqueued{{ ", standing or replaced" if unique }}.
 */
create or replace function gleaner.enqueue_{{ name }}({{ tenant_param() }}p_items jsonb, p_on_duplicate text default 'skip')
returns table (id {{ key.type }}, outcome text)
language plpgsql
{{ act() }}
as {{ body }}
#variable_conflict use_column
declare
    v_items jsonb := case jsonb_typeof(p_items) when 'array' then p_items else jsonb_build_array(p_items) end;
    v_names text[];
    v_run   record;
begin
    {{ enter() }}
    if p_on_duplicate not in ('skip', 'replace') then
        raise exception 'p_on_duplicate is skip or replace, not %', p_on_duplicate using errcode = 'GL002';
    end if;
    for v_run in select i.item from jsonb_array_elements(v_items) as i (item) where jsonb_typeof(i.item) <> 'object' limit 1 loop
        raise exception 'an item must be an object whose keys are columns of {{ table_text }}, this one is %', v_run.item using errcode = 'GL002';
    end loop;
{%- if unique %}
    if exists (select from jsonb_array_elements(v_items) as i (item) where i.item ->> {{ unique.literal }} is not null) then
        return query select u.id, u.outcome from gleaner.enqueue_unique_{{ name }}({{ tenant_arg() }}v_items, p_on_duplicate) as u order by u.n;
        return;
    end if;
{%- endif %}
    -- Items with the same columns go in by one statement. Mostly that is all of them.
    v_names := array(select k from jsonb_object_keys(v_items -> 0) as k);
    if not exists (select from jsonb_array_elements(v_items) as i (item) where not i.item ?& v_names or i.item - v_names <> '{}') then
        return query execute gleaner.insert_sql_{{ name }}(v_names) || ' returning q.{{ key.column | in_text }}, ''enqueued''' using v_items, clock_timestamp(){% if tenant %}, p_tenant{% endif %};
        return;
    end if;
    for v_run in
        select jsonb_agg(r.item order by r.n) as items, r.names
        from (select i.*, sum(i.begins) over (order by i.n) as run
              from (select i.*, (i.names is distinct from lag(i.names) over (order by i.n))::integer as begins
                    from (select i.item, i.n, array(select k from jsonb_object_keys(i.item) as k order by k) as names
                          from jsonb_array_elements(v_items) with ordinality as i (item, n)) as i) as i) as r
        group by r.run, r.names
        order by r.run
    loop
        return query execute gleaner.insert_sql_{{ name }}(v_run.names) || ' returning q.{{ key.column | in_text }}, ''enqueued''' using v_run.items, clock_timestamp(){% if tenant %}, p_tenant{% endif %};
    end loop;
end
{{ body }};
{%- if unique %}

-- Items of which some have a unique key, one by one, in the order of those keys. Returns each item's place.
create or replace function gleaner.enqueue_unique_{{ name }}({{ tenant_param() }}p_items jsonb, p_on_duplicate text)
returns table (n bigint, id {{ key.type }}, outcome text)
language plpgsql
as {{ body }}
#variable_conflict use_column
declare
    v_item   record;
    v_sql    text;
    v_update text;
begin
    for v_item in
        select i.item, i.n, i.item ->> {{ unique.literal }} as unique_key, array(select k from jsonb_object_keys(i.item) as k) as names
        from jsonb_array_elements(p_items) with ordinality as i (item, n)
        order by i.item ->> {{ unique.literal }} nulls first, i.n
    loop
        n := v_item.n;
        id := null;
        v_sql := gleaner.insert_sql_{{ name }}(v_item.names);
        select string_agg(format('%1$I = excluded.%1$I', c), ', ') into v_update
        from (select distinct unnest(v_item.names || array[{{ col_literals.due }}{% if owner %}, {{ col_literals.open }}{% endif %}]) as c) as columns
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
