-- The built-in queue belongs to programs that hold the service key; signed-in users do not see it.
revoke all on gleaner.jobs from public, anon, authenticated, service_role;
revoke all on sequence gleaner.jobs_id_seq from public, anon, authenticated;
grant select, update, delete on gleaner.jobs to service_role;
-- No adapter stamps what is inserted here, so the engine's columns are kept out of reach by rights.
grant insert (id, kind, payload, priority, unique_key, due_at, created_at) on gleaner.jobs to service_role;
