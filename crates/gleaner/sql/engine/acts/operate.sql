{%- from "macros.sql" import act, short_act, long_act, enter, tenant_text, tenant_param, tenant_arg, tenant_is, in_zone, same_row, leave_batch -%}
{%- macro answers() -%}returns table (id {{ key.type }}, outcome text, status text){%- endmacro -%}
-- What cancel, requeue, bury and reschedule do to each row, in key order, and the note of who did it.
create or replace function gleaner.operate_{{ name }}({{ tenant_param() }}p_act text, p_ids {{ key.type }}[], p_reason text, p_due timestamptz default null)
{{ answers() }}
{{ long_act() }}
declare
    v_now timestamptz := clock_timestamp(); v_caller text := gleaner.caller_session();
    v_row {{ table }};
begin
    {{ enter() }}
{%- if owner or grant.admits %}
    perform gleaner.admit_{{ name }}({{ tenant_arg() }}p_ids);
{%- else %}
    perform gleaner.operates({{ name_literal }}, {{ grant.operate }}, {{ grant.own }});
{%- endif %}
    {{- leave_batch("p_ids") }}
    if p_act = 'reschedule' then perform gleaner.check_time(p_act, p_due); end if;
    -- Waits for an act that is about to move a row: what is moving must not be missed.
    for v_row in select q.* from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = any (p_ids) order by q.{{ key.column }} for no key update loop
        id := v_row.{{ key.column }};
        outcome := case when (case when p_act = 'requeue' then {{ when.v_row.ready }} and v_row.{{ col.due }} <= v_now
{%- if engine == "bulk" %}
            -- A row whose bulk range is lost waits where no claim looks; it goes back in the line by itself.
            and (v_row.{{ col.lease }} <> -1 or (gleaner.range_keys({{ name_literal }}) + gleaner.batch_keys({{ name_literal }})) @> v_row.{{ key.column }})
{%- endif %} else not {{ when.v_row.claimable }} or v_row.{{ col.due }} = p_due end) then 'already'
                        when p_act = 'reschedule' and {{ when.v_row.held }} then 'lost' else 'done' end;
        status := v_row.{{ status.column }};
        if outcome = 'done' then
            insert into gleaner.audit (queue, tenant, key, act, caller, detail)
            values ({{ name_literal }}, {{ tenant_text() }}, id::text, p_act, v_caller,
                    case when p_act = 'reschedule' then jsonb_build_object('from', v_row.{{ col.due }}, 'to', p_due)
                         else jsonb_build_object('from', v_row.{{ status.column }}, 'reason', p_reason) end);
{%- if due %}
            if p_act = 'reschedule' then
                v_row.{{ due.column }} := {{ in_zone("p_due", due.type) }};
                update {{ table }} as q set {{ due.column }} = v_row.{{ due.column }} where {{ same_row("q", "v_row") }};
            end if;
{%- endif %}
            status := case p_act
                when 'reschedule' then gleaner.settle_{{ name }}(v_row, v_row.{{ status.column }}, p_due, false, v_row.{{ col.attempts }}, v_row.{{ col.lost }})
                when 'requeue' then gleaner.settle_{{ name }}(v_row, {{ status.ready }}, v_now, false, 0, 0)
                when 'cancel' then gleaner.settle_{{ name }}(v_row, {{ status.cancelled }}, null, false, v_row.{{ col.attempts }}, v_row.{{ col.lost }}, 'Cancelled', p_reason)
                else gleaner.settle_{{ name }}(v_row, {{ status.failed }}, null, false, v_row.{{ col.attempts }}, v_row.{{ col.lost }}, 'Buried', coalesce(p_reason, 'buried by hand'))
            end;
        end if;
        return next;
    end loop;
    return query
    select u.id, 'gone', null::text from unnest(p_ids) as u (id) where not exists (select from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = u.id);
end
{{ body }};

-- Ends unfinished rows whose work is no longer wanted. The holder of a held one learns at its next call.
create or replace function gleaner.cancel_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_reason text default null) {{ answers() }}
{{ short_act() }}
    select * from gleaner.operate_{{ name }}({{ tenant_arg() }}'cancel', p_ids, p_reason);
{{ body }};

-- Cancels every unfinished row whose columns have the given values, for example '{"kind": "mail"}'.
create or replace function gleaner.cancel_{{ name }}_matching({{ tenant_param() }}p_match jsonb, p_reason text default null) {{ answers() }}
{{ act() }}
declare
    v_ids {{ key.type }}[];
begin
    execute 'select array(select q.{{ key.column | in_text }} from {{ unfinished | in_text }} where {{ "q." ~ tenant.column | in_text ~ " = $1 and " if tenant }}'
        || gleaner.condition_of({{ table_literal }}, p_match)
{%- if kind %}
        -- The index knows a kind by the numbers of its lanes.
        || coalesce((select format(' and {{ lane.of | in_format }} between %L::bigint and %L::bigint', k.lane, k.lane | 15)
                     from (select {{ lane.first | replace("KIND", "(p_match ->> " ~ kind.literal ~ ")::" ~ kind.type) }} as lane) as k
                     where p_match ->> {{ kind.literal }} is not null), '')
{%- endif %} || ')'
    into v_ids{% if tenant %} using p_tenant{% endif %};
    return query select * from gleaner.operate_{{ name }}({{ tenant_arg() }}'cancel', v_ids, p_reason);
end
{{ body }};

-- An operator's retry: rows wait again, due now, with counts at zero; also finished rows, and held ones.
create or replace function gleaner.requeue_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[]) {{ answers() }}
{{ short_act() }}
    select * from gleaner.operate_{{ name }}({{ tenant_arg() }}'requeue', p_ids, null);
{{ body }};

-- An operator's skip: rows are dead, whatever they were doing, with the reason.
create or replace function gleaner.bury_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_reason text default null) {{ answers() }}
{{ short_act() }}
    select * from gleaner.operate_{{ name }}({{ tenant_arg() }}'bury', p_ids, p_reason);
{{ body }};

-- An operator's change of the due time of rows that wait. A held row answers lost, a finished one already.
create or replace function gleaner.reschedule_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[], p_due timestamptz) {{ answers() }}
{{ short_act() }}
    select * from gleaner.operate_{{ name }}({{ tenant_arg() }}'reschedule', p_ids, null, p_due);
{{ body }};
