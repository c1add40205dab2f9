{%- from "macros.sql" import act, in_zone, same_row, whole_key -%}
{%- if finished %}
/*
 * Deletes finished rows older than {{ "the declared retention, or than p_older_than" if retain else "p_older_than; nothing without it, for no retention is declared and the row is the record" }}.
 * At most p_limit rows per call, so that no call holds locks for long: repeat until it answers fewer.
 */
create or replace function gleaner.prune_{{ name }}(p_limit integer default 1000, p_older_than interval default null) returns integer
{{ act() }}
declare
    -- Read once: a clock that may move from row to row is nothing an index can be asked about.
    v_now        timestamptz := clock_timestamp();
    v_older_than interval := coalesce(p_older_than, {{ retain if retain else "null" }});
    v_before     {{ finished.type }} := {{ in_zone("v_now", finished.type) }} - v_older_than;
    v_count      integer;
begin
    perform gleaner.operates({{ name_literal }}, {{ grant.operate }}, '{}');
    perform gleaner.prune_notes({{ name_literal }}, v_now);
    if v_older_than is null then
        return 0;
    end if;
    with old as (
        select {{ whole_key("q") }}
        from {{ table }} as q
        where q.{{ finished.column }} < v_before
          and (q.{{ status.column }} in ({{ status.final }}) or q.{{ status.column }} = {{ status.failed }} and q.{{ col.due }} is null)
        limit p_limit
        for update skip locked
    )
    delete from {{ table }} as q using old where {{ same_row("q", "old") }};
    get diagnostics v_count = row_count;
    perform gleaner.note_prune({{ name_literal }}, v_count, v_older_than);
    return v_count;
end
{{ body }};
{%- endif %}
