{%- from "macros.sql" import error_value, lease_after_other, lease_after_own, clear_holder, in_zone, same_row -%}
{%- if dead %}
-- Copies a row that will not be tried again into the dead letter table, with the reason.
create or replace function gleaner.dead_letter_{{ name }}(p_row {{ table }}, p_reason text) returns void
language plpgsql
as {{ body }}
begin
    insert into {{ dead.table }} ({{ dead.columns }})
    values ({{ dead.values }});
end
{{ body }};
{%- endif %}

/*
 * Ends a row for good: the failed word and no next try, a dead letter, and a new lease so that no late result counts.
 * Internal to claim, fail, bury and recover, which hold the row's lock. p_own: the holder itself gives the row up, and the
 * new lease is such that its repeated act is recognised.
 */
create or replace function gleaner.end_{{ name }}(p_row {{ table }}, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean default false) returns void
language plpgsql
as {{ body }}
declare
    v_now   timestamptz := clock_timestamp(); v_stamp bigint := (extract(epoch from v_now) * 1000000)::bigint;
{%- if error and not error.path %}
    v_error {{ error.type }} := {{ error_value("p_row", "p_category", "p_reason", "coalesce(p_row." ~ col.agent ~ ", p_row." ~ col.session ~ ")", "p_attempts") }};
{%- endif %}
begin
{%- if error and error.path %}
    p_row.{{ error.column }} := {{ error_value("p_row", "p_category", "p_reason", "coalesce(p_row." ~ col.agent ~ ", p_row." ~ col.session ~ ")", "p_attempts") }};
{%- endif %}
{%- if recovered %}
    if p_lost > p_row.{{ col.lost }} then
        p_row.{{ recovered.column }} := jsonb_set(coalesce(p_row.{{ recovered.column }}, '{}'), {{ recovered.path }}, to_jsonb(p_lost));
    end if;
{%- endif %}
    update {{ table }} as q
    set {{ status.column }} = {{ status.failed }},
        {{ col.due }} = null,
        {{ col.lease }} = case when p_own then {{ lease_after_own("q") }} else {{ lease_after_other("q", "v_stamp") }} end,
        {{ col.attempts }} = p_attempts,
        {{ col.lost }} = p_lost,
{%- if error and not error.path %}
        {{ error.column }} = v_error,
{%- elif error %}
        {{ error.column }} = p_row.{{ error.column }},
{%- endif %}
{%- if recovered and not (error and error.column == recovered.column) %}
        {{ recovered.column }} = p_row.{{ recovered.column }},
{%- endif %}
{%- if finished %}
        {{ finished.column }} = {{ in_zone("v_now", finished.type) }},
{%- endif %}
        {{ clear_holder() }}
    where {{ same_row("q", "p_row") }};
{%- if dead %}
    perform gleaner.dead_letter_{{ name }}(p_row, p_reason);
{%- endif %}
end
{{ body }};
