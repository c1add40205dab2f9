{%- from "macros.sql" import act, waiting_since, in_zone, enter, same_row, rejected_key -%}
{%- set held_until -%}{% if distributed %}v_due{% else %}v_now + {{ hold }}{% endif %}{%- endset -%}
/*
 * Gives the rows that were there before the queue their times, a slice at a time: those that wait, and those that are being
 * worked on, which get one hold to finish. History stays untouched.
 * A row that rejects the change is noted (gleaner.rejected_row) and left without: attach again when it is put right.
 * Returns  the last key of the slice, null after the last, and how many rows of it were given their times.
 */
create or replace function gleaner.fill_{{ name }}(p_after {{ key.type }}, p_limit integer, out last {{ key.type }}, out filled integer)
language plpgsql
{{ act() }}
as {{ body }}
declare
    v_now timestamptz := clock_timestamp();
{%- if distributed %}
    v_due timestamptz := v_now + {{ hold }};
{%- endif %}
    v_row {{ table }};
begin
    {{ enter() }}
    select s.id into last
    from (select q.{{ key.column }} as id from {{ table }} as q
          where q.{{ key.column }} >= coalesce(p_after, {{ key.min }})
          order by q.{{ key.column }} limit p_limit) as s
    order by s.id desc limit 1;
    if last = p_after then
        last := null;
        filled := 0;
        return;
    end if;
    begin
        update {{ table }} as q
        set {{ col.due }} = case when q.{{ status.column }} in ({{ status.held }}) then {{ held_until }}
                            else {% if due %}coalesce({{ in_zone("q." ~ due.column, due.type) }}, v_now){% elif created %}least(coalesce({{ in_zone("q." ~ created.column, created.type) }}, v_now), v_now){% else %}v_now{% endif %} end
    {%- if owner %},
            {{ col.open }} = case when q.{{ owner.column }} is null then {{ waiting_since("q") }}
                             else gleaner.open_{{ name }}(q.{{ owner.column }}, coalesce({{ waiting_since("q") }}, v_now),
                                  case when q.{{ status.column }} in ({{ status.held }}) then {{ held_until }} else {{ waiting_since("q") }} end) end
    {%- endif %}
        where q.{{ col.due }} is null and q.{{ status.column }} in ({{ status.ready }}, {{ status.held }})
          and q.{{ key.column }} >= coalesce(p_after, {{ key.min }}) and q.{{ key.column }} <= last;
        get diagnostics filled = row_count;
    exception when others then
        perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
        filled := 0;
        for v_row in
            select q.* from {{ table }} as q
            where q.{{ col.due }} is null and q.{{ status.column }} in ({{ status.ready }}, {{ status.held }})
              and q.{{ key.column }} >= coalesce(p_after, {{ key.min }}) and q.{{ key.column }} <= last
        loop
            begin
                update {{ table }} as q
                set {{ col.due }} = case when q.{{ status.column }} in ({{ status.held }}) then {{ held_until }}
                                    else {% if due %}coalesce({{ in_zone("q." ~ due.column, due.type) }}, v_now){% elif created %}least(coalesce({{ in_zone("q." ~ created.column, created.type) }}, v_now), v_now){% else %}v_now{% endif %} end
            {%- if owner %},
                    {{ col.open }} = case when q.{{ owner.column }} is null then {{ waiting_since("q") }}
                                     else gleaner.open_{{ name }}(q.{{ owner.column }}, coalesce({{ waiting_since("q") }}, v_now),
                                          case when q.{{ status.column }} in ({{ status.held }}) then {{ held_until }} else {{ waiting_since("q") }} end) end
            {%- endif %}
                where {{ same_row("q", "v_row") }} and q.{{ col.due }} is null and q.{{ status.column }} in ({{ status.ready }}, {{ status.held }});
                filled := filled + 1;
            exception when others then
                perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
                perform gleaner.reject_row({{ name_literal }}, {% if tenant %}v_row.{{ tenant.column }}::text{% else %}''{% endif %}, {{ rejected_key("v_row") }}, sqlerrm);
            end;
        end loop;
    end;
end
{{ body }};
