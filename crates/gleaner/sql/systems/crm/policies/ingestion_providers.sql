-- Channels hold secrets: administrators and the service key alone.
alter table public.ingestion_providers enable row level security;
revoke all on public.ingestion_providers from public, anon, authenticated;
grant select, insert, update, delete on public.ingestion_providers to authenticated;
grant all on public.ingestion_providers to service_role;

drop policy if exists ingestion_providers_service on public.ingestion_providers;
create policy ingestion_providers_service on public.ingestion_providers to service_role using (true) with check (true);

drop policy if exists ingestion_providers_administrators on public.ingestion_providers;
create policy ingestion_providers_administrators on public.ingestion_providers to authenticated
    using ((select gleaner.is_administrator())) with check ((select gleaner.is_administrator()));
