/*
 * Where the last large or slow look of this session ended, if that is still to be used and the look asked for the same. Null: from the start.
 */
create or replace function gleaner.read_cursor(p_setting text, p_asked text, p_now timestamptz) returns jsonb
language plpgsql
as $$
declare
    v_cursor jsonb := nullif(current_setting(p_setting, true), '')::jsonb;
begin
    if (v_cursor ->> 'until')::double precision <= extract(epoch from p_now) then
        -- Forgotten, so that claims of one row need not ask what it says.
        perform set_config(p_setting, '', false);
        return null;
    end if;
    return case when v_cursor ->> 'asked' = p_asked then v_cursor end;
end
$$;
comment on function gleaner.read_cursor(text, text, timestamptz) is 'Where the last large or slow look of this session ended; null: from the start.';
revoke all on function gleaner.read_cursor(text, text, timestamptz) from public, anon, authenticated, service_role;
grant execute on function gleaner.read_cursor(text, text, timestamptz) to gleaner_engine;
