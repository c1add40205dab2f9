{%- from "macros.sql" import definer, tenant_param, tenant_arg, tenant_is, lease_after_other, clear_holder, error_value, in_zone -%}
/*
 * Ends rows that nobody should work any more, in any unfinished status, running included: the holder learns at its next call,
 * whose lease no longer fits.
 */
create or replace function gleaner.cancel_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_reason text default null)
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ definer() }}
as $cancel$
#variable_conflict use_column
declare
    v_now  timestamptz := clock_timestamp();
    v_done {{ key.type }}[];
begin
{%- if sheaf %}
    perform gleaner.loosen_{{ name }}(p_ids);
{%- endif %}
    -- Key order, and waiting for whoever is about to move the row: cancel must not miss what is moving.
    perform from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = any (p_ids) order by q.{{ key.column }} for no key update;
    with changed as (
        update {{ table }} as q
        set {{ status.column }} = {{ status.cancelled }},
            {{ col.due }} = null,
            {{ col.lease }} = {{ lease_after_other("q") }},
{%- if error %}
            {{ error.column }} = case when p_reason is null then q.{{ error.column }} else {{ error_value("q", "'Cancelled'", "p_reason", "gleaner.caller_session()", "q." ~ col.attempts) }} end,
{%- endif %}
{%- if finished %}
            {{ finished.column }} = {{ in_zone("v_now", finished.type) }},
{%- endif %}
{{ clear_holder() }}
        where {{ tenant_is("q") }}q.{{ key.column }} = any (p_ids) and {{ claimable }}
        returning q.{{ key.column }} as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    insert into gleaner.audit (queue, key, act, caller, detail)
    select '{{ name }}', d::text, 'cancel', gleaner.caller_session(), jsonb_build_object('reason', p_reason)
    from unnest(v_done) as d;
    return query
    select u.id,
           case when u.id = any (v_done) then 'done' when q.{{ key.column }} is null then 'gone' else 'already' end,
           q.{{ status.column }}::text
    from unnest(p_ids) as u (id)
    left join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = u.id;
end
$cancel$;

/*
 * The same for every unfinished row whose columns have the given values, such as all of one contact:
 * select * from gleaner.cancel_{{ name }}_matching('{"…": …}').
 */
create or replace function gleaner.cancel_{{ name }}_matching({{ tenant_param() }}p_match jsonb, p_reason text default null)
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ definer() }}
as $cancel$
#variable_conflict use_column
declare
    v_column    text;
    v_value     text;
    v_condition text := '';
    v_unknown   text;
    v_ids       {{ key.type }}[];
{%- if kind %}
    v_lane      bigint;
{%- endif %}
begin
    if p_match is null or p_match = '{}' then
        raise exception 'cancel needs at least one column to match' using errcode = 'GL002', hint = 'To cancel rows by key use gleaner.cancel_{{ name }}.';
    end if;
    select string_agg(k, ', ') into v_unknown
    from jsonb_object_keys(p_match) as k
    where not exists (
        select from pg_attribute as a where a.attrelid = {{ table_literal }}::regclass and a.attname = k and a.attnum > 0 and not a.attisdropped);
    if v_unknown is not null then
        raise exception 'no such column in {{ table }}: %', v_unknown using errcode = '42703';
    end if;
    -- Values stand in the statement as they are, so that the planner knows how rare they are and takes an index.
    for v_column in select jsonb_object_keys(p_match) loop
        execute format('select (jsonb_populate_record(null::{{ table_in_text }}, $1)).%I::text', v_column) into v_value using p_match;
        v_condition := v_condition || case when v_value is null then format(' and q.%I is null', v_column)
                                           else format(' and q.%I = %L', v_column, v_value) end;
{%- if kind %}
        if v_column = '{{ kind.name | replace("'", "''") }}' and v_value is not null then
            -- The index knows a kind by the numbers of its lanes.
            v_lane := {{ lane.first | replace("KIND", "v_value::" ~ kind.type) }};
            v_condition := v_condition || ' and {{ lane.of | replace("'", "''") }}' || format(' between %L::bigint and %L::bigint', v_lane, v_lane | 15);
        end if;
{%- endif %}
    end loop;
    execute format('select array(select q.{{ key.column }} from {{ unfinished | replace("'", "''") | replace("%", "%%") }} where {{ "q." ~ tenant.column ~ " = $1" if tenant else "true" }}%s)', v_condition)
    into v_ids{% if tenant %} using p_tenant{% endif %};
    return query select * from gleaner.cancel_{{ name }}({{ tenant_arg() }}v_ids, p_reason);
end
$cancel$;
