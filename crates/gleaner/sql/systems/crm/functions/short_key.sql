-- A name given by another system, in a form that fits an index: itself, or its hash when it is long.
create or replace function gleaner.short_key(p_key text) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return case when octet_length(p_key) <= 512 then p_key else 'sha256:' || encode(sha256(convert_to(p_key, 'UTF8')), 'hex') end;
end
$$;
comment on function gleaner.short_key(text) is 'A name in a form that fits an index: itself, or its hash when it is long.';
revoke all on function gleaner.short_key(text) from public, anon, authenticated, service_role;
