/*
 * The country of numbers written without one: the setting gleaner.default_region, or US.
 *
 *   alter database crm set gleaner.default_region = 'GB';
 *
 * A channel may have its own for what arrives through it. This one also reads the numbers of contacts: after changing it,
 * `update contacts set phone_number = phone_number, phone_jsonb = phone_jsonb` has them all read again.
 */
create or replace function gleaner.default_region() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce(nullif(upper(btrim(current_setting('gleaner.default_region', true))), ''), 'US');
end
$$;
comment on function gleaner.default_region() is 'The country of numbers written without one.';
revoke all on function gleaner.default_region() from public, anon, authenticated;
grant execute on function gleaner.default_region() to service_role;
