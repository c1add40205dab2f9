-- What came in byte for byte, and rejected requests: for administrators and the service key to read, not to write.
-- The server's role owns these tables, and policies do not apply to the owner.
alter table gleaner.raw_request enable row level security;
alter table gleaner.ingest_refusal enable row level security;
alter table gleaner.ingest_memory enable row level security;
alter table gleaner.forgotten_files enable row level security;
alter table gleaner.media_reference enable row level security;
revoke all on gleaner.raw_request, gleaner.ingest_refusal, gleaner.ingest_memory, gleaner.forgotten_files, gleaner.media_reference
from public, anon, authenticated, service_role;
grant select on gleaner.raw_request, gleaner.ingest_refusal to authenticated, service_role;

drop policy if exists raw_request_service on gleaner.raw_request;
create policy raw_request_service on gleaner.raw_request for select to service_role using (true);
drop policy if exists raw_request_administrators on gleaner.raw_request;
create policy raw_request_administrators on gleaner.raw_request for select to authenticated
    using ((select gleaner.is_administrator()));

drop policy if exists ingest_refusal_service on gleaner.ingest_refusal;
create policy ingest_refusal_service on gleaner.ingest_refusal for select to service_role using (true);
drop policy if exists ingest_refusal_administrators on gleaner.ingest_refusal;
create policy ingest_refusal_administrators on gleaner.ingest_refusal for select to authenticated
    using ((select gleaner.is_administrator()));
