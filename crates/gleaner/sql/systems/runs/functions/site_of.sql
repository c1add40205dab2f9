-- Host and port of an address, in lower case: `https://Shop.example/x` is shop.example:443. Null where the data of a run says it.
create or replace function gleaner.site_of(p_url text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select case when m[2] !~ '\{\{' then
        lower(case when m[2] ~ ':\d+$' then m[2] when lower(m[1]) = 'https' then m[2] || ':443' else m[2] || ':80' end) end
    from regexp_match(p_url, '^(https?)://(?:[^/?#@]*@)?([^/?#]+)', 'i') as m
$$;
comment on function gleaner.site_of(text) is 'Host and port of an address.';
revoke all on function gleaner.site_of(text) from public, anon, authenticated;
grant execute on function gleaner.site_of(text) to authenticated, service_role;
