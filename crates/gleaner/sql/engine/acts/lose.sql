{%- from "macros.sql" import inner, same_row, rejected_key -%}
/*
 * A locked row whose holder's lease ran out: counts a lost lease where the work was begun, and ends the row that lost too many. One that
 * did not waits again. A row that rejects the change is noted, and left out of claims for a while.
 */
create or replace function gleaner.lose_{{ name }}(v_row {{ table }}) returns void {{ inner() }}
declare
    v_lost   integer := v_row.{{ col.lost }} + case when {{ when.v_row.held }} and v_row.{{ col.started }} >= 1 then 1 else 0 end;
    v_reason text := {{ poison_reason }};
begin
    perform case when v_reason is null then gleaner.settle_{{ name }}(v_row, {{ status.ready }}, clock_timestamp(), false, v_row.{{ col.attempts }}, v_lost)
                 else gleaner.settle_{{ name }}(v_row, {{ status.failed }}, null, false, v_row.{{ col.attempts }}, v_lost, {{ poison_category }}, v_reason) end;
    if exists (select from {{ table }} as q where {{ same_row("q", "v_row") }} and ({{ when.q.held }} or v_reason is not null and {{ claimable }})) then
        raise exception 'a trigger skipped the change';
    end if;
exception when others then
    perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
    perform gleaner.reject_row({{ name_literal }}, {% if tenant %}v_row.{{ tenant.column }}::text{% else %}''{% endif %}, {{ rejected_key("v_row") }}, sqlerrm);
end
{{ body }};
