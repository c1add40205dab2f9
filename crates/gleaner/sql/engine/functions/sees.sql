/*
 * Whether the caller may see this row of the queue: its own rights and the table's policies decide. For policies on the engine's
 * notes about rows, which are for those who may see the row itself.
 */
create or replace function gleaner.sees(p_queue text, p_key text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_table text;
    v_key   text;
    v_type  text;
    v_sees  boolean;
begin
    select q.table_name, a.attname, format_type(a.atttypid, a.atttypmod) into v_table, v_key, v_type
    from gleaner.queue as q
    join pg_attribute as a on a.attrelid = to_regclass(q.table_name) and a.attname = q.declaration ->> 'key'
    where q.name = p_queue;
    if not found then
        return false;
    end if;
    execute format('select exists (select from %s as q where q.%I = $1::%s)', v_table, v_key, v_type) into v_sees using p_key;
    return v_sees;
exception when insufficient_privilege or data_exception then
    return false;
end
$$;
comment on function gleaner.sees(text, text) is 'Whether the caller may see this row of the queue.';
revoke all on function gleaner.sees(text, text) from public, anon, authenticated;
grant execute on function gleaner.sees(text, text) to authenticated, service_role;
