{%- from "macros.sql" import act, enter -%}
/*
 * A sweep for display: rows whose lease ran out at least p_older_than ago wait again, to be seen as waiting.
 * Nothing depends on it: a claim takes such rows by itself. At most a thousand rows per call.
 */
create or replace function gleaner.recover_{{ name }}(p_older_than interval default '0') returns integer
language plpgsql
{{ act() }}
as {{ body }}
declare
    v_now    timestamptz := clock_timestamp();
    v_count  integer := 0;
    v_lost   integer;
    v_reason text;
    v_row    {{ table }};
begin
    {{ enter() }}
{%- if engine == "bulk" %}
    perform gleaner.unbatch_{{ name }}(null, array(select b.id from gleaner.batch_lease as b where b.queue = {{ name_literal }} and b.due_at <= v_now - p_older_than));
{%- endif %}
    for v_row in
        select q.*
        from {{ table }} as q
        where q.{{ status.column }} in ({{ status.held }}) and q.{{ col.due }} <= v_now - p_older_than{% if engine == "bulk" %} and q.{{ col.lease }} <> -1{% endif %}
        order by q.{{ key.column }}
        limit 1000
        for no key update skip locked
    loop
        v_lost := v_row.{{ col.lost }} + case when v_row.{{ col.started }} >= 1 then 1 else 0 end;
        v_reason := {{ poison_reason }};
        if v_reason is not null then
            perform gleaner.end_{{ name }}(v_row, v_reason, {{ poison_category }}, v_row.{{ col.attempts }}, v_lost);
        else
            perform gleaner.put_back_{{ name }}(v_row, {{ status.ready }}, v_now, false, v_row.{{ col.attempts }}, v_lost);
        end if;
        v_count := v_count + 1;
    end loop;
    return v_count;
end
{{ body }};
