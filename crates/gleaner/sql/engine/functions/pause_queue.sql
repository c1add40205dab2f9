/*
 * Pauses a queue, or resumes it: claims find nothing until then. What is held goes on, and may be completed. Both are in the audit.
 * Returns  done, or already when there was nothing to change.
 * Raises   42501 unless the caller operates all rows of the queue; P0002 when there is no such queue.
 * Security definer: the table is the engine's. The caller is checked first.
 */
create or replace function gleaner.pause_queue(p_queue text, p_paused boolean default true, p_reason text default null) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_operate text[];
begin
    select array(select jsonb_array_elements_text(q.declaration #> '{grant,operate}')) into v_operate from gleaner.queue as q where q.name = p_queue;
    if not found then
        raise exception 'there is no queue %', p_queue using errcode = 'P0002', hint = 'gleaner queues lists them.';
    end if;
    perform gleaner.operates(p_queue, v_operate, '{}');
    if p_paused then
        insert into gleaner.pause (queue, caller, reason) values (p_queue, gleaner.caller_session(), p_reason) on conflict do nothing;
    else
        delete from gleaner.pause as p where p.queue = p_queue;
    end if;
    if not found then
        return 'already';
    end if;
    insert into gleaner.audit (queue, key, act, caller, detail)
    values (p_queue, '', case when p_paused then 'pause' else 'resume' end, gleaner.caller_session(), jsonb_build_object('reason', p_reason));
    if not p_paused then
        -- What waited is due now, and workers may have been told that nothing is.
        perform pg_notify('gleaner', p_queue);
    end if;
    return 'done';
end
$$;
comment on function gleaner.pause_queue(text, boolean, text) is 'Pauses or resumes a queue: claims find nothing in a paused one.';
revoke all on function gleaner.pause_queue(text, boolean, text) from public, anon;
grant execute on function gleaner.pause_queue(text, boolean, text) to authenticated, service_role;
