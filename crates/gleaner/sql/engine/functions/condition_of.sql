/*
 * The SQL condition that the columns of a row `q` have the given values: 'q.a = ''1'' and q.b is null'. Values stand in it as they are, so
 * that the planner knows how rare they are and takes an index.
 * Raises   GL002 without a column; 42703 for one that the table does not have.
 */
create or replace function gleaner.condition_of(p_table regclass, p_match jsonb) returns text
language plpgsql
as $$
declare
    v_column text;
    v_value  text;
    v_parts  text[] := '{}';
begin
    if p_match is null or p_match = '{}' then
        raise exception 'cancel needs at least one column to match' using errcode = 'GL002', hint = 'To cancel rows by key use the act without "_matching".';
    end if;
    perform gleaner.check_columns(p_table, array(select jsonb_object_keys(p_match)));
    for v_column in select jsonb_object_keys(p_match) loop
        execute format('select (jsonb_populate_record(null::%s, $1)).%I::text', p_table, v_column) into v_value using p_match;
        v_parts := v_parts || case when v_value is null then format('q.%I is null', v_column) else format('q.%I = %L', v_column, v_value) end;
    end loop;
    return array_to_string(v_parts, ' and ');
end
$$;
comment on function gleaner.condition_of(regclass, jsonb) is 'The SQL condition that the columns of a row have the given values.';
revoke all on function gleaner.condition_of(regclass, jsonb) from public, anon, authenticated, service_role;
grant execute on function gleaner.condition_of(regclass, jsonb) to gleaner_engine;
