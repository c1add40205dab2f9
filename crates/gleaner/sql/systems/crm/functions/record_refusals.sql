/*
 * Adds to the count of rejected requests.
 * Takes    [{provider: uuid | null, reason, status, count, at?, client?, detail?}], as many as a server has gathered.
 * Races    rows are written in the order of their key, so that two servers never wait for each other.
 */
create or replace function gleaner.record_refusals(p_refusals jsonb) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now timestamptz := clock_timestamp();
begin
    insert into gleaner.ingest_refusal as r (provider_id, at_minute, reason, status, count, last_at, last_client, detail)
    -- One command cannot write a row twice: what falls into the same minute is added up first.
    select g.provider, date_trunc('minute', g.at), g.reason, max(g.status), sum(g.count), max(g.at),
           (array_agg(g.client order by g.at desc) filter (where g.client is not null))[1],
           (array_agg(g.detail order by g.at desc) filter (where g.detail is not null))[1]
    from (
        select f.provider, coalesce(f.at, v_now) as at, f.reason, f.status, coalesce(f.count, 1) as count, f.client, left(f.detail, 500) as detail
        from jsonb_to_recordset(p_refusals)
            as f (provider uuid, reason text, status integer, count bigint, at timestamptz, client inet, detail text)
    ) as g
    group by g.provider, date_trunc('minute', g.at), g.reason
    order by g.provider, date_trunc('minute', g.at), g.reason
    on conflict on constraint ingest_refusal_key do update set
        count       = r.count + excluded.count,
        status      = excluded.status,
        last_at     = greatest(r.last_at, excluded.last_at),
        last_client = coalesce(excluded.last_client, r.last_client),
        detail      = coalesce(excluded.detail, r.detail);
end
$$;
comment on function gleaner.record_refusals(jsonb) is 'Adds to the count of rejected requests, per channel, minute and reason.';
revoke all on function gleaner.record_refusals(jsonb) from public, anon, authenticated, service_role;
