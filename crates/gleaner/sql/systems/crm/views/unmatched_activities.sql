-- The inbox of activities no contact was found for; order by created_at and id, descending, and limit it: activities_unmatched_idx serves it.
-- Candidates are the contacts among whom a person must choose: several that matched, or one it was taken from.
create or replace view public.unmatched_activities with (security_invoker = true) as
select a.id, a.type, a.direction, a.sales_id, a.processing_status, a.raw_data, a.processed_data, a.metadata,
       a.provider_id, a.created_at, a.sender_kind, a.sender_address, a.metadata #> '{match,candidates}' as candidates
from public.activities as a
where a.contact_id is null
  -- What `gleaner channels test` sent has no sender.
  and not (a.processing_status = 'cancelled' and a.metadata @> '{"test": true}');
comment on view public.unmatched_activities is 'Activities without a contact, for a person to link.';
revoke all on public.unmatched_activities from public, anon, authenticated;
grant select on public.unmatched_activities to authenticated, service_role;
