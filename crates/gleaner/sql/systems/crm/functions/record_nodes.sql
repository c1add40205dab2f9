/*
 * Writes down which devices work, for people to see; nothing is decided by it.
 * Takes    [{user | sales, app, device, ago, done, busy, activities}], one for each device a server has heard from since it
 *          last report: whose it is (a signed-in user, or a salesperson), how many seconds ago it was heard, what it has
 *          completed since, whether it holds rows of other queues, and the activities it was given, the newest first.
 * Changes  those devices' rows; and status to 'offline' of every row that has been silent for two minutes.
 * Returns  in how many seconds another row may have been silent that long; null when all are offline.
 * Races    several servers tell of the same device: the later word holds, and counts are added up. Rows are written in the
 *          order of their key, and silent ones that another server writes are left to it, so that there is no deadlock.
 */
create or replace function gleaner.record_nodes(p_nodes jsonb) returns double precision
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now    timestamptz := clock_timestamp();
    v_silent interval    := interval '2 minutes';
    v_next   timestamptz;
begin
    with heard as (
        -- A person may be known to the server by two names; one command cannot write a row twice.
        select s.id as sales_id, f.app, f.device,
               v_now - make_interval(secs => min(f.ago)) as at,
               sum(f.done)::integer as done,
               bool_or(f.busy) as busy,
               -- A row that ended by a plain update, or by way of another server, is not being worked on any more.
               (array_agg(r.id order by r.n) filter (where r.id is not null))[1] as activity
        from jsonb_to_recordset(p_nodes)
            as f ("user" uuid, sales bigint, app text, device text, ago double precision, done integer, busy boolean, activities uuid[])
        join public.sales as s on s.id = f.sales or s.user_id = f."user"
        left join lateral (
            select a.id, g.n
            from unnest(f.activities) with ordinality as g (id, n)
            join public.activities as a on a.id = g.id
            where a.processing_status = 'processing'
            order by g.n
            limit 1
        ) as r on true
        group by s.id, f.app, f.device
    ),
    written as (
        insert into public.crm_processing_nodes as n
            (sales_id, app_name, device_name, status, current_activity_id, processed_count, last_heartbeat)
        select h.sales_id, h.app, h.device,
               case when h.at < v_now - v_silent then 'offline' when h.busy or h.activity is not null then 'processing' else 'ready' end,
               h.activity, h.done, h.at
        from heard as h
        order by h.sales_id, h.app, h.device
        on conflict on constraint crm_processing_nodes_sales_id_app_name_device_name_key do update set
            status              = case when excluded.last_heartbeat >= n.last_heartbeat then excluded.status else n.status end,
            current_activity_id = case when excluded.last_heartbeat >= n.last_heartbeat then excluded.current_activity_id else n.current_activity_id end,
            processed_count     = n.processed_count + excluded.processed_count,
            last_heartbeat      = greatest(n.last_heartbeat, excluded.last_heartbeat)
        returning n.id, n.status, n.last_heartbeat
    ),
    silent as (
        select n.id
        from public.crm_processing_nodes as n
        where n.status <> 'offline'
          and n.last_heartbeat < v_now - v_silent
          and not exists (
              select from heard as h where h.sales_id = n.sales_id and h.app = n.app_name and h.device = n.device_name)
        for update skip locked
    ),
    gone as (
        update public.crm_processing_nodes as n
        set status = 'offline', current_activity_id = null
        from silent
        where n.id = silent.id
        returning n.id
    )
    select min(o.last_heartbeat) + v_silent into v_next
    from (
        select w.last_heartbeat from written as w where w.status <> 'offline'
        union all
        select n.last_heartbeat
        from public.crm_processing_nodes as n
        where n.status <> 'offline'
          and not exists (select from written as w where w.id = n.id)
          and not exists (select from gone as g where g.id = n.id)
    ) as o;
    return case when v_next is not null then greatest(extract(epoch from v_next - v_now), 0) end;
end
$$;
comment on function gleaner.record_nodes(jsonb) is 'Writes down which devices work, and which have been silent for two minutes.';
revoke all on function gleaner.record_nodes(jsonb) from public, anon, authenticated, service_role;
