/*
 * Takes one activity that was left waiting: any owner's once its owner's threshold has passed, where that owner shares at
 * all, or one without an owner that has waited five minutes (no owner, so no threshold but the usual one).
 *
 * Changes  as claim_next_pending_activity, and counts as started for the same reason.
 * Returns  one row or none, in the shape of claim_next_pending_activity.
 */
create or replace function public.claim_stale_activity()
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
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
begin
    -- No agent id: the caller ends its work by a plain update, and is known by its sign-in.
    return query
    select a.id, a.raw_data, a.type, a.sales_id is null,
           a.direction, a.sales_id, a.contact_id, a.processing_status, a.processed_data, a.metadata,
           a.locked_by, a.locked_at, a.provider_id, a.created_at,
           a.progress, a.attempts, a.lease, a.due_at, a.deadline_at
    from gleaner.claim_activities(p_agent => null, p_classes => '{stale}', p_started => true) as a;
    if found then
        return;
    end if;
    -- Early by minus five minutes: only what has been due that long.
    return query
    select a.id, a.raw_data, a.type, a.sales_id is null,
           a.direction, a.sales_id, a.contact_id, a.processing_status, a.processed_data, a.metadata,
           a.locked_by, a.locked_at, a.provider_id, a.created_at,
           a.progress, a.attempts, a.lease, a.due_at, a.deadline_at
    from gleaner.claim_activities(p_agent => null, p_classes => '{global}', p_started => true, p_early => '-5 minutes') as a;
end
$$;
comment on function public.claim_stale_activity() is
    'Takes one activity that others left standing, within each owner''s own threshold and privacy.';
revoke all on function public.claim_stale_activity() from public, anon;
grant execute on function public.claim_stale_activity() to authenticated, service_role;
