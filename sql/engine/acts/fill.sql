{%- from "macros.sql" import definer, waiting_since, in_zone -%}
/*
 * Gives the rows that were there before the queue their times, a slice at a time: those that wait, and those somebody was
 * working on, which get one hold to finish. History stays untouched.
 * Returns  the last key of the slice, null after the last, and how many rows of it were given their times.
 */
create or replace function gleaner.fill_{{ name }}(p_after {{ key.type }}, p_limit integer, out last {{ key.type }}, out filled integer)
language plpgsql
{{ definer() }}
as $fill$
declare
    v_now timestamptz := clock_timestamp();
begin
    select s.id into last
    from (select q.{{ key.column }} as id from {{ table }} as q
          where p_after is null or q.{{ key.column }} > p_after
          order by q.{{ key.column }} limit p_limit) as s
    order by s.id desc limit 1;
    update {{ table }} as q
    set {{ col.due }} = case when q.{{ status.column }} in ({{ status.held }}) then v_now + {{ hold }}
                        else {% if due %}coalesce({{ in_zone("q." ~ due.column, due.type) }}, v_now){% elif created %}least(coalesce({{ in_zone("q." ~ created.column, created.type) }}, v_now), v_now){% else %}v_now{% endif %} end
{%- if owner %},
        {{ col.open }} = case when q.{{ owner.column }} is null then {{ waiting_since("q") }}
                         else gleaner.open_{{ name }}(q.{{ owner.column }}, coalesce({{ waiting_since("q") }}, v_now),
                              case when q.{{ status.column }} in ({{ status.held }}) then v_now + {{ hold }} else {{ waiting_since("q") }} end) end
{%- endif %}
    where q.{{ col.due }} is null
      and q.{{ status.column }} in ({{ status.ready }}, {{ status.held }})
      and (p_after is null or q.{{ key.column }} > p_after) and q.{{ key.column }} <= last;
    get diagnostics filled = row_count;
end
$fill$;
