/*
 * Removes what has served its time, a bounded step at a time: raw requests past their age or beyond the newest p_raw_rows,
 * memories that have expired, old counts of refusals. Call it again while it says it removed anything.
 * Returns  what was removed, how many, and the files of removed requests: those are the caller's to delete.
 * Races    skip locked: several servers may prune at once and share the work.
 */
create or replace function gleaner.prune_ingestion(
    p_raw_age     interval default '7 days',
    p_raw_rows    bigint   default 200000,
    p_refusal_age interval default '30 days',
    p_limit       integer  default 1000)
returns table (what text, removed bigint, files text[])
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now    timestamptz := clock_timestamp();
    v_before timestamptz := v_now - p_raw_age;
begin
    v_before := greatest(v_before, (
        select r.received_at from gleaner.raw_request as r order by r.received_at desc offset greatest(p_raw_rows, 0) limit 1));

    return query
    with gone as (
        delete from gleaner.raw_request as r
        where r.id = any (array(
            select o.id from gleaner.raw_request as o
            where o.received_at <= v_before
            order by o.received_at limit p_limit
            for update skip locked))
        returning r.body_file
    )
    select 'raw_request'::text, count(*), coalesce(array_agg(g.body_file order by g.body_file) filter (where g.body_file is not null), '{}') from gone as g;

    return query
    with gone as (
        delete from gleaner.ingest_memory as m
        using (
            select o.provider_id, o.key from gleaner.ingest_memory as o
            where o.expires_at <= v_now
            order by o.expires_at limit p_limit
            for update skip locked) as old
        where m.provider_id = old.provider_id and m.key = old.key
        returning 1
    )
    select 'ingest_memory'::text, count(*), '{}'::text[] from gone;

    return query
    with gone as (
        delete from gleaner.ingest_refusal as f
        where f.ctid = any (array(
            select o.ctid from gleaner.ingest_refusal as o
            where o.at_minute < v_now - p_refusal_age
            order by o.at_minute limit p_limit
            for update skip locked))
        returning 1
    )
    select 'ingest_refusal'::text, count(*), '{}'::text[] from gone;
end
$$;
comment on function gleaner.prune_ingestion(interval, bigint, interval, integer) is
    'Removes old raw requests, expired memories and old counts of refusals, a bounded step at a time.';
revoke all on function gleaner.prune_ingestion(interval, bigint, interval, integer) from public, anon, authenticated, service_role;
