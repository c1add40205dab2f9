{%- from "macros.sql" import act, tenant_text, tenant_param, tenant_arg, tenant_is, lease_after_other, clear_holder, in_zone, enter, leave_batch -%}
{#- The reason as an error, without the row's own count of attempts, and with it. -#}
{%- if error %}
{%- set given_error -%}
{%- if error.path or error.type == "jsonb" -%}jsonb_build_object('timestamp', v_now, 'type', 'Cancelled', 'message', p_reason, 'agent_id', gleaner.caller_session()){%- else -%}p_reason{%- endif -%}
{%- endset -%}
{%- set counted -%}jsonb_set(v_error, '{retry_count}', coalesce(q.{{ col.attempts }}, 0)::text::jsonb){%- endset -%}
{%- set error_of_row -%}
{%- if error.path -%}jsonb_set(coalesce(q.{{ error.column }}, '{}'), {{ error.path }}, {{ counted }})
{%- elif error.type == "jsonb" -%}{{ counted }}
{%- else -%}v_error
{%- endif -%}
{%- endset -%}
{%- endif -%}
/*
 * Ends rows whose work is no longer wanted, in any unfinished status, running included: the holder learns at its next call,
 * whose lease no longer fits.
 */
create or replace function gleaner.cancel_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_reason text default null)
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ act() }}
as {{ body }}
#variable_conflict use_column
declare
    v_now   timestamptz := clock_timestamp(); v_stamp bigint := (extract(epoch from v_now) * 1000000)::bigint;
{%- if error %}
    v_error {{ "jsonb" if error.path else error.type }} := {{ given_error }};
{%- endif %}
    v_done  {{ key.type }}[];
begin
    {{ enter() }}
    {{- leave_batch("p_ids") }}
    -- Key order, and waiting for an act that is about to move the row: cancel must not miss what is moving.
    perform from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = any (p_ids) order by q.{{ key.column }} for no key update;
    with changed as (
        update {{ table }} as q
        set {{ status.column }} = {{ status.cancelled }},
            {{ col.due }} = null,
            {{ col.lease }} = {{ lease_after_other("q", "v_stamp") }},
{%- if error %}
            {{ error.column }} = case when p_reason is null then q.{{ error.column }} else {{ error_of_row }} end,
{%- endif %}
{%- if finished %}
            {{ finished.column }} = {{ in_zone("v_now", finished.type) }},
{%- endif %}
            {{ clear_holder() | indent(4) }}
        where {{ tenant_is("q") }}q.{{ key.column }} = any (p_ids) and {{ claimable }}
        returning q.{{ key.column }} as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    insert into gleaner.audit (queue, tenant, key, act, caller, detail)
    select {{ name_literal }}, {{ tenant_text() }}, d::text, 'cancel', gleaner.caller_session(), jsonb_build_object('reason', p_reason)
    from unnest(v_done) as d;
    return query
    select u.id, u.outcome, q.{{ status.column }}::text
    from (select d, 'done' from unnest(v_done) as d
          union all
          (select i, 'already' from unnest(p_ids) as i except select d, 'already' from unnest(v_done) as d)) as u (id, outcome)
    join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = any (array[u.id]);
    return query
    select i, 'gone', null::text from unnest(p_ids) as i
    where not exists (select from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = i);
end
{{ body }};

/*
 * The same for every unfinished row whose columns have the given values, such as all of one contact:
 * select * from gleaner.cancel_{{ name }}_matching('{"…": …}').
 */
create or replace function gleaner.cancel_{{ name }}_matching({{ tenant_param() }}p_match jsonb, p_reason text default null)
returns table (id {{ key.type }}, outcome text, status text)
language plpgsql
{{ act() }}
as {{ body }}
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
        raise exception 'no such column in {{ table_text }}: %', v_unknown using errcode = '42703';
    end if;
    -- Values stand in the statement as they are, so that the planner knows how rare they are and takes an index.
    for v_column in select jsonb_object_keys(p_match) loop
        execute format('select (jsonb_populate_record(null::{{ table_text }}, $1)).%I::text', v_column) into v_value using p_match;
        v_condition := v_condition || case when v_value is null then format(' and q.%I is null', v_column)
                                           else format(' and q.%I = %L', v_column, v_value) end;
{%- if kind %}
        if v_column = {{ kind.literal }} and v_value is not null then
            -- The index knows a kind by the numbers of its lanes.
            v_lane := {{ lane.first | replace("KIND", "v_value::" ~ kind.type) }};
            v_condition := v_condition || ' and {{ lane.of | in_text }}' || format(' between %L::bigint and %L::bigint', v_lane, v_lane | 15);
        end if;
{%- endif %}
    end loop;
    execute format('select array(select q.{{ key.column | in_format }} from {{ unfinished | in_format }} where {{ "q." ~ tenant.column | in_format ~ " = $1" if tenant else "true" }}%s)', v_condition)
    into v_ids{% if tenant %} using p_tenant{% endif %};
    return query select * from gleaner.cancel_{{ name }}({{ tenant_arg() }}v_ids, p_reason);
end
{{ body }};
