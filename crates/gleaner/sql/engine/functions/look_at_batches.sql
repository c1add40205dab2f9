/*
 * The keys that batch leases of a queue hold by now, of rows that waited each by itself, and whether any batch lease ran out. While a
 * forgotten transaction pins dead records at the head of the line, every look begins at the oldest transaction that could have left an
 * open one, as the look before it has proved.
 */
create or replace function gleaner.look_at_batches(p_queue text, p_now timestamptz, out keys int8multirange, out ran_out boolean)
language plpgsql
as $$
declare
    v_oldest xid8 := coalesce(nullif(current_setting('gleaner.batches_' || p_queue, true), ''), '0')::xid8;
    v_next   xid8;
begin
    -- Those of bulk ranges are not asked about: their rows are in no line, and a row inserted anew under such a key is nobody's.
    select coalesce(range_agg(b.keys) filter (where b.mark = 0), '{}'), coalesce(bool_or(b.due_at <= p_now), false), least(min(b.xid), pg_snapshot_xmin(pg_current_snapshot()))
    into keys, ran_out, v_next
    from gleaner.batch_lease as b where b.queue = p_queue and b.xid >= v_oldest;
    if v_next <> v_oldest then
        perform set_config('gleaner.batches_' || p_queue, v_next::text, false);
    end if;
end
$$;
comment on function gleaner.look_at_batches(text, timestamptz) is 'The keys that batch leases of a queue hold, and whether one of them ran out.';
revoke all on function gleaner.look_at_batches(text, timestamptz) from public, anon, authenticated, service_role;
grant execute on function gleaner.look_at_batches(text, timestamptz) to gleaner_engine;
