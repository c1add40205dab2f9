{%- from "macros.sql" import definer, tenant_is -%}
/*
 * The sweep of the specs: rows whose lease ran out at least p_older_than ago wait again, to be seen as waiting.
 * Nothing depends on it: a claim takes such rows by itself. At most a thousand rows per call.
 */
create or replace function gleaner.recover_{{ name }}(p_older_than interval default '0') returns integer
language plpgsql
{{ definer() }}
as $recover$
declare
    v_now    timestamptz := clock_timestamp();
    v_count  integer := 0;
    v_lost   integer;
    v_reason text;
    v_row    {{ table }};
begin
{%- if sheaf %}
    perform gleaner.loosen_{{ name }}(null, s.id)
    from gleaner.sheaf as s where s.queue = '{{ name }}' and s.due_at <= v_now - p_older_than order by s.id;
{%- endif %}
    for v_row in
        select q.*
        from {{ table }} as q
        where q.{{ status.column }} in ({{ status.held }}) and q.{{ col.due }} <= v_now - p_older_than{% if sheaf %} and q.{{ col.lease }} <> -1{% endif %}
        order by q.{{ key.column }}
        limit 1000
        for no key update skip locked
    loop
        v_lost := v_row.{{ col.lost }} + case when v_row.{{ col.started }} >= 1 then 1 else 0 end;
        v_reason := {{ poison_reason }};
        if v_reason is not null then
            perform gleaner.rest_{{ name }}(v_row, v_reason, {{ poison_category }}, v_row.{{ col.attempts }}, v_lost);
        else
            perform gleaner.put_back_{{ name }}(v_row, {{ status.ready }}, v_now, false, v_row.{{ col.attempts }}, v_lost);
        end if;
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$recover$;
