/*
 * A row that is deleted leaves the sheaf that held it, and with a truncated table all its sheaves go: whoever is inserted under the
 * same key later is nobody's, and a former holder has no lease on it.
 * Arguments  the queue, and the name of its key column.
 */
create or replace function gleaner.leave_sheaf() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_key bigint;
begin
    if tg_op = 'TRUNCATE' then
        delete from gleaner.sheaf as s where s.queue = tg_argv[0];
        delete from gleaner.swath as s where s.queue = tg_argv[0];
        return null;
    end if;
    v_key := (to_jsonb(old) ->> tg_argv[1])::bigint;
    update gleaner.sheaf as s
    set keys = s.keys - int8multirange(int8range(v_key, v_key, '[]'))
    where s.queue = tg_argv[0] and s.keys @> v_key;
    if found then
        delete from gleaner.sheaf as s where s.queue = tg_argv[0] and isempty(s.keys);
    end if;
    return null;
end
$$;
comment on function gleaner.leave_sheaf() is 'A deleted row leaves the sheaf that held it.';
revoke all on function gleaner.leave_sheaf() from public, anon, authenticated;
