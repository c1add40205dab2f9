/*
 * The one statement of a group commit: what many requests brought, stored together. Requests and events count from 1.
 *
 * Takes    how long it may wait for a lock, and one array per column, because unpacking JSON costs more than storing it. Per request its channel and, where it is
 *          kept, the request itself (p_raw_ids null: not kept). Per event the number of its request, and its row. Seldom:
 *          p_once [{request, token, said, seconds}], p_remember [{request, key, value, seconds}]. A remembered value may have
 *          from, to, direction, sender and sender_name: an event that recalls its key gets what it lacks of them, and the
 *          direction. p_media [{event, media}]: the files of an event, to be fetched with the channel's credentials.
 * Returns  what is not as one would expect: per event that was there before `repeated` and the id of the first; per request,
 *          with no event, `replayed` (a one-time token was used before: nothing of it is stored) or `closed` (the channel is
 *          gone or paused). Every event that is not named is stored under the id it was given.
 * Changes  activities, media_reference, ingest_memory, and raw_request unless all a request brought was there already.
 * Races    the same event, or token, at the same moment in another transaction: waits for that one, then repeats or
 *          is replayed. Everything is written in the order of its keys, so that two groups never wait for each other.
 * Raises   when a row cannot be stored, and nothing of the group is: the caller then tries one request at a time.
 */
drop function if exists gleaner.ingest_activities(jsonb, bytea[]);
-- Calls without the last parameter find the function below.
drop function if exists gleaner.ingest_activities(
    text, uuid[], uuid[], text[], text[], jsonb[], bytea[], text[],
    integer[], uuid[], text[], text[], jsonb[], jsonb[], text[], text[], text[], text[], jsonb, jsonb);
create or replace function gleaner.ingest_activities(
    p_patience         text,
    p_channels         uuid[],
    p_raw_ids          uuid[],
    p_methods          text[],
    p_targets          text[],
    p_headers          jsonb[],
    p_bodies           bytea[],
    p_body_files       text[],
    p_requests         integer[],
    p_ids              uuid[],
    p_types            text[],
    p_directions       text[],
    p_raw_data         jsonb[],
    p_metadata         jsonb[],
    p_external_ids     text[],
    p_sender_kinds     text[],
    p_sender_addresses text[],
    p_recalls          text[],
    p_once             jsonb default null,
    p_remember         jsonb default null,
    p_media            jsonb default null)
returns table (request integer, event integer, outcome text, id uuid)
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    v_now      timestamptz := clock_timestamp();
    v_closed   integer[];
    v_replayed integer[] := '{}';
    v_shut     integer[];
    v_external text[] := p_external_ids;
    v_stored   uuid[];
    v_first    uuid[] := p_ids;
    v_repeated integer[] := '{}';
    v_event    record;
    v_id       uuid;
begin
    -- A server that gave up must not leave a waiting session behind: it ends by itself when its waiters are gone.
    perform set_config('lock_timeout', p_patience, true);
    if cardinality(p_ids) <> cardinality(p_external_ids) or array_position(p_external_ids, null) is not null then
        raise exception 'event % has no external_id', array_position(p_external_ids, null)
            using errcode = 'GL002', hint = 'Without it a redelivery could not be distinguished from a new event.';
    end if;

    v_closed := array(
        select r.n::integer
        from unnest(p_channels) with ordinality as r (channel, n)
        left join public.ingestion_providers as p on p.id = r.channel and p.is_active
        where p.id is null);

    if p_once is not null then
        with wanted as (
            select (t.item ->> 'request')::integer as request, p_channels[(t.item ->> 'request')::integer] as channel,
                   gleaner.short_key(t.item ->> 'token') as token, (t.item ->> 'seconds')::double precision as seconds,
                   -- Who says what was said with the token before repeats it; otherwise only the very request may be tried again.
                   case when t.item ->> 'said' is not null then jsonb_build_object('said', t.item ->> 'said')
                        else jsonb_strip_nulls(jsonb_build_object('by', coalesce(
                            p_ids[array_position(p_requests, (t.item ->> 'request')::integer)],
                            p_raw_ids[(t.item ->> 'request')::integer]))) end as mark
            from jsonb_array_elements(p_once) as t (item)
            where (t.item ->> 'request')::integer <> all (v_closed)
        ),
        -- Of two requests in one group that carry the same token, the first wins, and those with the same content.
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
            where f.channel = w.channel and f.token = w.token and (f.request = w.request or f.mark = w.mark and f.mark ? 'said'));
    end if;
    v_shut := v_closed || v_replayed;

    -- Before the events, which may recall what their own request says.
    if p_remember is not null then
        insert into gleaner.ingest_memory as m (provider_id, key, value, expires_at)
        select said.channel, said.key, said.value, v_now + said.seconds * interval '1 second'
        from (
            select distinct on (p_channels[(t.item ->> 'request')::integer], gleaner.short_key(t.item ->> 'key'))
                   p_channels[(t.item ->> 'request')::integer], gleaner.short_key(t.item ->> 'key'), coalesce(t.item -> 'value', '{}'),
                   (t.item ->> 'seconds')::double precision
            from jsonb_array_elements(p_remember) with ordinality as t (item, n)
            where (t.item ->> 'request')::integer <> all (v_shut)
            -- The latest word on a key counts; one command cannot write a row twice.
            order by p_channels[(t.item ->> 'request')::integer], gleaner.short_key(t.item ->> 'key'),
                     (t.item ->> 'request')::integer desc, t.n desc
        ) as said (channel, key, value, seconds)
        order by said.channel, said.key
        on conflict (provider_id, key) do update set
            -- What an earlier request knew and this one does not say stays known.
            value = case when jsonb_typeof(m.value) = 'object' and jsonb_typeof(excluded.value) = 'object'
                         then m.value || jsonb_strip_nulls(excluded.value) else excluded.value end,
            expires_at = greatest(m.expires_at, excluded.expires_at);
    end if;

    -- Nearly always short; asked of all at once, because each call costs more than the look.
    if (select max(octet_length(x.key)) > 512 from unnest(p_external_ids) as x (key)) then
        v_external := array(select gleaner.short_key(x.key) from unnest(p_external_ids) with ordinality as x (key, n) order by x.n);
    end if;

    with stored as (
        insert into public.activities as a
            (id, type, direction, sales_id, raw_data, metadata, provider_id, external_id, sender_kind, sender_address)
        select e.id, e.type, coalesce(m.value ->> 'direction', e.direction, 'inbound'), p.sales_id, e.raw_data,
               case when m.value is null then coalesce(e.metadata, '{}')
                    else jsonb_strip_nulls(jsonb_build_object(
                             'from', m.value -> 'from', 'to', m.value -> 'to', 'sender_name', m.value -> 'sender_name'))
                         || coalesce(e.metadata, '{}') end
               || jsonb_build_object('external_id', e.external_id),
               p.id, e.external_id,
               case when e.sender_address is null then m.value #>> '{sender,kind}' else e.sender_kind end,
               case when e.sender_address is null then m.value #>> '{sender,address}' else e.sender_address end
        from unnest(p_requests, p_ids, p_types, p_directions, p_raw_data, p_metadata, v_external, p_sender_kinds, p_sender_addresses, p_recalls)
            with ordinality as e (request, id, type, direction, raw_data, metadata, external_id, sender_kind, sender_address, recall, n)
        join public.ingestion_providers as p on p.id = p_channels[e.request]
        left join gleaner.ingest_memory as m
            on e.recall is not null and m.provider_id = p.id and m.key = gleaner.short_key(e.recall) and m.expires_at > v_now
        where e.request <> all (v_shut)
        order by p.id, e.external_id, e.n
        on conflict (provider_id, external_id) where provider_id is not null do nothing
        returning a.id
    )
    select coalesce(array_agg(s.id), '{}') into v_stored from stored as s;

    if p_media is not null then
        insert into gleaner.media_reference (activity_id, provider_id, media)
        select p_ids[e.n], p_channels[p_requests[e.n]], t.item -> 'media'
        from jsonb_array_elements(p_media) as t (item)
        cross join lateral (select (t.item ->> 'event')::integer) as e (n)
        where p_ids[e.n] = any (v_stored);
    end if;

    if cardinality(v_stored) < cardinality(p_ids) then
        for v_event in
            select e.n::integer as n, e.id, e.request, p_channels[e.request] as channel, v_external[e.n] as external_id
            from unnest(p_ids, p_requests) with ordinality as e (id, request, n)
            where e.request <> all (v_shut) and e.id <> all (v_stored)
            order by e.n
        loop
            -- A statement of its own sees what another transaction committed while the insert waited for it.
            select a.id into v_id
            from public.activities as a
            where a.provider_id = v_event.channel and a.external_id = v_event.external_id;
            if not found then
                raise exception 'the first delivery of % was deleted at this moment', v_event.external_id using errcode = '40001';
            end if;
            v_first[v_event.n] := v_id;
            -- Our own, when the answer to an earlier try was lost: its files and its request belong to it.
            if v_id <> v_event.id then
                v_repeated := v_repeated || v_event.n;
            end if;
        end loop;
    end if;

    insert into gleaner.raw_request (id, provider_id, received_at, method, target, headers, body, body_file, outcome, activity_ids)
    select r.id, p_channels[r.n], v_now, r.method, r.target, coalesce(r.headers, '{}'), r.body, r.body_file,
           case when brought.ids is null then 'nothing' else 'stored' end, coalesce(brought.ids, '{}')
    from unnest(p_raw_ids, p_methods, p_targets, p_headers, p_bodies, p_body_files)
        with ordinality as r (id, method, target, headers, body, body_file, n)
    left join (
        select e.request, array_agg(e.id order by e.n) as ids, bool_or(e.n <> all (v_repeated)) as fresh
        from unnest(p_requests, v_first) with ordinality as e (request, id, n)
        group by e.request
    ) as brought on brought.request = r.n
    where r.id is not null
      and brought.fresh is not false
      and r.n <> all (v_shut)
    on conflict (id) do nothing;

    return query
    select p_requests[e.n], e.n, 'repeated', v_first[e.n] from unnest(v_repeated) as e (n)
    union all
    select r.n, null, 'closed', null from unnest(v_closed) as r (n)
    union all
    select r.n, null, 'replayed', null from unnest(v_replayed) as r (n);
end
$$;
comment on function gleaner.ingest_activities(
    text, uuid[], uuid[], text[], text[], jsonb[], bytea[], text[],
    integer[], uuid[], text[], text[], jsonb[], jsonb[], text[], text[], text[], text[], jsonb, jsonb, jsonb)
    is 'Stores what many requests brought, together, each event once.';
-- The server connects as the owner of this schema; no other role may store events of a provider.
revoke all on function gleaner.ingest_activities(
    text, uuid[], uuid[], text[], text[], jsonb[], bytea[], text[],
    integer[], uuid[], text[], text[], jsonb[], jsonb[], text[], text[], text[], text[], jsonb, jsonb, jsonb)
    from public, anon, authenticated, service_role;
