/*
 * The step from which on a message may be on its way. Everything that could still stop it is looked at here, under the row's
 * lock, and what will be sent is stored before it is.
 *
 * Takes    {id, lease, message, on_unknown}. on_unknown says what a crash after this step means: `ask` a person, or `resend`
 *          the same message under the same key.
 * Returns  {outcome}: `send` with the key and the message (that of the first try, if there was one);
 *          `lost`: not the caller's, or no longer wanted; `early` with wait_seconds; `cancelled` with the reason;
 *          `deferred` with wait_seconds and the reason.
 * Races    of this step and a reply, the first to lock the row decides; a reply that was committed before is seen here.
 */
create or replace function gleaner.begin_sending(p_request jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_now   timestamptz;
    v_row   public.scheduled_actions;
    v_why   text;
    v_until timestamptz;
begin
    select a.* into v_row from public.scheduled_actions as a where a.id = (p_request ->> 'id')::uuid for no key update;
    if not found or v_row.status <> 'processing' or v_row.lease <> (p_request ->> 'lease')::bigint then
        return '{"outcome": "lost"}';
    end if;
    v_now := clock_timestamp();
    if v_row.scheduled_for > v_now then
        return jsonb_build_object('outcome', 'early', 'wait_seconds', extract(epoch from v_row.scheduled_for - v_now));
    end if;
    v_why := gleaner.reason_not_to_send(v_row, p_request #>> '{message,to}');
    if v_why is not null then
        perform from gleaner.cancel_followups(array[v_row.id], v_why);
        update public.scheduled_actions as a set cancelled_reason = v_why where a.id = v_row.id;
        return jsonb_build_object('outcome', 'cancelled', 'reason', v_why);
    end if;
    select d.until, d.reason into v_until, v_why from gleaner.reason_to_wait(v_row) as d;
    if v_until is not null then
        update public.scheduled_actions as a set deferred_reason = v_why where a.id = v_row.id;
        return jsonb_build_object('outcome', 'deferred', 'reason', v_why, 'wait_seconds', extract(epoch from v_until - v_now));
    end if;
    update public.scheduled_actions as a
    set message = coalesce(a.message, p_request -> 'message'), idempotency_key = coalesce(a.idempotency_key, a.id),
        sending_at = v_now, sending_lease = a.lease, deferred_reason = null
    where a.id = v_row.id
    returning a.* into v_row;
    -- A lease that ends after this call sends the row to a person; without the call it is tried again, under the same key.
    if p_request ->> 'on_unknown' is distinct from 'resend' then
        perform from gleaner.progress_followups(v_row.id, v_row.lease, 'sending', p_hold => interval '5 minutes');
    end if;
    return jsonb_build_object('outcome', 'send', 'key', v_row.idempotency_key, 'message', v_row.message,
        'lateness_seconds', extract(epoch from v_now - v_row.scheduled_for));
end
$$;
comment on function gleaner.begin_sending(jsonb) is 'Says whether an action may be sent now, and stores what will be.';
revoke all on function gleaner.begin_sending(jsonb) from public, anon, authenticated;
grant execute on function gleaner.begin_sending(jsonb) to service_role;
