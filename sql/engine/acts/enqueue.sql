{%- from "macros.sql" import definer, tenant_param, tenant_is, in_zone -%}
/*
 * Puts work in, one item or many: p_items is an object or an array of objects whose keys are columns of the table.
 * Part of the caller's transaction: the row exists when, and only when, that commits. Plain inserts do as well.
{%- if unique %}
 * A row waiting with the same {{ unique.column }} stands: with 'skip' its id is returned, with 'replace' it takes the new values.
 * A running row does not stand in the way, and is never replaced.
{%- endif %}
 * Returns  per item, in order: its id and enqueued{{ ", standing or replaced" if unique }}.
 */
create or replace function gleaner.enqueue_{{ name }}({{ tenant_param() }}p_items jsonb, p_on_duplicate text default 'skip')
returns table (id {{ key.type }}, outcome text)
language plpgsql
{{ definer() }}
as $enqueue$
#variable_conflict use_column
declare
    v_item    jsonb;
    v_names   text[];
    v_columns text;
    v_sql     text;
    v_last    text[];
    v_update  text;
    v_since   timestamptz;
    v_values  text;
    v_run     jsonb[] := '{}';
    v_run_sql text;
{%- if not owner and not tenant %}
    v_types   text;
    v_aliases text;
{%- endif %}
begin
    if p_on_duplicate not in ('skip', 'replace') then
        raise exception 'p_on_duplicate is skip or replace, not %', p_on_duplicate using errcode = 'GL002';
    end if;
{%- if not owner and not tenant %}
    -- Many that are alike, which is how programs write them, go in by one statement, without a look at each.
    if jsonb_typeof(p_items) = 'array' and jsonb_array_length(p_items) >= 8 and jsonb_typeof(p_items -> 0) = 'object' then
        v_names := array(select k from jsonb_object_keys(p_items -> 0) as k order by k);
        if not v_names && array[{{ engine_names }}{% if unique %}, '{{ unique.name }}'{% endif %}] and not exists (
               select from jsonb_array_elements(p_items) as i (item)
               where jsonb_typeof(i.item) <> 'object' or not i.item ?& v_names or i.item - v_names <> '{}') then
            select string_agg(format('%I %s', n, format_type(a.atttypid, a.atttypmod)), ', ' order by n),
                   string_agg(format('%I, ', n), '' order by n),
                   coalesce(string_agg(format('%I, ', n), '' order by n) filter (where n <> '{{ col_names.due }}'), ''),
                   coalesce(string_agg(format('r.%I, ', n), '' order by n) filter (where n <> '{{ col_names.due }}'), '')
            into v_types, v_aliases, v_columns, v_values
            from unnest(v_names) as n
            join pg_attribute as a on a.attrelid = {{ table_literal }}::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped
            having count(*) = cardinality(v_names);
            if found and v_types is not null then
                return query execute format(
                    'insert into {{ table_in_text }} as q (%1$s{{ col.due }}) select %2$scoalesce(%3$s$2) '
                    'from rows from (jsonb_to_recordset($1) as (%4$s)) with ordinality as r (%5$sgleaner_place) order by r.gleaner_place '
                    'returning q.{{ key.column }}, ''enqueued''',
                    v_columns, v_values,
                    concat(
{%- if due %}case when '{{ due.name }}' = any (v_names) then $at${{ in_zone("r." ~ due.column, due.type) }}, $at$ end, {% endif -%}
                        case when '{{ col_names.due }}' = any (v_names) then $at$r.{{ col.due }}, $at$ end
{%- if created %}, case when '{{ created.name }}' = any (v_names) then $at${{ in_zone("r." ~ created.column, created.type) }}, $at$ end{% endif %}),
                    v_types, v_aliases)
                using p_items, clock_timestamp();
                return;
            end if;
        end if;
        v_names := null;
    end if;
{%- endif %}
    -- Neighbours with the same columns are inserted together, in the order they came; the null at the end ends the last run.
    for v_item in
        select i.item
        from jsonb_array_elements(case jsonb_typeof(p_items) when 'array' then p_items else jsonb_build_array(p_items) end) as i (item)
        union all
        select null
    loop
        if v_item is null then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
            end if;
            exit;
        end if;
        if jsonb_typeof(v_item) <> 'object' then
            raise exception 'an item must be an object whose keys are columns of {{ table }}, this one is %', v_item using errcode = 'GL002';
        end if;
{%- if tenant %}
        v_item := v_item || jsonb_build_object('{{ tenant.name }}', p_tenant);
{%- endif %}
        -- What the adapter does for plain inserts, done here for the engine's own: when the row is due, and open to all.
        v_since := coalesce({% if due %}{{ in_zone("(v_item ->> '" ~ due.name ~ "')::" ~ due.type, due.type) }}, {% endif %}(v_item ->> '{{ col_names.due }}')::timestamptz
            {%- if created %}, {{ in_zone("(v_item ->> '" ~ created.name ~ "')::" ~ created.type, created.type) }}{% endif %}, clock_timestamp());
        v_item := v_item || jsonb_build_object('{{ col_names.due }}', v_since
            {%- if owner %}, '{{ col_names.open }}', case when v_item ->> '{{ owner.name }}' is null then v_since
                -- An owner's threshold runs from the creation, as it does for plain inserts{{ ", or from the appointed time where that is later" if due }}.
                else gleaner.open_{{ name }}((v_item ->> '{{ owner.name }}')::{{ owner.type }},
                    {% if created %}{{ "greatest(v_since, " if due }}coalesce({{ in_zone("(v_item ->> '" ~ created.name ~ "')::" ~ created.type, created.type) }}, clock_timestamp()){{ ")" if due }}{% else %}v_since{% endif %}, v_since) end{% endif %});
        v_names := array(select k from jsonb_object_keys(v_item) as k order by k);
        if v_names is distinct from v_last then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
                v_run := '{}';
            end if;
            select string_agg(n, ', ') into v_columns
            from unnest(v_names) as n
            where not exists (select from pg_attribute as a where a.attrelid = {{ table_literal }}::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped);
            if v_columns is not null then
                raise exception 'no such column in {{ table }}: %', v_columns using errcode = '42703';
            end if;
            -- These are the engine's to set; an item that carries them was read from the table and is put in again.
            select coalesce(string_agg(quote_ident(n), ', '), ''), string_agg(format('r.%I', n), ', '), coalesce(string_agg(format('%1$I = excluded.%1$I', n), ', ') filter (where n not in ({{ unique_names }})), '')
            into v_columns, v_values, v_update
            from unnest(v_names) as n where n not in ({{ engine_names }});
            v_sql := 'insert into {{ table_in_text }} as q ' || case when v_columns = '' then 'default values'
                else format('(%s) select %s from jsonb_populate_record(null::{{ table_in_text }}, $1) as r', v_columns, v_values) end;
            v_run_sql := format('insert into {{ table_in_text }} as q (%s) select %s from unnest($1) with ordinality as i (item, n), '
                'jsonb_populate_record(null::{{ table_in_text }}, i.item) as r order by i.n returning q.{{ key.column }}, ''enqueued''', v_columns, v_values);
            v_last := v_names;
        end if;
{%- if unique %}
        if v_item ->> '{{ unique.name }}' is null then
            v_run := v_run || v_item;
            continue;
        end if;
        if cardinality(v_run) > 0 then
            return query execute v_run_sql using v_run;
            v_run := '{}';
        end if;
        for v_try in 1 .. 5 loop
            id := null;
            if p_on_duplicate = 'replace' and v_update <> '' then
                execute v_sql || ' on conflict ({{ unique.target }}) where {{ unique.predicate_in_text }} do update set ' || v_update || ' returning q.{{ key.column }}, case when q.xmax = 0 then ''enqueued'' else ''replaced'' end'
                into id, outcome using v_item;
                exit;
            end if;
            execute v_sql || ' on conflict ({{ unique.target }}) where {{ unique.predicate_in_text }} do nothing returning q.{{ key.column }}'
            into id using v_item;
            outcome := 'enqueued';
            exit when id is not null;
            -- The row that stands may be newer than this statement's snapshot, or taken by now: look, then try again.
            select q.{{ key.column }}, 'standing' into id, outcome
            from {{ table }} as q
            where {{ tenant_is("q") }}q.{{ unique.column }} = (v_item ->> '{{ unique.name }}')::{{ unique.type }}
              and q.{{ status.column }} in ({{ status.waiting }}) and q.{{ col.due }} is not null;
            exit when id is not null;
        end loop;
        if id is null then
            raise exception 'could not enqueue: the unique key % is contended', v_item ->> '{{ unique.name }}' using errcode = '40001';
        end if;
        return next;
{%- else %}
        v_run := v_run || v_item;
{%- endif %}
    end loop;
end
$enqueue$;
