/*
 * Chooses what a claim takes of rows that it found, where some had a holder before. p_held_before says of each: 0, it had none; n above
 * zero, the nth holder died before it began the row; -1, a holder died while it worked on the row; -2, the same once too often.
 * Parked   rows that were not begun come back in batches. A second loss halves the batch, a third quarters it, so that a row that brings
 *          its holder down is found, and goes alone in the end.
 * Begun    goes alone, so that no other row suffers with it.
 * Returns  places in p_held_before: those to take now, those to leave out when the claim goes on, and those to end; whether the claim is of
 *          one row that goes alone; and how many rows it may still take, these included.
 */
create or replace function gleaner.choose_rows(
    p_held_before smallint[], p_limit integer, p_taken integer,
    out places integer[], out passed integer[], out ended integer[], out alone boolean, out room integer
)
language plpgsql immutable
as $$
declare
    v_most integer;
begin
    places := '{}'; passed := '{}'; ended := '{}'; alone := false; room := p_limit;
    for v_i in 1 .. cardinality(p_held_before) loop
        -- The rows behind a batch that is full are not left out: they are next in the line.
        exit when cardinality(places) >= room;
        if p_held_before[v_i] = -2 then
            ended := ended || v_i;
            continue;
        elsif p_held_before[v_i] >= 0 then
            v_most := case when p_held_before[v_i] > 1 then greatest((p_taken + p_limit) >> (p_held_before[v_i] - 1), 1) - p_taken else room end;
            if cardinality(places) < v_most then
                places := places || v_i;
                room := least(room, v_most);
                alone := p_held_before[v_i] > 1 and room = 1 and p_taken = 0;
                continue;
            end if;
        elsif p_taken = 0 and cardinality(places) = 0 then
            places := array[v_i];
            alone := true;
            exit;
        end if;
        passed := passed || v_i;
    end loop;
end
$$;
comment on function gleaner.choose_rows(smallint[], integer, integer) is 'Chooses what a claim takes of rows that it found, where some had a holder before.';
revoke all on function gleaner.choose_rows(smallint[], integer, integer) from public, anon, authenticated, service_role;
grant execute on function gleaner.choose_rows(smallint[], integer, integer) to gleaner_engine;
