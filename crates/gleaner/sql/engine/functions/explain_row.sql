/*
 * The explanation of a row that an act describes by the engine's names. p_private: its owner does not share. p_other_kind: its kind, where
 * that is not among those asked for.
 * Returns  null where there is no such row. A worker's key sees what it holds: of other rows it learns as little as of rows that are not there.
 */
create or replace function gleaner.explain_row(
    p_queue text, p_tenant text, p_key text, p_now timestamptz, p_session text, p_row jsonb, p_private boolean, p_other_kind text default null
) returns jsonb
language plpgsql stable
as $$
declare
    v_state    text := p_row ->> 'state';
    v_agent    text := p_row ->> 'agent';
    v_stands   boolean := v_state in ('ready', 'running', 'backing off', 'scheduled');
    v_at       timestamptz := p_row ->> 'claimable_at';
    v_due      timestamptz := p_row ->> 'due_at';
    v_rejected gleaner.rejected_row;
    v_pause    gleaner.pause;
begin
    if p_row ->> 'id' is null or p_session is distinct from gleaner.worker_session() and gleaner.worker_session() is not null then
        return null;
    end if;
    select r.* into v_rejected from gleaner.rejected_row as r where r.queue = p_queue and r.tenant = p_tenant and r.key = p_key;
    select p.* into v_pause from gleaner.pause as p where p.queue = p_queue;
    return jsonb_build_object('class', 'global') || p_row || jsonb_build_object(
        'claimable', coalesce(v_stands and v_at <= p_now and coalesce(v_rejected.until <= p_now, true) and p_other_kind is null, false) and v_pause.queue is null,
        'claimable_at', case when v_stands then v_at end,
        'agent', case when v_state = 'running' then v_agent end,
        'reason', case
            when v_state in ('done', 'cancelled', 'dead', 'other') then format('it is %s (status %L)', v_state, p_row ->> 'status')
            when v_state = 'orphan' then 'it waits in a bulk range that is not there: it was copied or restored without it; requeue it'
            when v_state = 'unfilled' then 'it has no due time yet: it was written before the table was attached, or while its trigger was off'
            when v_pause.queue is not null and v_state <> 'running' then
                concat_ws(': ', format('the queue has been paused for %s', date_trunc('second', p_now - v_pause.at)), v_pause.reason)
            when p_other_kind is not null then format('its kind %L is not among those asked for', p_other_kind)
            when p_private then format('its owner %s keeps work private', p_row ->> 'owner')
            when v_at is null then 'it has no due time'
            when v_at <= p_now and v_state = 'running' then format('the lease of %s ran out %s ago', v_agent, p_now - v_due)
            when v_at <= p_now and v_rejected.until > p_now then
                format('it rejected a change, and is tried again in %s: %s', v_rejected.until - p_now, v_rejected.reason)
            when v_at <= p_now then 'its time has come'
            when v_state = 'running' then format('%s holds it; the lease ends in %s unless progress extends it', v_agent, v_at - p_now)
            when v_state = 'backing off' and v_due > p_now then format('attempt %s failed; the next try is in %s', p_row ->> 'attempts', v_at - p_now)
            when p_row ->> 'class' = 'stale' and v_due <= p_now then
                format('its owner %s has first right to it for another %s', p_row ->> 'owner', v_at - p_now)
            else format('it is due in %s', v_at - p_now)
        end)
        || case when v_pause.queue is null then '{}' else jsonb_build_object('paused', jsonb_build_object('at', v_pause.at, 'caller', v_pause.caller, 'reason', v_pause.reason)) end;
end
$$;
comment on function gleaner.explain_row(text, text, text, timestamptz, text, jsonb, boolean, text) is 'The explanation of a row that an act describes by the engine''s names.';
revoke all on function gleaner.explain_row(text, text, text, timestamptz, text, jsonb, boolean, text) from public, anon, authenticated, service_role;
grant execute on function gleaner.explain_row(text, text, text, timestamptz, text, jsonb, boolean, text) to gleaner_engine;
