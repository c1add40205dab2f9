/*
 * Removes noted changes of transactions before p_before, all of which are over, a bounded step at a time.
 * Says     so first, where every session sees it at once: a server that had not read them reports the gap to its subscribers.
 * Returns  how many went; call it again while there are any.
 * Races    skip locked: several servers may prune at once and share the work.
 */
create or replace function gleaner.prune_changes(p_before xid8, p_limit integer default 5000) returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_gone bigint;
begin
    if not exists (select from gleaner.change as c where c.xid < p_before) then
        return 0;
    end if;
    perform setval('gleaner.changes_pruned_before', greatest(p_before::text::bigint, s.last_value))
    from gleaner.changes_pruned_before as s;
    with gone as (
        delete from gleaner.change as c
        where c.ctid = any (array(
            select o.ctid from gleaner.change as o
            where o.xid < p_before
            order by o.xid limit p_limit
            for update skip locked))
        returning 1
    )
    select count(*) into v_gone from gone;
    return v_gone;
end
$$;
comment on function gleaner.prune_changes(xid8, integer) is 'Removes noted changes of transactions before this one, a bounded step at a time.';
revoke all on function gleaner.prune_changes(xid8, integer) from public, anon, authenticated, service_role;
