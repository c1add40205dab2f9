/*
 * The country of numbers written without one.
 *
 *   update gleaner.contact_settings set default_region = 'GB';
 *
 * A channel may have its own for what arrives through it. This one also reads the numbers of contacts.
 */
create or replace function gleaner.default_region() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce((select s.default_region from gleaner.contact_settings as s), 'US');
end
$$;
comment on function gleaner.default_region() is 'The country of numbers written without one.';
revoke all on function gleaner.default_region() from public, anon, authenticated;
grant execute on function gleaner.default_region() to service_role;
