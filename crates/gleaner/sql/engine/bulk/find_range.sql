{%- from "macros.sql" import inner -%}
{#- The kinds that wait in bulk ranges: one descent for each, however many ranges it has. -#}
{%- macro range_kinds() -%}
array(
            with recursive kinds as (
                (select r.kind from gleaner.bulk_range as r where r.queue = {{ name_literal }} order by r.kind limit 1)
                union all
                select next.kind
                from kinds
                cross join lateral (
                    select r.kind from gleaner.bulk_range as r where r.queue = {{ name_literal }} and r.kind > kinds.kind order by r.kind limit 1
                ) as next
            )
            select k.kind from kinds as k)
{%- endmacro -%}
{%- set classes = priority.last if priority else 0 -%}
{%- set head_start = priority.head_start if priority else "interval '0'" -%}
{%- set lane_name -%}k.kind || ' ' || c.class{%- endset -%}
/*
 * The first due bulk range in the line, of those whose first key is not in p_passed; null where there is none. Not locked: a claim that
 * ends before its turn must not block it.
 * Cursor   as with rows: while a forgotten transaction pins them, ranges that were taken pile up at the head.
 */
create or replace function gleaner.find_range_{{ name }}({% if kind %}p_kinds text[], {% endif %}p_now timestamptz, p_by timestamptz, p_passed bigint[]) returns gleaner.bulk_range {{ inner() }}
declare
    v_cursor jsonb := gleaner.read_cursor('gleaner.cursor_{{ name }}_ranges', {% if kind %}concat(p_kinds){% else %}''{% endif %}, p_now);
    v_begun  timestamptz;
    v_kinds  text[];
    v_range  gleaner.bulk_range;
begin
    loop
        v_begun := clock_timestamp();
        v_kinds := {% if kind %}case when p_kinds is not null then p_kinds
            when v_cursor is not null then array(select jsonb_array_elements_text(v_cursor -> 'kinds'))
            else {{ range_kinds() }} end{% else %}array['']{% endif %};
        select r.* into v_range
        from unnest(v_kinds) as k (kind)
        cross join generate_series(0, {{ classes }}) as c (class)
        cross join lateral (
            select r.* from gleaner.bulk_range as r
            where r.queue = {{ name_literal }} and r.kind = k.kind and r.class = c.class and r.due_at <= p_by
              and (r.due_at, r.first) >= (coalesce((v_cursor #>> array['lanes', {{ lane_name }}, '0'])::timestamptz, '-infinity'),
                                          coalesce((v_cursor #>> array['lanes', {{ lane_name }}, '1'])::bigint, {{ key.min }}))
              and r.first <> all (p_passed)
            order by r.due_at, r.first
            limit 1
        ) as r
        order by r.due_at + r.class * {{ head_start }}, r.first
        limit 1;
        exit when v_range.first is not null or v_cursor is null;
        v_cursor := null;
    end loop;
    if v_range.first is not null then
        -- What comes before this range in its lane is taken or dead.
        perform gleaner.write_cursor('gleaner.cursor_{{ name }}_ranges', {% if kind %}concat(p_kinds){% else %}''{% endif %}, v_cursor, p_now, 2 * (clock_timestamp() - v_begun),
            jsonb_build_object('kinds', to_jsonb(v_kinds), 'lanes', coalesce(v_cursor -> 'lanes', '{}') || jsonb_build_object(v_range.kind || ' ' || v_range.class, jsonb_build_array(v_range.due_at, v_range.first))));
    end if;
    return v_range;
end
{{ body }};

-- When the first bulk range of each lane is due, for gleaner.next_due_{{ name }}.
create or replace function gleaner.next_range_{{ name }}({% if kind %}p_kinds text[]{% endif %}) returns timestamptz {{ inner() }}
begin
    return (
        select min(head.due_at)
        from unnest({% if kind %}coalesce(p_kinds, {{ range_kinds() }}){% else %}array['']{% endif %}) as k (kind)
        cross join generate_series(0, {{ classes }}) as c (class)
        cross join lateral (
            select r.due_at from gleaner.bulk_range as r
            where r.queue = {{ name_literal }} and r.kind = k.kind and r.class = c.class order by r.due_at, r.first limit 1
        ) as head);
end
{{ body }};
