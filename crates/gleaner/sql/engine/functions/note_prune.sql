-- Records that a person pruned, and how much. Programs prune all day: theirs is not an event.
create or replace function gleaner.note_prune(p_queue text, p_count integer, p_older_than interval) returns void
language plpgsql
as $$
begin
    if p_count > 0 and not gleaner.is_trusted() then
        insert into gleaner.audit (queue, key, act, caller, detail)
        values (p_queue, '', 'prune', gleaner.caller_session(), jsonb_build_object('count', p_count, 'older_than', p_older_than));
    end if;
end
$$;
comment on function gleaner.note_prune(text, integer, interval) is 'Records that a person pruned, and how much.';
revoke all on function gleaner.note_prune(text, integer, interval) from public, anon, authenticated, service_role;
grant execute on function gleaner.note_prune(text, integer, interval) to gleaner_engine;
