-- How addresses are read is set by the operator and by programs with the service key.
revoke all on gleaner.contact_settings from public, anon, authenticated, service_role;
grant select, update on gleaner.contact_settings to service_role;
