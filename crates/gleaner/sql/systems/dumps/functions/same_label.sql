-- How labels are compared: without case, and with single spaces. Written out in the index context_items_same_entity_key.
create or replace function gleaner.same_label(p_label text) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select lower(btrim(regexp_replace(p_label, '\s+', ' ', 'g')))
$$;
comment on function gleaner.same_label(text) is 'A label as it is compared: without case, and with single spaces.';
revoke all on function gleaner.same_label(text) from public, anon, authenticated;
grant execute on function gleaner.same_label(text) to service_role;
