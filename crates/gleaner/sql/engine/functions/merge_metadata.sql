-- An object with the members of another put in; those that are null are taken out.
create or replace function gleaner.merge_metadata(p_old jsonb, p_new jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_new is null or jsonb_typeof(p_new) = 'null' then
        return p_old;
    end if;
    return (p_old || p_new) - coalesce((select array_agg(m.key) from jsonb_each(p_new) as m where jsonb_typeof(m.value) = 'null'), '{}');
end
$$;
comment on function gleaner.merge_metadata(jsonb, jsonb) is 'The first object with the members of the second; null members are taken out.';
revoke all on function gleaner.merge_metadata(jsonb, jsonb) from public, anon, authenticated;
