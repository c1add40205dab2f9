{%- from "macros.sql" import inner, error_value, lease_after_other, lease_after_own, clear_holder, waiting_since, in_zone, same_row -%}
{%- set mine = same_row("q", "p_row") -%}
{%- macro change() -%}
update {{ table }} as q
    set {{ status.column }} = p_status, {{ col.due }} = p_due,
{%- if owner %}
        -- Anew, by the owner's policy: the claim moved it to the end of a lease that is no more.
        {{ col.open }} = case when p_due is null then q.{{ col.open }} when p_row.{{ owner.column }} is null then p_due
            else gleaner.open_{{ name }}(p_row.{{ owner.column }}, coalesce({{ waiting_since("p_row") }}, p_due), p_due) end,
{%- endif %}
        {{ col.lease }} = case when p_own then {{ lease_after_own("q") }} else {{ lease_after_other("q") }} end,
        {{ col.attempts }} = p_attempts, {{ col.lost }} = p_lost,
{%- if error %}
        {{ error.column }} = p_row.{{ error.column }},
{%- endif %}
{%- if recovered and not (error and error.column == recovered.column) %}
        {{ recovered.column }} = p_row.{{ recovered.column }},
{%- endif %}
{%- if finished %}
        {{ finished.column }} = case when p_due is null then {{ in_zone("v_now", finished.type) }} end,
{%- endif %}
        {{ clear_holder() }}
    where {{ mine }};
{%- endmacro -%}
{%- if dead %}
-- Copies a row that will not be tried again into the dead letter table, with the reason.
create or replace function gleaner.dead_letter_{{ name }}(p_row {{ table }}, p_reason text) returns void {{ inner() }}
begin
    insert into {{ dead.table }} ({{ dead.columns }})
    values ({{ dead.values }});
end
{{ body }};
{%- endif %}

/*
 * Puts a row back in the line until p_due or, without it, ends the row for good. Internal to the acts, which hold its lock. A new lease
 * ends the old holder's say: by one when the holder itself acts, so that a repeated act is recognised.
{%- if unique %}
 * When a twin with the same unique key already waits, the returning row ends as cancelled, "superseded".
{%- endif %}
 * Returns  the status the row now has.
 */
create or replace function gleaner.settle_{{ name }}(
    p_row {{ table }}, p_status {{ status.type }}, p_due timestamptz, p_own boolean, p_attempts integer, p_lost integer,
    p_category text default null, p_message text default null
) returns text {{ inner() }}
declare
    v_now timestamptz := clock_timestamp();
begin
{%- if error %}
    if p_category is not null and (p_message is not null or p_category <> 'Cancelled') then
        p_row.{{ error.column }} := {{ error_value("p_row", "p_category", "p_message", "case when p_category = 'Cancelled' then gleaner.caller_session() else coalesce(p_row." ~ col.agent ~ ", p_row." ~ col.session ~ ") end", "coalesce(p_attempts, 0)") }};
    end if;
{%- endif %}
{%- if recovered %}
    if p_lost > p_row.{{ col.lost }} then
        p_row.{{ recovered.column }} := jsonb_set(coalesce(p_row.{{ recovered.column }}, '{}'), {{ recovered.path }}, to_jsonb(p_lost));
    end if;
{%- endif %}
{%- if unique %}
    for v_try in 1 .. 5 loop
        exit when p_due is null;
        if p_row.{{ unique.column }} is not null and exists (
            select from {{ table }} as q
            where {{ "q." ~ tenant.column ~ " = p_row." ~ tenant.column ~ " and " if tenant }}q.{{ unique.column }} = p_row.{{ unique.column }}
              and q.{{ status.column }} in ({{ status.waiting }}) and q.{{ col.due }} is not null and not ({{ mine }})
        ) then
            return gleaner.settle_{{ name }}(p_row, {{ status.cancelled }}, null, p_own, p_row.{{ col.attempts }}, p_row.{{ col.lost }},
                'Superseded', 'superseded by a waiting row with the same key');
        end if;
        begin
            {{ change() | indent(8) }}
{%- if notify %}
            perform pg_notify('gleaner', {{ name_literal }});
{%- endif %}
            return p_status::text;
        exception when unique_violation then
            -- The twin was enqueued between the look and the update; look again, now it can be seen.
            null;
        end;
    end loop;
    if p_due is not null then
        raise exception 'could not put % back: its unique key is contended', p_row.{{ key.column }} using errcode = '40001';
    end if;
{%- endif %}
    {{ change() }}
{%- if dead %}
    if p_due is null and p_category is distinct from 'Cancelled' and p_category is distinct from 'Superseded' then
        perform gleaner.dead_letter_{{ name }}(p_row, p_message);
    end if;
{%- endif %}
{%- if notify and not unique %}
    if p_due is not null then perform pg_notify('gleaner', {{ name_literal }}); end if;
{%- endif %}
    return p_status::text;
end
{{ body }};
