/*
 * Whether numbers without country that come through this channel are read as country code 1, which twenty-five countries
 * and territories share.
 */
create or replace function gleaner.is_region_of_one(p_provider uuid) returns boolean
language plpgsql stable
set search_path = pg_catalog, public, pg_temp
as $$
begin
    return coalesce(
        (select nullif(upper(btrim(p.config ->> 'default_region')), '') from public.ingestion_providers as p where p.id = p_provider),
        gleaner.default_region())
        in ('US', 'CA', 'AG', 'AI', 'AS', 'BB', 'BM', 'BS', 'DM', 'DO', 'GD', 'GU', 'JM', 'KN', 'KY', 'LC', 'MP', 'MS', 'PR',
            'SX', 'TC', 'TT', 'VC', 'VG', 'VI');
end
$$;
comment on function gleaner.is_region_of_one(uuid) is 'Whether a channel''s default region is in country code 1.';
revoke all on function gleaner.is_region_of_one(uuid) from public, anon, authenticated, service_role;
