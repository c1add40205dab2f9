/*
 * The one statement of a group commit: what many requests brought, stored together. Requests and events count from 1.
 *
 * Takes    p_requests[i] = {channel, raw: {id, method, target, headers, body_file} | null, once: [{token, seconds}],
 *          remember: [{key, value, seconds}], events: [{id?, type, direction, raw_data, metadata, external_id,
 *          sender: {kind, address} | null, sender_name, recall}]}, and p_bodies[i], the bytes of its body or null.
 *          A remembered value may have from, to, direction, sender and sender_name: an event that recalls its key gets
 *          what it lacks of them, and the direction.
 * Returns  per event `stored`, or `repeated` with the id of the first; per request, at position 0, `replayed` (a one-time
 *          token was used before: nothing of it is stored), `closed` (the channel is gone or paused) or `nothing`.
 * Changes  activities, ingest_memory, and raw_request unless all a request brought was there already.
 * Races    the same event, or token, at the same moment in another transaction: waits for that one, then repeats or
 *          is replayed. Everything is written in the order of its keys, so that two groups never wait for each other.
 * Raises   when a row cannot be stored, and nothing of the group is: the caller then tries one request at a time.
 */
create or replace function gleaner.ingest_activities(p_requests jsonb, p_bodies bytea[] default null)
returns table (request integer, "position" integer, outcome text, id uuid)
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    v_now       timestamptz := clock_timestamp();
    v_closed    integer[];
    v_replayed  integer[] := '{}';
    v_shut      integer[];
    v_event     record;
    v_requests  integer[] := '{}';
    v_positions integer[] := '{}';
    v_outcomes  text[] := '{}';
    v_ids       uuid[] := '{}';
begin
    v_closed := array(
        select r.n::integer
        from jsonb_array_elements(p_requests) with ordinality as r (item, n)
        left join public.ingestion_providers as p on p.id = (r.item ->> 'channel')::uuid and p.is_active
        where p.id is null);

    if p_requests @? '$[*].once[*]' then
        with wanted as (
            select r.n::integer as request, (r.item ->> 'channel')::uuid as channel, gleaner.short_key(t.item ->> 'token') as token,
                   (t.item ->> 'seconds')::double precision as seconds,
                   jsonb_strip_nulls(jsonb_build_object('by', coalesce(r.item #>> '{events,0,id}', r.item #>> '{raw,id}'))) as mark
            from jsonb_array_elements(p_requests) with ordinality as r (item, n)
            cross join lateral jsonb_array_elements(case jsonb_typeof(r.item -> 'once') when 'array' then r.item -> 'once' end) as t (item)
            where r.n <> all (v_closed)
        ),
        -- Of two requests in one group that carry the same token, the first is the one.
        first as (
            select distinct on (w.channel, w.token) w.request, w.channel, w.token, w.seconds, w.mark
            from wanted as w
            order by w.channel, w.token, w.request
        ),
        taken as (
            insert into gleaner.ingest_memory as m (provider_id, key, value, expires_at)
            select f.channel, 'once:' || f.token, f.mark, v_now + f.seconds * interval '1 second'
            from first as f
            order by f.channel, f.token
            -- The very request that used it may be tried again: it was committed, and the answer lost on its way to us.
            on conflict (provider_id, key) do update set value = excluded.value, expires_at = excluded.expires_at
            where m.expires_at <= v_now or (m.value = excluded.value and m.value <> '{}')
            returning m.provider_id, m.key
        )
        select coalesce(array_agg(distinct w.request), '{}') into v_replayed
        from wanted as w
        where not exists (
            select
            from first as f
            join taken as t on t.provider_id = f.channel and t.key = 'once:' || f.token
            where f.request = w.request and f.channel = w.channel and f.token = w.token);
    end if;
    v_shut := v_closed || v_replayed;

    -- Before the events, which may recall what their own request says.
    if p_requests @? '$[*].remember[*]' then
        insert into gleaner.ingest_memory as m (provider_id, key, value, expires_at)
        select said.channel, said.key, said.value, v_now + said.seconds * interval '1 second'
        from (
            select distinct on ((r.item ->> 'channel')::uuid, gleaner.short_key(t.item ->> 'key'))
                   (r.item ->> 'channel')::uuid, gleaner.short_key(t.item ->> 'key'), coalesce(t.item -> 'value', '{}'),
                   (t.item ->> 'seconds')::double precision
            from jsonb_array_elements(p_requests) with ordinality as r (item, n)
            cross join lateral jsonb_array_elements(case jsonb_typeof(r.item -> 'remember') when 'array' then r.item -> 'remember' end)
                with ordinality as t (item, n)
            where r.n <> all (v_shut)
            -- The latest word on a key counts; one command cannot write a row twice.
            order by (r.item ->> 'channel')::uuid, gleaner.short_key(t.item ->> 'key'), r.n desc, t.n desc
        ) as said (channel, key, value, seconds)
        order by said.channel, said.key
        on conflict (provider_id, key) do update set
            -- What an earlier request knew and this one does not say stays known.
            value = case when jsonb_typeof(m.value) = 'object' and jsonb_typeof(excluded.value) = 'object'
                         then m.value || jsonb_strip_nulls(excluded.value) else excluded.value end,
            expires_at = greatest(m.expires_at, excluded.expires_at);
    end if;

    for v_event in
        with event as materialized (
            select r.n::integer as request, e.n::integer as "position", p.id as provider_id, p.sales_id,
                   e.item, coalesce(m.value, '{}') as memory,
                   -- Nearly always short; the call alone costs more than the look.
                   case when octet_length(e.item ->> 'external_id') <= 512 then e.item ->> 'external_id'
                        else gleaner.short_key(e.item ->> 'external_id') end as external_id
            from jsonb_array_elements(p_requests) with ordinality as r (item, n)
            join public.ingestion_providers as p on p.id = (r.item ->> 'channel')::uuid
            cross join lateral jsonb_array_elements(case jsonb_typeof(r.item -> 'events') when 'array' then r.item -> 'events' end)
                with ordinality as e (item, n)
            left join gleaner.ingest_memory as m
                on m.provider_id = p.id and m.key = gleaner.short_key(e.item ->> 'recall') and m.expires_at > v_now
            where r.n <> all (v_shut)
        ),
        inserted as (
            insert into public.activities as a
                (id, type, direction, sales_id, raw_data, metadata, provider_id, external_id, sender_kind, sender_address)
            select coalesce((e.item ->> 'id')::uuid, gen_random_uuid()), e.item ->> 'type',
                   coalesce(e.memory ->> 'direction', e.item ->> 'direction', 'inbound'), e.sales_id, e.item -> 'raw_data',
                   jsonb_strip_nulls(jsonb_build_object(
                       'from', e.memory -> 'from', 'to', e.memory -> 'to',
                       'sender_name', coalesce(nullif(e.item -> 'sender_name', 'null'), e.memory -> 'sender_name')))
                   || coalesce(nullif(e.item -> 'metadata', 'null'), '{}')
                   || jsonb_build_object('external_id', e.external_id),
                   e.provider_id, e.external_id, sender.value ->> 'kind', sender.value ->> 'address'
            from event as e
            cross join lateral (select coalesce(nullif(e.item -> 'sender', 'null'), e.memory -> 'sender')) as sender (value)
            order by e.provider_id, e.external_id, e.request, e."position"
            on conflict (provider_id, external_id) where provider_id is not null do nothing
            returning a.id, a.provider_id, a.external_id
        )
        select e.request, e."position", e.provider_id, e.external_id, i.id, (e.item ->> 'id')::uuid as own_id,
               row_number() over (partition by e.provider_id, e.external_id order by e.request, e."position") as turn
        from event as e
        left join inserted as i on i.provider_id = e.provider_id and i.external_id = e.external_id
        order by e.request, e."position"
    loop
        if v_event.external_id is null then
            raise exception 'event % of request % has no external_id', v_event."position", v_event.request
                using errcode = 'GL002', hint = 'Without it a redelivery could not be told from a new event.';
        end if;
        if v_event.id is null then
            -- A statement of its own sees what another transaction committed while the insert waited for it.
            select a.id into v_event.id
            from public.activities as a
            where a.provider_id = v_event.provider_id and a.external_id = v_event.external_id;
            if not found then
                raise exception 'the first delivery of % was deleted at this moment', v_event.external_id using errcode = '40001';
            end if;
            -- Our own, when the answer to an earlier try was lost: its files and its request belong to it.
            v_event.turn := case when v_event.id = v_event.own_id then 1 else 2 end;
        end if;
        v_requests := v_requests || v_event.request;
        v_positions := v_positions || v_event."position";
        v_outcomes := v_outcomes || case v_event.turn when 1 then 'stored' else 'repeated' end;
        v_ids := v_ids || v_event.id;
    end loop;

    insert into gleaner.raw_request (id, provider_id, received_at, method, target, headers, body, body_file, outcome, activity_ids)
    select (r.item #>> '{raw,id}')::uuid, (r.item ->> 'channel')::uuid, v_now, r.item #>> '{raw,method}', r.item #>> '{raw,target}',
           coalesce(nullif(r.item #> '{raw,headers}', 'null'), '{}'), p_bodies[r.n], r.item #>> '{raw,body_file}',
           case when brought.ids is null then 'nothing' else 'stored' end, coalesce(brought.ids, '{}')
    from jsonb_array_elements(p_requests) with ordinality as r (item, n)
    cross join lateral (
        select array_agg(o.id order by o."position"), coalesce(bool_or(o.outcome = 'stored'), true)
        from unnest(v_requests, v_positions, v_outcomes, v_ids) as o (request, "position", outcome, id)
        where o.request = r.n
    ) as brought (ids, fresh)
    where jsonb_typeof(r.item -> 'raw') = 'object'
      and brought.fresh
      and r.n <> all (v_shut)
    on conflict (id) do nothing;

    return query
    select answer.request, answer."position", answer.outcome, answer.id
    from (
        select o.request, o."position", o.outcome, o.id
        from unnest(v_requests, v_positions, v_outcomes, v_ids) as o (request, "position", outcome, id)
        union all
        select r.n::integer, 0,
               case when r.n = any (v_closed) then 'closed' when r.n = any (v_replayed) then 'replayed' else 'nothing' end, null
        from jsonb_array_elements(p_requests) with ordinality as r (item, n)
        where r.n = any (v_shut) or r.n <> all (v_requests)
    ) as answer (request, "position", outcome, id)
    order by answer.request, answer."position";
end
$$;
comment on function gleaner.ingest_activities(jsonb, bytea[]) is 'Stores what many requests brought, together, each event once.';
-- The server that keeps the door signs in as the owner of this schema; nobody else may speak for a provider.
revoke all on function gleaner.ingest_activities(jsonb, bytea[]) from public, anon, authenticated, service_role;
