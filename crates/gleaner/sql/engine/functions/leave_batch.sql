/*
 * A deleted row leaves the batch lease that held it, and with a truncated table all records of the queue go: a row inserted under the
 * same key later has no holder, and a former holder has no lease on it.
 * Arguments  the queue, and the name of its key column.
 */
create or replace function gleaner.leave_batch() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_key bigint;
begin
    if tg_when = 'BEFORE' then
        -- Which rows will go is not known yet.
        perform from gleaner.batch_lease as b where b.queue = tg_argv[0] order by b.id for update;
        return null;
    end if;
    if tg_op = 'TRUNCATE' then
        delete from gleaner.batch_lease as b where b.queue = tg_argv[0];
        delete from gleaner.bulk_range as r where r.queue = tg_argv[0];
        return null;
    end if;
    v_key := (to_jsonb(old) ->> tg_argv[1])::bigint;
    update gleaner.batch_lease as b
    set keys = b.keys - int8multirange(int8range(v_key, v_key, '[]')), remaining = b.remaining - 1
    where b.queue = tg_argv[0] and b.keys @> v_key;
    if found then
        delete from gleaner.batch_lease as b where b.queue = tg_argv[0] and (isempty(b.keys) or b.remaining <= 0);
    end if;
    return null;
end
$$;
comment on function gleaner.leave_batch() is 'A deleted row leaves the batch lease that held it.';
revoke all on function gleaner.leave_batch() from public, anon, authenticated;
