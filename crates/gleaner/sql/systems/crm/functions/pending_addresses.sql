/*
 * Addresses of contacts that wait to be read properly, the newest contacts first: those are the ones whose messages are
 * just coming in. With the region of numbers that name no country. Costs an empty index while nothing waits.
 */
create or replace function gleaner.pending_addresses(p_limit integer default 200)
returns table (contact_id bigint, kind text, guess text, written text, region text)
language plpgsql stable
set search_path = pg_catalog, public, pg_temp
as $$
begin
    return query
    select a.contact_id, a.kind, a.address, a.written, gleaner.default_region()
    from public.contact_addresses as a
    where not a.parsed
    order by a.contact_id desc
    limit p_limit;
end
$$;
comment on function gleaner.pending_addresses(integer) is 'Addresses of contacts that a server has not read yet.';
revoke all on function gleaner.pending_addresses(integer) from public, anon, authenticated, service_role;
