{%- from "macros.sql" import tenant_param, tenant_is -%}
/*
 * Chooses what a claim takes of rows that it found, where some had a holder before.
 * Parked   a holder died before it began the row: such rows come back in batches. A second loss halves the batch, a third quarters it,
 *          so that a row that brings its holder down is found, and goes alone in the end.
 * Begun    a holder died while it worked on the row: it goes alone, so that no other row suffers with it. One that lost too many leases ends here.
 * Returns  places in p_keys to take now, whether that is a row that goes alone, the keys to leave out when the claim goes on, and how many rows it may
 *          still take, these included.
 */
create or replace function gleaner.take_over_{{ name }}(
    {{ tenant_param() }}p_keys {{ key.type }}[], p_held_before smallint[]{% for part in parts %}, p_part_{{ loop.index }} {{ part.type }}[]{% endfor %}, p_limit integer, p_taken integer,
    out places integer[], out alone boolean, out passed {{ key.type }}[], out room integer
)
language plpgsql
as {{ body }}
declare
    v_most   integer;
    v_row    {{ table }};
    v_lost   integer;
    v_reason text;
begin
    places := '{}';
    passed := '{}';
    alone := false;
    room := p_limit;
    for v_i in 1 .. cardinality(p_keys) loop
        -- The rows behind a batch that is full are not left out: they are next in the line.
        exit when cardinality(places) >= room;
        if p_held_before[v_i] >= 0 then
            v_most := case when p_held_before[v_i] > 1 then greatest((p_taken + p_limit) >> (p_held_before[v_i] - 1), 1) - p_taken else room end;
            if cardinality(places) < v_most then
                places := places || v_i;
                room := least(room, v_most);
                alone := p_held_before[v_i] > 1 and room = 1 and p_taken = 0;
            else
                passed := passed || p_keys[v_i];
            end if;
            continue;
        end if;
        select q.* into v_row from {{ table }} as q
        where {{ tenant_is("q") }}q.{{ key.column }} = p_keys[v_i]{% for part in parts %} and q.{{ part.column }} = p_part_{{ loop.index }}[v_i]{% endfor %};
        v_lost := v_row.{{ col.lost }} + case when v_row.{{ status.column }} in ({{ status.held }}) and v_row.{{ col.started }} >= 1 then 1 else 0 end;
        v_reason := {{ poison_reason }};
        if v_reason is not null then
            begin
                perform gleaner.end_{{ name }}(v_row, v_reason, {{ poison_category }}, v_row.{{ col.attempts }}, v_lost);
                if exists (select from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = p_keys[v_i]{% for part in parts %} and q.{{ part.column }} = p_part_{{ loop.index }}[v_i]{% endfor %} and {{ claimable }}) then
                    raise exception 'a trigger skipped the change';
                end if;
            exception when others then
                perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
                perform gleaner.reject_row({{ name_literal }}, {% if tenant %}p_tenant::text{% else %}''{% endif %}, {% if parts %}(p_keys[v_i]{% for part in parts %}, p_part_{{ loop.index }}[v_i]{% endfor %})::text{% else %}p_keys[v_i]::text{% endif %}, sqlerrm);
            end;
        elsif p_taken = 0 and cardinality(places) = 0 then
            places := array[v_i];
            alone := true;
            exit;
        else
            passed := passed || p_keys[v_i];
        end if;
    end loop;
end
{{ body }};
