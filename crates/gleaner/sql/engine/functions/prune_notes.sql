/*
 * Forgets the engine's own notes about a queue: lost answers after a day, late results after a week, rejected rows once their time is
 * long over (how often a row was rejected decides how long it waits the next time).
 */
create or replace function gleaner.prune_notes(p_queue text, p_now timestamptz) returns void
language plpgsql
as $$
begin
    delete from gleaner.request as r where r.at < p_now - interval '1 day';
    delete from gleaner.late_result as l where l.queue = p_queue and l.at < p_now - interval '7 days';
    delete from gleaner.rejected_row as r where r.queue = p_queue and r.until < p_now - interval '1 day';
end
$$;
comment on function gleaner.prune_notes(text, timestamptz) is 'Forgets the engine''s own notes about a queue once they are old.';
revoke all on function gleaner.prune_notes(text, timestamptz) from public, anon, authenticated, service_role;
grant execute on function gleaner.prune_notes(text, timestamptz) to gleaner_engine;
