/*
 * Calls off everything not yet executed for a prospect, as when the prospect has replied: what waits, what is backing off,
 * and what a worker holds at this moment. The holder's next call with its lease is refused. Not one whose sending has begun:
 * it may be on its way, and a cancelled row would deny it.
 *
 * Races    an action another transaction is just creating cannot be seen here; the sender looks for a reply once more at
 *          its last step.
 * Returns  how many were cancelled.
 */
create or replace function public.cancel_pending_for_prospect(
    p_prospect_id text,
    p_reason text default 'the prospect replied'
) returns integer
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_ids uuid[];
begin
    v_ids := array(
        select a.id
        from public.scheduled_actions as a
        where a.prospect_id = p_prospect_id
          and (a.status in ('pending', 'processing') or a.status = 'failed' and a.due_at is not null)
          and not (a.status = 'processing' and a.sending_lease is not distinct from a.lease)
        order by a.id
        for no key update);
    -- Two statements: the second must see what the first changed.
    v_ids := array(select c.id from gleaner.cancel_followups(v_ids, p_reason) as c where c.outcome = 'done');
    update public.scheduled_actions as a set cancelled_reason = p_reason where a.id = any (v_ids);
    return cardinality(v_ids);
end
$$;
comment on function public.cancel_pending_for_prospect(text, text) is
    'Calls off every unfinished action of a prospect, running ones included; returns how many.';
revoke all on function public.cancel_pending_for_prospect(text, text) from public, anon, authenticated;
grant execute on function public.cancel_pending_for_prospect(text, text) to service_role;
