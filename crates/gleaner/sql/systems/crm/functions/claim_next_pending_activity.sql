/*
 * Takes the next activity for the agent of one owner: the owner's own at any age, then one without an owner, then
 * one its owner left standing longer than that owner allows.
 *
 * Input    the caller's own sales id; a signed-in user who names another's is refused (42501).
 * Changes  processing_status to 'processing', locked_by to the caller's user id, locked_at to the database's time.
 * Returns  one row or none. The four columns id, raw_data, type and is_global come first, then the row; lease is what the
 *          acts in schema gleaner ask for, due_at the end of the lease, deadline_at the end of every extension.
 * Counts   as started: callers of this function work on the one row they get, so a lease lost here is a lost lease.
 */
create or replace function public.claim_next_pending_activity(p_agent_sales_id bigint)
returns table (
    id uuid,
    raw_data jsonb,
    type text,
    is_global boolean,
    direction text,
    sales_id bigint,
    contact_id bigint,
    processing_status text,
    processed_data jsonb,
    metadata jsonb,
    locked_by uuid,
    locked_at timestamptz,
    provider_id uuid,
    created_at timestamptz,
    progress jsonb,
    attempts integer,
    lease bigint,
    due_at timestamptz,
    deadline_at timestamptz
)
language sql volatile
set search_path = pg_catalog, public, pg_temp
as $$
    select a.id, a.raw_data, a.type, a.sales_id is null,
           a.direction, a.sales_id, a.contact_id, a.processing_status, a.processed_data, a.metadata,
           a.locked_by, a.locked_at, a.provider_id, a.created_at,
           a.progress, a.attempts, a.lease, a.due_at, a.deadline_at
    from gleaner.claim_activities(
        -- No agent id: the caller ends its work by a plain update, and is known by its sign-in.
        p_agent   => null,
        p_owner   => p_agent_sales_id,
        p_started => true) as a
$$;
comment on function public.claim_next_pending_activity(bigint) is
    'Takes one activity: the owner''s own, then one without an owner, then one that another owner left waiting too long.';
revoke all on function public.claim_next_pending_activity(bigint) from public, anon;
grant execute on function public.claim_next_pending_activity(bigint) to authenticated, service_role;
