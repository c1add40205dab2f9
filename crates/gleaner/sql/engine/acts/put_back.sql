{%- from "macros.sql" import error_value, lease_after_other, lease_after_own, clear_holder, waiting_since, in_zone, same_row -%}
{%- set mine = same_row("q", "p_row") -%}
/*
 * Puts a row back in the line: with p_status it waits until p_due. Internal to fail, release, snooze, recover and requeue,
 * which hold the row's lock. A new lease ends the old holder's say (by one when the holder itself acts, so that a repeated
 * act is recognised).
{%- if unique %}
 * When a twin with the same unique key already waits, the returning row ends as cancelled, "superseded".
{%- endif %}
 * Returns  the status the row now has.
 */
create or replace function gleaner.put_back_{{ name }}(
    p_row {{ table }}, p_status {{ status.type }}, p_due timestamptz, p_own boolean, p_attempts integer, p_lost integer,
    p_category text default null, p_message text default null
) returns text
language plpgsql
as {{ body }}
declare
    v_now   timestamptz := clock_timestamp(); v_stamp bigint := (extract(epoch from v_now) * 1000000)::bigint;
{%- if owner %}
    -- Anew, by the owner's policy: the claim moved it to the end of a lease that is no more.
    v_open  timestamptz := case when p_row.{{ owner.column }} is null then p_due
                           else gleaner.open_{{ name }}(p_row.{{ owner.column }}, coalesce({{ waiting_since("p_row") }}, p_due), p_due) end;
{%- endif %}
begin
{%- if error %}
    if p_category is not null then
        p_row.{{ error.column }} := {{ error_value("p_row", "p_category", "p_message", "coalesce(p_row." ~ col.agent ~ ", p_row." ~ col.session ~ ")", "p_attempts") }};
    end if;
{%- endif %}
{%- if recovered %}
    if p_lost > p_row.{{ col.lost }} then
        p_row.{{ recovered.column }} := jsonb_set(coalesce(p_row.{{ recovered.column }}, '{}'), {{ recovered.path }}, to_jsonb(p_lost));
    end if;
{%- endif %}
{%- if unique %}
    for v_try in 1 .. 5 loop
        if p_row.{{ unique.column }} is not null and exists (
            select from {{ table }} as q
            where {{ "q." ~ tenant.column ~ " = p_row." ~ tenant.column ~ " and " if tenant }}q.{{ unique.column }} = p_row.{{ unique.column }}
              and q.{{ status.column }} in ({{ status.waiting }}) and q.{{ col.due }} is not null
              and not ({{ mine }})
        ) then
{%- if error and error.type == "jsonb" and not error.path %}
            p_row.{{ error.column }} := {{ error_value("p_row", "'Superseded'", "'superseded by a waiting row with the same key'", "coalesce(p_row." ~ col.agent ~ ", p_row." ~ col.session ~ ")", "p_row." ~ col.attempts) }};
{%- elif error %}
            p_row.{{ error.column }} := {{ error_value("p_row", "'Superseded'", "'superseded'", "null::text", "p_row." ~ col.attempts) }};
{%- endif %}
            update {{ table }} as q
            set {{ status.column }} = {{ status.cancelled }},
                {{ col.due }} = null,
                {{ col.lease }} = case when p_own then {{ lease_after_own("q") }} else {{ lease_after_other("q", "v_stamp") }} end,
{%- if error %}
                {{ error.column }} = p_row.{{ error.column }},
{%- endif %}
{%- if finished %}
                {{ finished.column }} = {{ in_zone("v_now", finished.type) }},
{%- endif %}
                {{ clear_holder() }}
            where {{ mine }};
            return ({{ status.cancelled }})::text;
        end if;
        begin
{%- endif %}
    update {{ table }} as q
    set {{ status.column }} = p_status,
        {{ col.due }} = p_due,
{%- if owner %}
        {{ col.open }} = v_open,
{%- endif %}
        {{ col.lease }} = case when p_own then {{ lease_after_own("q") }} else {{ lease_after_other("q", "v_stamp") }} end,
        {{ col.attempts }} = p_attempts,
        {{ col.lost }} = p_lost,
{%- if error %}
        {{ error.column }} = p_row.{{ error.column }},
{%- endif %}
{%- if recovered and not (error and error.column == recovered.column) %}
        {{ recovered.column }} = p_row.{{ recovered.column }},
{%- endif %}
{%- if finished %}
        {{ finished.column }} = null,
{%- endif %}
        {{ clear_holder() }}
    where {{ mine }};
{%- if notify %}
    perform pg_notify('gleaner', {{ name_literal }});
{%- endif %}
    return p_status::text;
{%- if unique %}
        exception when unique_violation then
            -- The twin was enqueued between the look and the update; look again, now it can be seen.
            null;
        end;
    end loop;
    raise exception 'could not put % back: its unique key is contended', p_row.{{ key.column }} using errcode = '40001';
{%- endif %}
end
{{ body }};
