-- The built-in queue belongs to programs that hold the service key; nobody who merely signed in sees it.
revoke all on gleaner.jobs from public, anon, authenticated;
grant select, insert, update, delete on gleaner.jobs to service_role;
