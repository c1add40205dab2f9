-- For the server's own login alone.
alter table gleaner.forgotten_dump_files enable row level security;
revoke all on gleaner.forgotten_dump_files from public, anon, authenticated, service_role;
