/*
 * The CRM's list of addresses, [{"email": …, "type": "Work"}], with one more unless it is there: one that is no list begins anew.
 */
create or replace function gleaner.with_address(p_list jsonb, p_key text, p_address text) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    v_list jsonb := case jsonb_typeof(p_list) when 'array' then p_list else '[]' end;
begin
    return case
        when v_list @> jsonb_build_array(jsonb_build_object(p_key, p_address)) then v_list
        else v_list || jsonb_build_object(p_key, p_address, 'type', 'Other')
    end;
end
$$;
comment on function gleaner.with_address(jsonb, text, text) is 'A list of addresses with one more, unless it is there.';
revoke all on function gleaner.with_address(jsonb, text, text) from public, anon;
grant execute on function gleaner.with_address(jsonb, text, text) to authenticated, service_role;
