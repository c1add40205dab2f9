-- The schema after every migration, as pg_dump prints it: to be read, never applied. Written by `make schema`; a test fails
-- when it differs from what the migrations make. Qualifiers inside views are left out, as PostgreSQL versions differ in them.

CREATE SCHEMA auth;

CREATE SCHEMA gleaner;

CREATE SCHEMA public;

ALTER SCHEMA public OWNER TO pg_database_owner;

COMMENT ON SCHEMA public IS 'standard public schema';

CREATE TYPE public.processing_state AS ENUM (
    'pending',
    'claimed',
    'processing',
    'completed',
    'failed',
    'cancelled'
);

CREATE FUNCTION auth.jwt() RETURNS jsonb
    LANGUAGE sql STABLE
    AS $$ select nullif(current_setting('request.jwt.claims', true), '')::jsonb $$;

COMMENT ON FUNCTION auth.jwt() IS 'Claims of the caller''s token; null without one.';

CREATE FUNCTION auth.role() RETURNS text
    LANGUAGE sql STABLE
    AS $$ select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role' $$;

COMMENT ON FUNCTION auth.role() IS 'The role named in the caller''s token.';

CREATE FUNCTION auth.uid() RETURNS uuid
    LANGUAGE sql STABLE
    AS $$ select (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid $$;

COMMENT ON FUNCTION auth.uid() IS 'The signed-in user; null for project keys and direct logins.';

CREATE FUNCTION gleaner.adapt_activities() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now      timestamptz := clock_timestamp();
    v_attempts integer := old.attempts + 1;
    -- The holder is known by its sign-in. Without a token only roles can be distinguished, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session  text := gleaner.caller_session();
    v_mine     boolean := coalesce(old.session = v_session and (gleaner.caller_uid() is not null or old.agent is null), false);
begin
    if tg_nargs > 0 then
        return case when v_mine or old.session is null or new.processed_data is not distinct from old.processed_data then new end;
    end if;
    if tg_op = 'INSERT' then
        select 0, 0, 0, null, null, null into new.lease, new.lost, new.started, new.deadline_at, new.agent, new.session;
        new.attempts := 0;
        new.processing_status := coalesce(new.processing_status, 'raw');
        if new.processing_status = 'raw' then
            -- A due time in the future is an appointment; otherwise the row has waited since it was created.
            new.due_at := case when new.due_at > v_now then new.due_at else least(coalesce(new.created_at, v_now), v_now) end;
        elsif new.processing_status in ('processing') then
            -- Inserted as already being worked on: the inserter holds it.
            new.lease := (extract(epoch from v_now) * 1000000)::bigint;
            -- Taken when the row says so: one inserted with an old lock has lost its holder already.
            v_now := least(coalesce(new.locked_at, v_now), v_now);
            select v_now + interval '5 minutes', v_now + (case new.type when 'call' then interval '2 hours' else interval '30 minutes' end), 1, gleaner.caller_session()
            into new.due_at, new.deadline_at, new.started, new.session;
        else
            -- Written as finished, or as failed by one who knows better: history, not work.
            new.due_at := null;
        end if;
        if new.due_at is not null then
            new.open_at := case when new.sales_id is null then new.due_at
                else gleaner.open_activities(new.sales_id, coalesce(new.created_at, case when new.processing_status in ('processing') then v_now else new.due_at end), new.due_at) end;
        end if;
        return new;
    end if;
    -- Out of reach, always.
    select old.lease, old.due_at, old.lost, old.started, old.deadline_at, old.agent, old.session, old.attempts, old.open_at
    into new.lease, new.due_at, new.lost, new.started, new.deadline_at, new.agent, new.session, new.attempts, new.open_at;
    if new.processing_status is distinct from old.processing_status or new.sales_id is distinct from old.sales_id then
        perform pg_notify('gleaner', 'activities');
    end if;
    if new.processing_status is distinct from old.processing_status and (
        -- Completed by one who does not hold it; failed or put back so, before the lease has run out, and not by an operator.
        old.processing_status in ('processing') and (new.processing_status in ('processing')) is not true and not v_mine and new.processing_status is distinct from 'cancelled'
            and (new.processing_status = 'completed' or old.due_at > v_now and not (gleaner.is_trusted() and new.processing_status = 'raw'))
        -- A late end: the one who held it last comes back to a row that waits for the next agent, or was called off.
        or old.processing_status in ('raw', 'failed', 'cancelled') and v_mine and new.processing_status in ('completed', 'failed')
        -- What is finished is not given up by one who no longer holds it. Nor is it, or what is dead, claimable: it is put back first.
        or old.processing_status in ('completed', 'cancelled') and new.processing_status = 'failed' or (old.processing_status in ('completed', 'cancelled') or (old.processing_status = 'failed' and old.due_at is null)) and new.processing_status in ('processing')
        or new.processing_status in ('processing') and (old.processing_status in ('processing')) is not true and old.sales_id is not null and not gleaner.is_trusted() and old.sales_id is distinct from gleaner.own_activities(null)
            and (gleaner.open_activities(old.sales_id, old.created_at, old.due_at) <= v_now) is not true
    ) then
        return null;
    end if;
    if old.processing_status in ('processing') and new.processing_status in ('processing') and not v_mine then
        -- Another than the holder edits the row: what belongs to the work stays as the holder left it.
        select old.processed_data, old.progress, old.locked_by, old.locked_at, old.processing_status into new.processed_data, new.progress, new.locked_by, new.locked_at, new.processing_status;
    elsif old.processing_status in ('processing') and new.processing_status in ('processing') then
        -- A sign of life: a holder that writes results, progress or its lock keeps the row, up to the deadline.
        if (new.processed_data is distinct from old.processed_data or new.progress is distinct from old.progress or new.locked_at is distinct from old.locked_at) and old.due_at - v_now < (interval '5 minutes') / 2 then
            new.due_at := greatest(old.due_at, least(v_now + interval '5 minutes', old.deadline_at));
        end if;
    elsif new.processing_status in ('processing') then
        -- A plain claim.
        select greatest(old.lease + 1, (extract(epoch from v_now) * 1000000)::bigint), v_now + interval '5 minutes', v_now + (case new.type when 'call' then interval '2 hours' else interval '30 minutes' end), 1, null, v_session
        into new.lease, new.due_at, new.deadline_at, new.started, new.agent, new.session;
    elsif new.processing_status is distinct from old.processing_status then
        if new.processing_status = 'raw' then
            -- A requeue, or the holder's release.
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := v_now;
            select case when old.processing_status in ('processing') and v_mine then old.attempts else 0 end, case when old.processing_status in ('processing') and v_mine then old.lost else 0 end
            into new.attempts, new.lost;
        elsif new.processing_status = 'failed' then
            -- Counts an attempt and backs off; in the end the row is dead.
            select v_attempts, old.lease + 1, case when (v_attempts < 3 and coalesce(old.created_at, v_now) + interval '24 hours' > v_now) then v_now + gleaner.backoff(interval '30 seconds', interval '1 hour', v_attempts, old.id::text) end
            into new.attempts, new.lease, new.due_at;
            -- An account of an earlier try is not the writer's of this one.
            if new.metadata #> '{error}' is null or new.metadata #> '{error}' = old.metadata #> '{error}' then
                new.metadata := jsonb_set(coalesce(new.metadata, '{}'), '{error}', jsonb_build_object('timestamp', v_now, 'type', 'Error', 'message', 'marked as failed', 'agent_id', coalesce(old.agent, old.session), 'retry_count', v_attempts));
            end if;
            if new.due_at is null then
                perform gleaner.dead_letter_activities(new, new.metadata #>> ('{error}'::text[] || '{message}'::text[]));
            end if;
        elsif (old.processing_status in ('processing') and new.processing_status = 'completed') is not true then
            -- Finished without a claim: a note, a decision by hand. No late result may reopen it.
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := null;
        end if;
        select null, 0 into new.deadline_at, new.started;
        new.locked_by := null;
        new.locked_at := null;
    end if;
    if new.due_at is not null and (new.sales_id, new.due_at) is distinct from (old.sales_id, old.due_at) then
        new.open_at := case when new.processing_status in ('processing') and new.sales_id is not distinct from old.sales_id then case when old.open_at is null then null else greatest(old.open_at, new.due_at) end
            else case when new.sales_id is null then new.due_at
            else gleaner.open_activities(new.sales_id, coalesce(new.created_at, new.due_at), new.due_at) end end;
    end if;
    return new;
end
$$;

ALTER FUNCTION gleaner.adapt_activities() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.adapt_dumps() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now      timestamptz := clock_timestamp();
    v_attempts integer := old.attempts + 1;
    -- The holder is known by its sign-in. Without a token only roles can be distinguished, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session  text := gleaner.caller_session();
    v_mine     boolean := coalesce(old.session = v_session and (gleaner.caller_uid() is not null or old.agent is null), false);
begin
    if tg_nargs > 0 then
        return case when v_mine or old.session is null or new.result is not distinct from old.result then new end;
    end if;
    if tg_op = 'INSERT' then
        select 0, 0, 0, null, null, null into new.lease, new.lost, new.started, new.deadline_at, new.agent, new.session;
        new.attempts := coalesce(new.attempts, 0);
        new.processing_state := coalesce(new.processing_state, 'pending'::public.processing_state);
        if new.processing_state = 'pending'::public.processing_state then
            -- A due time in the future is an appointment; otherwise the row has waited since it was created.
            new.due_at := case when new.due_at > v_now then new.due_at else least(coalesce(new.created_at, v_now), v_now) end;
        elsif new.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) then
            -- Inserted as already being worked on: the inserter holds it.
            new.lease := (extract(epoch from v_now) * 1000000)::bigint;
            -- Taken when the row says so: one inserted with an old lock has lost its holder already.
            v_now := least(coalesce(new.claimed_at, v_now), v_now);
            select v_now + interval '5 minutes', v_now + interval '30 minutes', 1, gleaner.caller_session()
            into new.due_at, new.deadline_at, new.started, new.session;
        else
            -- Written as finished, or as failed by one who knows better: history, not work.
            new.due_at := null;
        end if;
        return new;
    end if;
    -- Out of reach, always.
    select old.lease, old.due_at, old.lost, old.started, old.deadline_at, old.agent, old.session, old.attempts
    into new.lease, new.due_at, new.lost, new.started, new.deadline_at, new.agent, new.session, new.attempts;
    if new.processing_state is distinct from old.processing_state then
        perform pg_notify('gleaner', 'dumps');
    end if;
    if new.processing_state is distinct from old.processing_state and (
        -- Completed by one who does not hold it; failed or put back so, before the lease has run out, and not by an operator.
        old.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and (new.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state)) is not true and not v_mine and new.processing_state is distinct from 'cancelled'::public.processing_state
            and (new.processing_state = 'completed'::public.processing_state or old.due_at > v_now and not (gleaner.is_trusted() and new.processing_state = 'pending'::public.processing_state))
        -- A late end: the one who held it last comes back to a row that waits for the next agent, or was called off.
        or old.processing_state in ('pending'::public.processing_state, 'failed'::public.processing_state, 'cancelled'::public.processing_state) and v_mine and new.processing_state in ('completed'::public.processing_state, 'failed'::public.processing_state)
        -- What is finished is not given up by one who no longer holds it. Nor is it, or what is dead, claimable: it is put back first.
        or old.processing_state in ('completed'::public.processing_state, 'cancelled'::public.processing_state) and new.processing_state = 'failed'::public.processing_state or (old.processing_state in ('completed'::public.processing_state, 'cancelled'::public.processing_state) or (old.processing_state = 'failed'::public.processing_state and old.due_at is null)) and new.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state)
    ) then
        return null;
    end if;
    if old.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and new.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and not v_mine then
        -- Another than the holder edits the row: what belongs to the work stays as the holder left it.
        select old.result, old.progress, old.error_message, old.claimed_by, old.claimed_at, old.processing_state into new.result, new.progress, new.error_message, new.claimed_by, new.claimed_at, new.processing_state;
    elsif old.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and new.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) then
        if new.processing_state = 'processing'::public.processing_state then
            new.started := greatest(old.started, 1);
        end if;
        -- A sign of life: a holder that writes results, progress or its lock keeps the row, up to the deadline.
        if (new.result is distinct from old.result or new.progress is distinct from old.progress or new.claimed_at is distinct from old.claimed_at or new.processing_state is distinct from old.processing_state) and old.due_at - v_now < (interval '5 minutes') / 2 then
            new.due_at := greatest(old.due_at, least(v_now + interval '5 minutes', old.deadline_at));
        end if;
    elsif new.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) then
        -- A plain claim.
        select greatest(old.lease + 1, (extract(epoch from v_now) * 1000000)::bigint), v_now + interval '5 minutes', v_now + interval '30 minutes', 1, null, v_session
        into new.lease, new.due_at, new.deadline_at, new.started, new.agent, new.session;
    elsif new.processing_state is distinct from old.processing_state then
        if new.processing_state = 'pending'::public.processing_state then
            -- A requeue, or the holder's release.
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := v_now;
            select case when old.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and v_mine then old.attempts else 0 end, case when old.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and v_mine then old.lost else 0 end
            into new.attempts, new.lost;
        elsif new.processing_state = 'failed'::public.processing_state then
            -- Counts an attempt and backs off; in the end the row is dead.
            select v_attempts, old.lease + 1, case when (v_attempts < 3) then v_now + gleaner.backoff(interval '30 seconds', interval '10 minutes', v_attempts, old.id::text) end
            into new.attempts, new.lease, new.due_at;
            -- The same words may well be meant again.
            if new.error_message is null then
                new.error_message := 'marked as failed';
            end if;
        elsif (old.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and new.processing_state = 'completed'::public.processing_state) is not true then
            -- Finished without a claim: a note, a decision by hand. No late result may reopen it.
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := null;
        end if;
        select null, 0 into new.deadline_at, new.started;
        new.completed_at := case when new.processing_state = 'pending'::public.processing_state then null when (new.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and new.due_at is not null) then new.completed_at
            else coalesce(nullif(new.completed_at, old.completed_at), v_now) end;
    end if;
    return new;
end
$$;

ALTER FUNCTION gleaner.adapt_dumps() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.adapt_followups() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now      timestamptz := clock_timestamp();
    v_attempts integer := old.attempts + 1;
    -- The holder is known by its sign-in. Without a token only roles can be distinguished, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session  text := gleaner.caller_session();
    v_mine     boolean := coalesce(old.session = v_session and (gleaner.caller_uid() is not null or old.agent is null), false);
begin
    if tg_nargs > 0 then
        return case when v_mine or old.session is null or new.result is not distinct from old.result then new end;
    end if;
    if tg_op = 'INSERT' then
        select 0, 0, 0, null, null, null into new.lease, new.lost, new.started, new.deadline_at, new.agent, new.session;
        new.attempts := 0;
        new.status := coalesce(new.status, 'pending');
        if new.status = 'pending' then
            new.due_at := coalesce(new.scheduled_for, v_now);
        elsif new.status in ('processing') then
            -- Inserted as already being worked on: the inserter holds it.
            new.lease := (extract(epoch from v_now) * 1000000)::bigint;
            -- Taken when the row says so: one inserted with an old lock has lost its holder already.
            v_now := least(coalesce(new.started_processing_at, v_now), v_now);
            select v_now + interval '5 minutes', v_now + interval '15 minutes', 1, gleaner.caller_session()
            into new.due_at, new.deadline_at, new.started, new.session;
        else
            -- Written as finished, or as failed by one who knows better: history, not work.
            new.due_at := null;
        end if;
        return new;
    end if;
    -- Out of reach, always.
    select old.lease, old.due_at, old.lost, old.started, old.deadline_at, old.agent, old.session, old.attempts
    into new.lease, new.due_at, new.lost, new.started, new.deadline_at, new.agent, new.session, new.attempts;
    if new.status is distinct from old.status or new.scheduled_for is distinct from old.scheduled_for then
        perform pg_notify('gleaner', 'followups');
    end if;
    if new.status is distinct from old.status and (
        -- Completed by one who does not hold it; failed or put back so, before the lease has run out, and not by an operator.
        old.status in ('processing') and (new.status in ('processing')) is not true and not v_mine and new.status is distinct from 'cancelled'
            and (new.status = 'executed' or old.due_at > v_now and not (gleaner.is_trusted() and new.status = 'pending'))
        -- A late end: the one who held it last comes back to a row that waits for the next agent, or was called off.
        or old.status in ('pending', 'failed', 'cancelled') and v_mine and new.status in ('executed', 'failed')
        -- What is finished is not given up by one who no longer holds it. Nor is it, or what is dead, claimable: it is put back first.
        or old.status in ('executed', 'cancelled') and new.status = 'failed' or (old.status in ('executed', 'cancelled') or (old.status = 'failed' and old.due_at is null)) and new.status in ('processing')
    ) then
        return null;
    end if;
    if old.status in ('processing') and new.status in ('processing') and not v_mine then
        -- Another than the holder edits the row: what belongs to the work stays as the holder left it.
        select old.result, old.error_message, old.started_processing_at, old.status into new.result, new.error_message, new.started_processing_at, new.status;
    elsif old.status in ('processing') and new.status in ('processing') then
        -- A sign of life: a holder that writes results, progress or its lock keeps the row, up to the deadline.
        if (new.result is distinct from old.result or new.started_processing_at is distinct from old.started_processing_at) and old.due_at - v_now < (interval '5 minutes') / 2 then
            new.due_at := greatest(old.due_at, least(v_now + interval '5 minutes', old.deadline_at));
        end if;
    elsif new.status is not distinct from old.status then
        if new.scheduled_for is distinct from old.scheduled_for and old.due_at is not null and old.status in ('pending', 'failed') then
            new.due_at := coalesce(new.scheduled_for, v_now);
        end if;
    elsif new.status in ('processing') then
        -- A plain claim.
        select greatest(old.lease + 1, (extract(epoch from v_now) * 1000000)::bigint), v_now + interval '5 minutes', v_now + interval '15 minutes', 1, null, v_session
        into new.lease, new.due_at, new.deadline_at, new.started, new.agent, new.session;
    elsif new.status is distinct from old.status then
        if new.status = 'pending' then
            -- A requeue, or the holder's release.
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := v_now;
            select case when old.status in ('processing') and v_mine then old.attempts else 0 end, case when old.status in ('processing') and v_mine then old.lost else 0 end
            into new.attempts, new.lost;
        elsif new.status = 'failed' then
            -- Counts an attempt and backs off; in the end the row is dead.
            select v_attempts, old.lease + 1, case when (v_attempts < 20) then v_now + gleaner.backoff(interval '60 seconds', interval '15 minutes', v_attempts, old.id::text) end
            into new.attempts, new.lease, new.due_at;
            -- The same words may well be meant again.
            if new.error_message is null then
                new.error_message := 'marked as failed';
            end if;
        elsif (old.status in ('processing') and new.status = 'executed') is not true then
            -- Finished without a claim: a note, a decision by hand. No late result may reopen it.
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := null;
        end if;
        select null, 0 into new.deadline_at, new.started;
        new.finished_at := case when new.status = 'pending' then null when (new.status in ('pending', 'processing', 'failed') and new.due_at is not null) then new.finished_at
            else coalesce(nullif(new.finished_at, old.finished_at), v_now) end;
    end if;
    return new;
end
$$;

ALTER FUNCTION gleaner.adapt_followups() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.adapt_polls() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
declare
    v_now      timestamptz := clock_timestamp();
    v_attempts integer := old.attempts + 1;
    -- The holder is known by its sign-in. Without a token only roles can be distinguished, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session  text := gleaner.caller_session();
    v_mine     boolean := coalesce(old.session = v_session and (gleaner.caller_uid() is not null or old.agent is null), false);
begin
    if tg_op = 'INSERT' then
        select 0, 0, 0, null, null, null into new.lease, new.lost, new.started, new.deadline_at, new.agent, new.session;
        new.attempts := 0;
        new.status := coalesce(new.status, 'ready');
        if new.status = 'ready' then
            new.due_at := coalesce(new.wanted_at, v_now);
        elsif new.status in ('running') then
            -- Inserted as already being worked on: the inserter holds it.
            new.lease := (extract(epoch from v_now) * 1000000)::bigint;
            select v_now + interval '2 minutes', v_now + interval '6 hours', 1, gleaner.caller_session()
            into new.due_at, new.deadline_at, new.started, new.session;
        else
            -- Written as finished, or as failed by one who knows better: history, not work.
            new.due_at := null;
        end if;
        return new;
    end if;
    -- Out of reach, always.
    select old.lease, old.due_at, old.lost, old.started, old.deadline_at, old.agent, old.session, old.attempts
    into new.lease, new.due_at, new.lost, new.started, new.deadline_at, new.agent, new.session, new.attempts;
    if new.status is distinct from old.status or new.wanted_at is distinct from old.wanted_at then
        perform pg_notify('gleaner', 'polls');
    end if;
    if new.status is distinct from old.status and (
        -- Completed by one who does not hold it; failed or put back so, before the lease has run out, and not by an operator.
        old.status in ('running') and (new.status in ('running')) is not true and not v_mine
            and (new.status = 'done' or old.due_at > v_now and not (gleaner.is_trusted() and new.status = 'ready'))
        -- A late end: the one who held it last comes back to a row that waits for the next agent, or was called off.
        or old.status in ('ready', 'failed') and v_mine and new.status in ('done', 'failed')
        -- What is finished is not given up by one who no longer holds it. Nor is it, or what is dead, claimable: it is put back first.
        or old.status in ('done') and new.status = 'failed' or (old.status in ('done') or (old.status = 'failed' and old.due_at is null)) and new.status in ('running')
    ) then
        return null;
    end if;
    if old.status in ('running') and new.status in ('running') and not v_mine then
        -- Another than the holder edits the row: what belongs to the work stays as the holder left it.
        select old.status into new.status;
    elsif old.status in ('running') and new.status in ('running') then
        -- A sign of life: a holder that writes results, progress or its lock keeps the row, up to the deadline.
        if (false) and old.due_at - v_now < (interval '2 minutes') / 2 then
            new.due_at := greatest(old.due_at, least(v_now + interval '2 minutes', old.deadline_at));
        end if;
    elsif new.status is not distinct from old.status then
        if new.wanted_at is distinct from old.wanted_at and old.due_at is not null and old.status in ('ready', 'failed') then
            new.due_at := coalesce(new.wanted_at, v_now);
        end if;
    elsif new.status in ('running') then
        -- A plain claim.
        select greatest(old.lease + 1, (extract(epoch from v_now) * 1000000)::bigint), v_now + interval '2 minutes', v_now + interval '6 hours', 1, null, v_session
        into new.lease, new.due_at, new.deadline_at, new.started, new.agent, new.session;
    elsif new.status is distinct from old.status then
        if new.status = 'ready' then
            -- A requeue, or the holder's release.
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := v_now;
            select case when old.status in ('running') and v_mine then old.attempts else 0 end, case when old.status in ('running') and v_mine then old.lost else 0 end
            into new.attempts, new.lost;
        elsif new.status = 'failed' then
            -- Counts an attempt and backs off; in the end the row is dead.
            select v_attempts, old.lease + 1, case when (v_attempts < 3) then v_now + gleaner.backoff(interval '30 seconds', interval '1 hour', v_attempts, old.provider_id::text) end
            into new.attempts, new.lease, new.due_at;
        elsif (old.status in ('running') and new.status = 'done') is not true then
            -- Finished without a claim: a note, a decision by hand. No late result may reopen it.
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := null;
        end if;
        select null, 0 into new.deadline_at, new.started;
    end if;
    return new;
end
$$;

ALTER FUNCTION gleaner.adapt_polls() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.adapt_runs() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now      timestamptz := clock_timestamp();
    v_attempts integer := old.attempts + 1;
    -- The holder is known by its sign-in. Without a token only roles can be distinguished, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session  text := gleaner.caller_session();
    v_mine     boolean := coalesce(old.session = v_session and (gleaner.caller_uid() is not null or old.agent is null), false);
begin
    if tg_nargs > 0 then
        return case when v_mine or old.session is null or new.result is not distinct from old.result then new end;
    end if;
    if tg_op = 'INSERT' then
        select 0, 0, 0, null, null, null into new.lease, new.lost, new.started, new.deadline_at, new.agent, new.session;
        new.attempts := 0;
        new.status := coalesce(new.status, 'queued');
        if new.status = 'queued' then
            -- A due time in the future is an appointment; otherwise the row has waited since it was created.
            new.due_at := case when new.due_at > v_now then new.due_at else least(coalesce(new.created_at, v_now), v_now) end;
        elsif new.status in ('running') then
            -- Inserted as already being worked on: the inserter holds it.
            new.lease := (extract(epoch from v_now) * 1000000)::bigint;
            -- Taken when the row says so: one inserted with an old lock has lost its holder already.
            v_now := least(coalesce(new.started_at, v_now), v_now);
            select v_now + interval '30 minutes', v_now + interval '2 hours', 1, gleaner.caller_session()
            into new.due_at, new.deadline_at, new.started, new.session;
        else
            -- Written as finished, or as failed by one who knows better: history, not work.
            new.due_at := null;
        end if;
        return new;
    end if;
    -- Out of reach, always.
    select old.lease, old.due_at, old.lost, old.started, old.deadline_at, old.agent, old.session, old.attempts
    into new.lease, new.due_at, new.lost, new.started, new.deadline_at, new.agent, new.session, new.attempts;
    if new.status is distinct from old.status then
        perform pg_notify('gleaner', 'runs');
    end if;
    if new.status is distinct from old.status and (
        -- Completed by one who does not hold it; failed or put back so, before the lease has run out, and not by an operator.
        old.status in ('running') and (new.status in ('running')) is not true and not v_mine and new.status is distinct from 'cancelled'
            and (new.status = 'completed' or old.due_at > v_now and not (gleaner.is_trusted() and new.status = 'queued'))
        -- A late end: the one who held it last comes back to a row that waits for the next agent, or was called off.
        or old.status in ('queued', 'failed', 'cancelled') and v_mine and new.status in ('completed', 'failed')
        -- What is finished is not given up by one who no longer holds it. Nor is it, or what is dead, claimable: it is put back first.
        or old.status in ('completed', 'cancelled') and new.status = 'failed' or (old.status in ('completed', 'cancelled') or (old.status = 'failed' and old.due_at is null)) and new.status in ('running')
    ) then
        return null;
    end if;
    if old.status in ('running') and new.status in ('running') and not v_mine then
        -- Another than the holder edits the row: what belongs to the work stays as the holder left it.
        select old.result, old.progress, old.error, old.worker_id, old.started_at, old.status into new.result, new.progress, new.error, new.worker_id, new.started_at, new.status;
    elsif old.status in ('running') and new.status in ('running') then
        -- A sign of life: a holder that writes results, progress or its lock keeps the row, up to the deadline.
        if (new.result is distinct from old.result or new.progress is distinct from old.progress or new.started_at is distinct from old.started_at) and old.due_at - v_now < (interval '30 minutes') / 2 then
            new.due_at := greatest(old.due_at, least(v_now + interval '30 minutes', old.deadline_at));
        end if;
    elsif new.status in ('running') then
        -- A plain claim.
        select greatest(old.lease + 1, (extract(epoch from v_now) * 1000000)::bigint), v_now + interval '30 minutes', v_now + interval '2 hours', 1, null, v_session
        into new.lease, new.due_at, new.deadline_at, new.started, new.agent, new.session;
    elsif new.status is distinct from old.status then
        if new.status = 'queued' then
            -- A requeue, or the holder's release.
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := v_now;
            select case when old.status in ('running') and v_mine then old.attempts else 0 end, case when old.status in ('running') and v_mine then old.lost else 0 end
            into new.attempts, new.lost;
        elsif new.status = 'failed' then
            -- Counts an attempt and backs off; in the end the row is dead.
            select v_attempts, old.lease + 1, case when (v_attempts < 3) then v_now + gleaner.backoff(interval '30 seconds', interval '10 minutes', v_attempts, old.id::text) end
            into new.attempts, new.lease, new.due_at;
            -- The same words may well be meant again.
            if new.error is null then
                new.error := 'marked as failed';
            end if;
        elsif (old.status in ('running') and new.status = 'completed') is not true then
            -- Finished without a claim: a note, a decision by hand. No late result may reopen it.
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := null;
        end if;
        select null, 0 into new.deadline_at, new.started;
        new.completed_at := case when new.status = 'queued' then null when (new.status in ('queued', 'running', 'failed') and new.due_at is not null) then new.completed_at
            else coalesce(nullif(new.completed_at, old.completed_at), v_now) end;
    end if;
    return new;
end
$$;

ALTER FUNCTION gleaner.adapt_runs() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.adapt_schedules() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now      timestamptz := clock_timestamp();
    v_attempts integer := old.attempts + 1;
    -- The holder is known by its sign-in. Without a token only roles can be distinguished, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session  text := gleaner.caller_session();
    v_mine     boolean := coalesce(old.session = v_session and (gleaner.caller_uid() is not null or old.agent is null), false);
begin
    if tg_op = 'INSERT' then
        select 0, 0, 0, null, null, null into new.lease, new.lost, new.started, new.deadline_at, new.agent, new.session;
        new.attempts := 0;
        new.status := coalesce(new.status, 'active');
        if new.status = 'active' then
            new.due_at := coalesce(new.next_at, v_now);
        elsif new.status in ('working') then
            -- Inserted as already being worked on: the inserter holds it.
            new.lease := (extract(epoch from v_now) * 1000000)::bigint;
            select v_now + interval '1 minute', v_now + interval '10 minutes', 1, gleaner.caller_session()
            into new.due_at, new.deadline_at, new.started, new.session;
        else
            -- Written as finished, or as failed by one who knows better: history, not work.
            new.due_at := null;
        end if;
        return new;
    end if;
    -- Out of reach, always.
    select old.lease, old.due_at, old.lost, old.started, old.deadline_at, old.agent, old.session, old.attempts
    into new.lease, new.due_at, new.lost, new.started, new.deadline_at, new.agent, new.session, new.attempts;
    if new.status is distinct from old.status or new.next_at is distinct from old.next_at then
        perform pg_notify('gleaner', 'schedules');
    end if;
    if new.status is distinct from old.status and (
        -- Completed by one who does not hold it; failed or put back so, before the lease has run out, and not by an operator.
        old.status in ('working') and (new.status in ('working')) is not true and not v_mine and new.status is distinct from 'paused'
            and (new.status = 'ended' or old.due_at > v_now and not (gleaner.is_trusted() and new.status = 'active'))
        -- A late end: the one who held it last comes back to a row that waits for the next agent, or was called off.
        or old.status in ('active', 'failed', 'paused') and v_mine and new.status in ('ended', 'failed')
        -- What is finished is not given up by one who no longer holds it. Nor is it, or what is dead, claimable: it is put back first.
        or old.status in ('ended', 'paused') and new.status = 'failed' or (old.status in ('ended', 'paused') or (old.status = 'failed' and old.due_at is null)) and new.status in ('working')
    ) then
        return null;
    end if;
    if old.status in ('working') and new.status in ('working') and not v_mine then
        -- Another than the holder edits the row: what belongs to the work stays as the holder left it.
        select old.error_message, old.status into new.error_message, new.status;
    elsif old.status in ('working') and new.status in ('working') then
        -- A sign of life: a holder that writes results, progress or its lock keeps the row, up to the deadline.
        if (false) and old.due_at - v_now < (interval '1 minute') / 2 then
            new.due_at := greatest(old.due_at, least(v_now + interval '1 minute', old.deadline_at));
        end if;
    elsif new.status is not distinct from old.status then
        if new.next_at is distinct from old.next_at and old.due_at is not null and old.status in ('active', 'failed') then
            new.due_at := coalesce(new.next_at, v_now);
        end if;
    elsif new.status in ('working') then
        -- A plain claim.
        select greatest(old.lease + 1, (extract(epoch from v_now) * 1000000)::bigint), v_now + interval '1 minute', v_now + interval '10 minutes', 1, null, v_session
        into new.lease, new.due_at, new.deadline_at, new.started, new.agent, new.session;
    elsif new.status is distinct from old.status then
        if new.status = 'active' then
            -- A requeue, or the holder's release.
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := v_now;
            select case when old.status in ('working') and v_mine then old.attempts else 0 end, case when old.status in ('working') and v_mine then old.lost else 0 end
            into new.attempts, new.lost;
        elsif new.status = 'failed' then
            -- Counts an attempt and backs off; in the end the row is dead.
            select v_attempts, old.lease + 1, case when (v_attempts < 20) then v_now + gleaner.backoff(interval '10 seconds', interval '15 minutes', v_attempts, old.id::text) end
            into new.attempts, new.lease, new.due_at;
            -- The same words may well be meant again.
            if new.error_message is null then
                new.error_message := 'marked as failed';
            end if;
        elsif (old.status in ('working') and new.status = 'ended') is not true then
            -- Finished without a claim: a note, a decision by hand. No late result may reopen it.
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := null;
        end if;
        select null, 0 into new.deadline_at, new.started;
        new.finished_at := case when new.status = 'active' then null when (new.status in ('active', 'working', 'failed') and new.due_at is not null) then new.finished_at
            else coalesce(nullif(new.finished_at, old.finished_at), v_now) end;
    end if;
    return new;
end
$$;

ALTER FUNCTION gleaner.adapt_schedules() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.add_first_administrator(p_email text, p_password text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    lock table auth.users in share row exclusive mode;
    if exists (select from auth.users) then
        return false;
    end if;
    return gleaner.add_user(p_email, p_password, null, null, true, true, true) is not null;
end
$$;

COMMENT ON FUNCTION gleaner.add_first_administrator(p_email text, p_password text) IS 'Makes the first user, an administrator; false when there is one.';

CREATE FUNCTION gleaner.add_user(p_email text, p_password text, p_user_meta jsonb, p_app_meta jsonb, p_confirmed boolean, p_administrator boolean, p_link boolean, p_id uuid DEFAULT NULL::uuid) RETURNS uuid
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
    v_id  uuid;
begin
    insert into auth.users (id, email, encrypted_password, email_confirmed_at, raw_user_meta_data, raw_app_meta_data, created_at, updated_at)
    values (coalesce(p_id, gen_random_uuid()), p_email, p_password, case when p_confirmed then v_now end, coalesce(p_user_meta, '{}'),
            coalesce(p_app_meta, '{}') || '{"provider": "email", "providers": ["email"]}', v_now, v_now)
    on conflict do nothing
    returning id into v_id;
    if v_id is null then
        return null;
    end if;
    insert into auth.identities (provider_id, user_id, provider, identity_data)
    values (v_id::text, v_id, 'email', jsonb_build_object('sub', v_id, 'email', p_email, 'email_verified', p_confirmed, 'phone_verified', false));
    -- A user with an unconfirmed address joins when it is confirmed.
    if p_confirmed then
        perform gleaner.join_team(v_id, p_administrator, p_link);
    end if;
    return v_id;
end
$$;

COMMENT ON FUNCTION gleaner.add_user(p_email text, p_password text, p_user_meta jsonb, p_app_meta jsonb, p_confirmed boolean, p_administrator boolean, p_link boolean, p_id uuid) IS 'Makes a user and its owner''s row; null when the address is taken.';

CREATE FUNCTION gleaner.admit_activities(p_ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_owner bigint;
    v_other uuid;
begin
    if gleaner.operates('activities', array['service_role'], array['authenticated']) = 'all' then
        return;
    end if;
    v_owner := gleaner.own_activities(null);
    perform from public.activities as q where q.id = any (p_ids) order by q.id for no key update;
    select i.id into v_other from unnest(p_ids) as i (id)
    where not exists (
        select from public.activities as q
        where q.id = any (array[i.id]) and (q.sales_id is null or q.sales_id = v_owner))
    limit 1;
    if found then
        raise exception '% does not exist or belongs to another owner: only administrators may do this', v_other
            using errcode = '42501', hint = 'Leave it out, or ask an administrator of the team.';
    end if;
end
$$;

ALTER FUNCTION gleaner.admit_activities(p_ids uuid[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.admit_dumps(p_ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_other uuid;
begin
    if gleaner.operates('dumps', array['service_role'], array['authenticated']) = 'all' then
        return;
    end if;
    select i.id into v_other from unnest(p_ids) as i (id)
    where not exists (
        select from public.agent_processing_queue as q
        where q.id = any (array[i.id]) and q.workspace_id = any (gleaner.my_workspaces()))
    limit 1;
    if found then
        raise exception '% does not exist or belongs to another group: only administrators may do this', v_other
            using errcode = '42501', hint = 'Leave it out, or ask an administrator of the team.';
    end if;
end
$$;

ALTER FUNCTION gleaner.admit_dumps(p_ids uuid[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.admit_followups(p_ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_other uuid;
begin
    if gleaner.operates('followups', array['service_role'], array['authenticated']) = 'all' then
        return;
    end if;
    select i.id into v_other from unnest(p_ids) as i (id)
    where not exists (
        select from public.scheduled_actions as q
        where q.id = any (array[i.id]) and gleaner.owns_contact(q.contact_id))
    limit 1;
    if found then
        raise exception '% does not exist or belongs to another member: only administrators may do this', v_other
            using errcode = '42501', hint = 'Leave it out, or ask an administrator of the team.';
    end if;
end
$$;

ALTER FUNCTION gleaner.admit_followups(p_ids uuid[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.admit_schedules(p_ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_other uuid;
begin
    if gleaner.operates('schedules', array['service_role'], array['authenticated']) = 'all' then
        return;
    end if;
    select i.id into v_other from unnest(p_ids) as i (id)
    where not exists (
        select from public.followup_schedules as q
        where q.id = any (array[i.id]) and gleaner.owns_contact(q.contact_id))
    limit 1;
    if found then
        raise exception '% does not exist or belongs to another member: only administrators may do this', v_other
            using errcode = '42501', hint = 'Leave it out, or ask an administrator of the team.';
    end if;
end
$$;

ALTER FUNCTION gleaner.admit_schedules(p_ids uuid[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.advance_schedule(p_request jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_row   public.followup_schedules;
    v_next  timestamptz := (p_request ->> 'next')::timestamptz;
    v_added bigint;
begin
    select s.* into v_row from public.followup_schedules as s where s.id = (p_request ->> 'id')::uuid for no key update;
    if not found or v_row.status <> 'working' or v_row.lease <> (p_request ->> 'lease')::bigint then
        return '{"outcome": "lost"}';
    end if;
    if v_row.seen_until <> (p_request ->> 'seen_from')::timestamptz then
        perform from gleaner.snooze_schedules(v_row.id, v_row.lease, clock_timestamp());
        return '{"outcome": "changed"}';
    end if;
    with added as (
        insert into public.scheduled_actions (prospect_id, contact_id, action_type, scheduled_for, payload, schedule_id, occurrence)
        select v_row.prospect_id, v_row.contact_id, v_row.action_type, o.at::timestamptz, v_row.payload, v_row.id, o.at::timestamptz
        from jsonb_array_elements_text(p_request -> 'occurrences') with ordinality as o (at, n)
        order by o.n
        on conflict (schedule_id, occurrence) where schedule_id is not null do nothing
        returning 1
    )
    select count(*) into v_added from added;
    update public.followup_schedules as s
    set seen_until = (p_request ->> 'seen_until')::timestamptz, missed_count = s.missed_count + (p_request ->> 'missed')::bigint,
        last_occurrence = coalesce((p_request #>> '{occurrences,-1}')::timestamptz, s.last_occurrence),
        next_at = coalesce(v_next, s.next_at), error_message = null
    where s.id = v_row.id;
    if v_next is null then
        perform from gleaner.complete_schedules(v_row.id, v_row.lease);
    else
        perform from gleaner.snooze_schedules(v_row.id, v_row.lease, v_next);
    end if;
    return jsonb_build_object('outcome', 'done', 'added', v_added);
end
$$;

COMMENT ON FUNCTION gleaner.advance_schedule(p_request jsonb) IS 'Turns occurrences of a schedule into follow-ups and appoints the next.';

CREATE FUNCTION gleaner.answer_replies(p_heard jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_reply record;
    v_ids   uuid[];
    v_why   text;
begin
    for v_reply in
        select r.*, gleaner.opt_out_word(coalesce(nullif(r.text, ''), r.subject), r.type) as word,
               -- The names under which an action may know a sender who is not a contact.
               array[r.sender_address, substr(r.sender_address, strpos(r.sender_address, ':') + 1)] as names
        from jsonb_to_recordset(p_heard) as r (
            id uuid, type text, contact_id bigint, sender_kind text, sender_address text, at timestamptz, automatic boolean, text text, subject text)
        where r.automatic is not true
        order by r.contact_id, r.sender_address
    loop
        v_why := 'the prospect replied';
        if v_reply.word = 'stop' then
            v_why := 'the prospect asked for no more messages';
            insert into public.do_not_contact as d (address, contact_id, reason)
            values (coalesce(v_reply.sender_address, 'contact:' || v_reply.contact_id), v_reply.contact_id, 'asked for it')
            on conflict (address) do update set contact_id = coalesce(excluded.contact_id, d.contact_id);
        elsif v_reply.word = 'start' then
            delete from public.do_not_contact as d
            where d.reason = 'asked for it' and (d.address = v_reply.sender_address or d.contact_id = v_reply.contact_id);
        end if;
        v_ids := array(
            select a.id
            from public.scheduled_actions as a
            where (a.contact_id = v_reply.contact_id or a.contact_id is null and a.prospect_id = any (v_reply.names))
              and (a.status in ('pending', 'processing') or a.status = 'failed' and a.due_at is not null)
              and not (a.status = 'processing' and a.sending_lease is not distinct from a.lease)
              and a.armed_at <= v_reply.at
              and a.payload ->> 'keep_on_reply' is distinct from 'true'
            order by a.id
            for no key update);
        update public.scheduled_actions as a set status = 'cancelled', cancelled_reason = v_why where a.id = any (v_ids);
        with paused as (
            update public.followup_schedules as s set status = 'paused', paused_reason = v_why
            where (s.contact_id = v_reply.contact_id or s.contact_id is null and s.prospect_id = any (v_reply.names))
              and s.until_reply and s.status in ('active', 'working') and s.created_at <= v_reply.at
            returning s.id
        )
        insert into gleaner.audit (queue, key, act, caller, detail)
        select c.queue, c.id::text, 'cancel', gleaner.caller_session(), jsonb_build_object('reason', v_why, 'activity', v_reply.id)
        from (select 'followups', u.id from unnest(v_ids) as u (id) union all select 'schedules', p.id from paused as p) as c (queue, id);
    end loop;
end
$$;

COMMENT ON FUNCTION gleaner.answer_replies(p_heard jsonb) IS 'Calls off what was planned for people who were heard from.';

CREATE FUNCTION gleaner.arrange_schedule() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    if tg_op = 'INSERT' then
        new.contact_id := coalesce(new.contact_id, gleaner.contact_of_prospect(new.prospect_id));
        return new;
    end if;
    new.updated_at := clock_timestamp();
    if new.prospect_id is distinct from old.prospect_id and new.contact_id is not distinct from old.contact_id then
        new.contact_id := gleaner.contact_of_prospect(new.prospect_id);
    end if;
    if (new.cron, new.time_zone, new.ends_at) is distinct from (old.cron, old.time_zone, old.ends_at)
       or new.status = 'active' and old.status in ('paused', 'failed', 'ended') then
        new.seen_until := new.updated_at;
        new.next_at := new.updated_at;
        new.paused_reason := null;
        -- A definition that could not be read has been mended.
        if new.status = 'failed' and old.status = 'failed' then
            new.status := 'active';
        end if;
        new.error_message := case when new.status = 'active' then null else new.error_message end;
    end if;
    return new;
end
$$;

COMMENT ON FUNCTION gleaner.arrange_schedule() IS 'Lets a changed or resumed schedule be looked at now.';

CREATE TABLE gleaner.jobs (
    id bigint NOT NULL,
    due_at timestamp with time zone DEFAULT now(),
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    lease bigint DEFAULT 0 NOT NULL,
    deadline_at timestamp with time zone,
    finished_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    lost integer DEFAULT 0 NOT NULL,
    started smallint DEFAULT 0 NOT NULL,
    priority smallint DEFAULT 0 NOT NULL,
    status text DEFAULT 'ready'::text NOT NULL,
    kind text DEFAULT 'default'::text NOT NULL,
    unique_key text,
    agent text,
    session text,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    progress jsonb,
    result jsonb,
    error jsonb,
    CONSTRAINT gleaner_jobs_due CHECK (((due_at IS NOT NULL) OR (status <> ALL (ARRAY['ready'::text, 'running'::text])))),
    CONSTRAINT jobs_status_known CHECK ((status = ANY (ARRAY['ready'::text, 'running'::text, 'done'::text, 'failed'::text, 'cancelled'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_cost_delay='1');

COMMENT ON TABLE gleaner.jobs IS 'The built-in queue: any kind of work, for programs without a table of their own.';

COMMENT ON COLUMN gleaner.jobs.priority IS 'Classes 2 (most urgent), 1, 0 and -1; anything beyond falls into the nearest.';

COMMENT ON COLUMN gleaner.jobs.unique_key IS 'No two waiting jobs share one; a running job does not stand in the way.';

CREATE FUNCTION gleaner.as_held_jobs(p_row gleaner.jobs) RETURNS gleaner.jobs
    LANGUAGE plpgsql
    AS $$
declare
    v_batch gleaner.batch_lease;
begin
    if p_row.lease in (0, -1) and p_row.status = 'ready' then
        select b.* into v_batch from gleaner.batch_lease as b
        where b.queue = 'jobs' and b.mark = p_row.lease and b.keys @> p_row.id;
        if found then
            p_row.status := 'running';
            p_row.lease := -v_batch.id;
            p_row.due_at := v_batch.due_at;
            p_row.deadline_at := v_batch.deadline_at;
            p_row.started := case when v_batch.begun @> p_row.id then 1 else 0 end;
            p_row.agent := v_batch.agent;
            p_row.session := v_batch.session;
        end if;
    end if;
    return p_row;
end
$$;

ALTER FUNCTION gleaner.as_held_jobs(p_row gleaner.jobs) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.assign_activities(p_ids uuid[], p_owner bigint) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
#variable_conflict use_column
declare
    v_done uuid[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.admit_activities(p_ids);
    perform from public.activities as q where q.id = any (p_ids) order by q.id for no key update;
    insert into gleaner.audit (queue, tenant, key, act, caller, detail)
    select 'activities', '', q.id::text, 'assign', gleaner.caller_session(), jsonb_build_object('from', q.sales_id, 'to', p_owner)
    from public.activities as q
    where q.id = any (p_ids) and q.sales_id is distinct from p_owner;
    with changed as (
        update public.activities as q
        set sales_id = p_owner,
            open_at = case when p_owner is null then q.due_at
                             else gleaner.open_activities(p_owner, q.created_at, q.due_at) end
        where q.id = any (p_ids) and q.sales_id is distinct from p_owner
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    perform pg_notify('gleaner', 'activities');
    return query
    select u.id, u.outcome, q.processing_status::text
    from (select d, 'done' from unnest(v_done) as d
          union all
          (select i, 'already' from unnest(p_ids) as i except select d, 'already' from unnest(v_done) as d)) as u (id, outcome)
    join public.activities as q on q.id = any (array[u.id]);
    return query
    select i, 'gone', null::text from unnest(p_ids) as i
    where not exists (select from public.activities as q where q.id = i);
end
$$;

ALTER FUNCTION gleaner.assign_activities(p_ids uuid[], p_owner bigint) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.assign_activities(p_ids uuid[], p_owner bigint) IS 'An operator''s change of owner; null removes the owner, so that every agent may take the row. A running row stays with its holder; from now on the
new owner''s policy says who may take it next.';

CREATE FUNCTION gleaner.audit_link() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    insert into gleaner.audit (queue, key, act, caller, detail)
    values ('activities', new.id::text, case when new.contact_id is null then 'unlink' else 'link' end, gleaner.caller_session(),
            jsonb_build_object('from', old.contact_id, 'to', new.contact_id, 'sender', new.sender_address));
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.audit_link() IS 'Records who linked or unlinked an activity.';

CREATE FUNCTION gleaner.backoff(p_first interval, p_cap interval, p_attempt integer, p_key text) RETURNS interval
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return least(p_first * power(2, least(greatest(p_attempt, 1) - 1, 20)), p_cap)
           * (1 + 0.2 * (((hashtextextended(p_key, p_attempt) % 1000) + 1000) % 1000) / 1000.0);
end
$$;

COMMENT ON FUNCTION gleaner.backoff(p_first interval, p_cap interval, p_attempt integer, p_key text) IS 'Wait before the next try: doubling from the first, capped, with a jitter derived from key and attempt.';

CREATE FUNCTION gleaner.batch_keys(p_queue text) RETURNS int8multirange
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return (select coalesce(range_agg(s.keys), '{}') from gleaner.batch_lease as s where s.queue = p_queue);
end
$$;

COMMENT ON FUNCTION gleaner.batch_keys(p_queue text) IS 'Keys of the rows that batch leases hold in a queue.';

CREATE FUNCTION gleaner.begin_claim(p_queue text, p_agent text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'a claim needs read committed, this transaction is %', current_setting('transaction_isolation')
            using errcode = 'GL001',
                  hint = 'Claim in a transaction of its own, or begin it with: begin isolation level read committed';
    end if;
    if p_agent = '' then
        raise exception 'the agent id is empty' using errcode = 'GL002',
            hint = 'Pass a text that is new at each process start, or null to be known by your sign-in alone and end the work by plain updates.';
    end if;
    if coalesce(current_setting('request.jwt.claims', true), '') = '' then
        return 'role:' || coalesce(nullif(current_setting('role', true), 'none'), session_user);
    end if;
    perform gleaner.scoped_kinds(p_queue, null);
    return gleaner.caller_session();
end
$$;

COMMENT ON FUNCTION gleaner.begin_claim(p_queue text, p_agent text) IS 'Admits a caller who claims, and says who it is.';

CREATE FUNCTION gleaner.begin_run(p_request jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_row     public.execution_jobs;
    v_slots   integer;
    v_used    bigint;
    v_version record;
    v_rows    record;
begin
    select r.* into v_row from public.execution_jobs as r where r.id = (p_request ->> 'id')::uuid;
    if v_row.site is not null then
        perform pg_advisory_xact_lock(hashtextextended('gleaner run site ' || v_row.site, 0));
    end if;
    select r.* into v_row from public.execution_jobs as r where r.id = (p_request ->> 'id')::uuid for no key update;
    if not found or v_row.status <> 'running' or v_row.lease <> (p_request ->> 'lease')::bigint then
        return '{"outcome": "lost"}';
    end if;
    v_slots := coalesce((select s.slots from public.run_sites as s where s.site = v_row.site), (p_request ->> 'slots')::integer);
    select count(*) into v_used
    from public.execution_jobs as r
    where r.site = v_row.site and r.status = 'running' and r.begun_lease = r.lease and r.id <> v_row.id and r.due_at > clock_timestamp();
    if v_used >= v_slots then
        return jsonb_build_object('outcome', 'deferred', 'wait_seconds', 5,
            'reason', format('%s runs use %s, and there may be %s at once', v_used, v_row.site, v_slots));
    end if;
    update public.execution_jobs as r set begun_lease = r.lease where r.id = v_row.id;
    select v.content, v.version, c.name into v_version
    from public.recording_versions as v join public.recordings as c on c.id = v.recording_id where v.id = v_row.recording_version_id;
    select count(*) as rows, count(*) filter (where n.status = 'passed') as passed into v_rows from public.run_rows as n where n.run_id = v_row.id;
    return jsonb_build_object('outcome', 'ready', 'recording', v_version.name, 'version', v_version.version, 'content', v_version.content,
        'csv', v_row.csv_data, 'config', v_row.config, 'rows', v_rows.rows, 'passed', v_rows.passed, 'failed', v_rows.rows - v_rows.passed);
end
$$;

COMMENT ON FUNCTION gleaner.begin_run(p_request jsonb) IS 'What an agent needs to replay a run that it holds.';

CREATE FUNCTION gleaner.begin_sending(p_request jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now   timestamptz;
    v_row   public.scheduled_actions;
    v_why   text;
    v_until timestamptz;
begin
    select a.* into v_row from public.scheduled_actions as a where a.id = (p_request ->> 'id')::uuid for no key update;
    if not found or v_row.status <> 'processing' or v_row.lease <> (p_request ->> 'lease')::bigint then
        return '{"outcome": "lost"}';
    end if;
    v_now := clock_timestamp();
    if v_row.scheduled_for > v_now then
        return jsonb_build_object('outcome', 'early', 'wait_seconds', extract(epoch from v_row.scheduled_for - v_now));
    end if;
    v_why := gleaner.reason_not_to_send(v_row, p_request #>> '{message,to}');
    if v_why is not null then
        perform from gleaner.cancel_followups(array[v_row.id], v_why);
        update public.scheduled_actions as a set cancelled_reason = v_why where a.id = v_row.id;
        return jsonb_build_object('outcome', 'cancelled', 'reason', v_why);
    end if;
    select d.until, d.reason into v_until, v_why from gleaner.reason_to_wait(v_row) as d;
    if v_until is not null then
        update public.scheduled_actions as a set deferred_reason = v_why where a.id = v_row.id;
        return jsonb_build_object('outcome', 'deferred', 'reason', v_why, 'wait_seconds', extract(epoch from v_until - v_now));
    end if;
    update public.scheduled_actions as a
    set message = coalesce(a.message, p_request -> 'message'), idempotency_key = coalesce(a.idempotency_key, a.id),
        sending_at = v_now, sending_lease = a.lease, deferred_reason = null
    where a.id = v_row.id
    returning a.* into v_row;
    -- A lease that ends after this call sends the row to a person; without the call it is tried again, under the same key.
    if p_request ->> 'on_unknown' is distinct from 'resend' then
        perform from gleaner.progress_followups(v_row.id, v_row.lease, 'sending', p_hold => interval '5 minutes');
    end if;
    return jsonb_build_object('outcome', 'send', 'key', v_row.idempotency_key, 'message', v_row.message,
        'lateness_seconds', extract(epoch from v_now - v_row.scheduled_for));
end
$$;

COMMENT ON FUNCTION gleaner.begin_sending(p_request jsonb) IS 'Says whether an action may be sent now, and stores what will be.';

CREATE FUNCTION gleaner.bury_activities(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_activities('bury', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.bury_activities(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.bury_activities(p_ids uuid[], p_reason text) IS 'An operator''s skip: rows are dead, whatever they were doing, with the reason.';

CREATE FUNCTION gleaner.bury_dumps(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_dumps('bury', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.bury_dumps(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.bury_dumps(p_ids uuid[], p_reason text) IS 'An operator''s skip: rows are dead, whatever they were doing, with the reason.';

CREATE FUNCTION gleaner.bury_followups(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_followups('bury', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.bury_followups(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.bury_followups(p_ids uuid[], p_reason text) IS 'An operator''s skip: rows are dead, whatever they were doing, with the reason.';

CREATE FUNCTION gleaner.bury_jobs(p_ids bigint[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_jobs('bury', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.bury_jobs(p_ids bigint[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.bury_jobs(p_ids bigint[], p_reason text) IS 'An operator''s skip: rows are dead, whatever they were doing, with the reason.';

CREATE FUNCTION gleaner.bury_polls(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_polls('bury', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.bury_polls(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.bury_polls(p_ids uuid[], p_reason text) IS 'An operator''s skip: rows are dead, whatever they were doing, with the reason.';

CREATE FUNCTION gleaner.bury_runs(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_runs('bury', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.bury_runs(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.bury_runs(p_ids uuid[], p_reason text) IS 'An operator''s skip: rows are dead, whatever they were doing, with the reason.';

CREATE FUNCTION gleaner.bury_schedules(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_schedules('bury', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.bury_schedules(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.bury_schedules(p_ids uuid[], p_reason text) IS 'An operator''s skip: rows are dead, whatever they were doing, with the reason.';

CREATE FUNCTION gleaner.caller_role() RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return coalesce(nullif(current_setting('role', true), 'none'), session_user);
end
$$;

COMMENT ON FUNCTION gleaner.caller_role() IS 'The database role that really calls, also inside a definer function.';

CREATE FUNCTION gleaner.caller_session() RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return (select coalesce(
        (claims ->> 'sub') || '/' || coalesce(claims ->> 'session_id', ''),
        'role:' || coalesce(nullif(current_setting('role', true), 'none'), session_user))
    from (select nullif(current_setting('request.jwt.claims', true), '')::jsonb) as token (claims));
end
$$;

COMMENT ON FUNCTION gleaner.caller_session() IS 'User and sign-in of the caller, or its role where there is no token.';

CREATE FUNCTION gleaner.caller_uid() RETURNS uuid
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid;
end
$$;

COMMENT ON FUNCTION gleaner.caller_uid() IS 'The signed-in user of the caller''s token; null without one.';

CREATE FUNCTION gleaner.cancel_activities(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_activities('cancel', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.cancel_activities(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_activities(p_ids uuid[], p_reason text) IS 'Ends unfinished rows whose work is no longer wanted. The holder of a held one learns at its next call.';

CREATE FUNCTION gleaner.cancel_activities_matching(p_match jsonb, p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_ids uuid[];
begin
    execute 'select array(select q.id from (select q.* from public.activities as q where q.processing_status in (''raw'', ''processing'', ''failed'') and q.due_at is not null and q.sales_id is not null union all select q.* from public.activities as q where q.processing_status in (''raw'', ''processing'', ''failed'') and q.due_at is not null and q.sales_id is null) as q where '
        || gleaner.condition_of('public.activities', p_match)
        -- The index knows a kind by the numbers of its lanes.
        || coalesce((select format(' and (hashtextextended(q.type collate "C", 0) & -16) between %L::bigint and %L::bigint', k.lane, k.lane | 15)
                     from (select (hashtextextended((p_match ->> 'type')::text collate "C", 0) & -16) as lane) as k
                     where p_match ->> 'type' is not null), '') || ')'
    into v_ids;
    return query select * from gleaner.operate_activities('cancel', v_ids, p_reason);
end
$$;

ALTER FUNCTION gleaner.cancel_activities_matching(p_match jsonb, p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_activities_matching(p_match jsonb, p_reason text) IS 'Cancels every unfinished row whose columns have the given values, for example ''{"kind": "mail"}''.';

CREATE FUNCTION gleaner.cancel_dumps(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_dumps('cancel', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.cancel_dumps(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_dumps(p_ids uuid[], p_reason text) IS 'Ends unfinished rows whose work is no longer wanted. The holder of a held one learns at its next call.';

CREATE FUNCTION gleaner.cancel_dumps_matching(p_match jsonb, p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_ids uuid[];
begin
    execute 'select array(select q.id from (select q.* from public.agent_processing_queue as q where q.processing_state in (''pending''::public.processing_state, ''claimed''::public.processing_state, ''processing''::public.processing_state, ''failed''::public.processing_state) and q.due_at is not null) as q where '
        || gleaner.condition_of('public.agent_processing_queue', p_match) || ')'
    into v_ids;
    return query select * from gleaner.operate_dumps('cancel', v_ids, p_reason);
end
$$;

ALTER FUNCTION gleaner.cancel_dumps_matching(p_match jsonb, p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_dumps_matching(p_match jsonb, p_reason text) IS 'Cancels every unfinished row whose columns have the given values, for example ''{"kind": "mail"}''.';

CREATE FUNCTION gleaner.cancel_followups(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_followups('cancel', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.cancel_followups(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_followups(p_ids uuid[], p_reason text) IS 'Ends unfinished rows whose work is no longer wanted. The holder of a held one learns at its next call.';

CREATE FUNCTION gleaner.cancel_followups_matching(p_match jsonb, p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_ids uuid[];
begin
    execute 'select array(select q.id from (select q.* from public.scheduled_actions as q where q.status in (''pending'', ''processing'', ''failed'') and q.due_at is not null) as q where '
        || gleaner.condition_of('public.scheduled_actions', p_match)
        -- The index knows a kind by the numbers of its lanes.
        || coalesce((select format(' and (hashtextextended(q.action_type collate "C", 0) & -16) between %L::bigint and %L::bigint', k.lane, k.lane | 15)
                     from (select (hashtextextended((p_match ->> 'action_type')::text collate "C", 0) & -16) as lane) as k
                     where p_match ->> 'action_type' is not null), '') || ')'
    into v_ids;
    return query select * from gleaner.operate_followups('cancel', v_ids, p_reason);
end
$$;

ALTER FUNCTION gleaner.cancel_followups_matching(p_match jsonb, p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_followups_matching(p_match jsonb, p_reason text) IS 'Cancels every unfinished row whose columns have the given values, for example ''{"kind": "mail"}''.';

CREATE FUNCTION gleaner.cancel_jobs(p_ids bigint[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_jobs('cancel', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.cancel_jobs(p_ids bigint[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_jobs(p_ids bigint[], p_reason text) IS 'Ends unfinished rows whose work is no longer wanted. The holder of a held one learns at its next call.';

CREATE FUNCTION gleaner.cancel_jobs_matching(p_match jsonb, p_reason text DEFAULT NULL::text) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_ids bigint[];
begin
    execute 'select array(select q.id from (select q.* from gleaner.jobs as q where q.lease <> -1 and q.status in (''ready'', ''running'', ''failed'') and q.due_at is not null union all
                select q.* from unnest(gleaner.range_keys(''jobs'') + gleaner.batch_keys(''jobs'')) as r cross join lateral (
                    select q.* from gleaner.jobs as q where q.id >= lower(r) and q.id < upper(r) order by q.id offset 0
                ) as q
                where q.lease = -1 and q.status in (''ready'', ''running'', ''failed'') and q.due_at is not null) as q where '
        || gleaner.condition_of('gleaner.jobs', p_match)
        -- The index knows a kind by the numbers of its lanes.
        || coalesce((select format(' and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) between %L::bigint and %L::bigint', k.lane, k.lane | 15)
                     from (select (hashtextextended((p_match ->> 'kind')::text collate "C", 0) & -16) as lane) as k
                     where p_match ->> 'kind' is not null), '') || ')'
    into v_ids;
    return query select * from gleaner.operate_jobs('cancel', v_ids, p_reason);
end
$$;

ALTER FUNCTION gleaner.cancel_jobs_matching(p_match jsonb, p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_jobs_matching(p_match jsonb, p_reason text) IS 'Cancels every unfinished row whose columns have the given values, for example ''{"kind": "mail"}''.';

CREATE FUNCTION gleaner.cancel_polls(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_polls('cancel', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.cancel_polls(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_polls(p_ids uuid[], p_reason text) IS 'Ends unfinished rows whose work is no longer wanted. The holder of a held one learns at its next call.';

CREATE FUNCTION gleaner.cancel_polls_matching(p_match jsonb, p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_ids uuid[];
begin
    execute 'select array(select q.provider_id from (select q.* from gleaner.polls as q where q.status in (''ready'', ''running'', ''failed'') and q.due_at is not null) as q where '
        || gleaner.condition_of('gleaner.polls', p_match) || ')'
    into v_ids;
    return query select * from gleaner.operate_polls('cancel', v_ids, p_reason);
end
$$;

ALTER FUNCTION gleaner.cancel_polls_matching(p_match jsonb, p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_polls_matching(p_match jsonb, p_reason text) IS 'Cancels every unfinished row whose columns have the given values, for example ''{"kind": "mail"}''.';

CREATE FUNCTION gleaner.cancel_runs(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_runs('cancel', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.cancel_runs(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_runs(p_ids uuid[], p_reason text) IS 'Ends unfinished rows whose work is no longer wanted. The holder of a held one learns at its next call.';

CREATE FUNCTION gleaner.cancel_runs_matching(p_match jsonb, p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_ids uuid[];
begin
    execute 'select array(select q.id from (select q.* from public.execution_jobs as q where q.status in (''queued'', ''running'', ''failed'') and q.due_at is not null) as q where '
        || gleaner.condition_of('public.execution_jobs', p_match)
        -- The index knows a kind by the numbers of its lanes.
        || coalesce((select format(' and (hashtextextended(coalesce(q.kind, '''') collate "C", 0) & -16) between %L::bigint and %L::bigint', k.lane, k.lane | 15)
                     from (select (hashtextextended((p_match ->> 'kind')::text collate "C", 0) & -16) as lane) as k
                     where p_match ->> 'kind' is not null), '') || ')'
    into v_ids;
    return query select * from gleaner.operate_runs('cancel', v_ids, p_reason);
end
$$;

ALTER FUNCTION gleaner.cancel_runs_matching(p_match jsonb, p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_runs_matching(p_match jsonb, p_reason text) IS 'Cancels every unfinished row whose columns have the given values, for example ''{"kind": "mail"}''.';

CREATE FUNCTION gleaner.cancel_schedules(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_schedules('cancel', p_ids, p_reason);
$$;

ALTER FUNCTION gleaner.cancel_schedules(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_schedules(p_ids uuid[], p_reason text) IS 'Ends unfinished rows whose work is no longer wanted. The holder of a held one learns at its next call.';

CREATE FUNCTION gleaner.cancel_schedules_matching(p_match jsonb, p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_ids uuid[];
begin
    execute 'select array(select q.id from (select q.* from public.followup_schedules as q where q.status in (''active'', ''working'', ''failed'') and q.due_at is not null) as q where '
        || gleaner.condition_of('public.followup_schedules', p_match) || ')'
    into v_ids;
    return query select * from gleaner.operate_schedules('cancel', v_ids, p_reason);
end
$$;

ALTER FUNCTION gleaner.cancel_schedules_matching(p_match jsonb, p_reason text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.cancel_schedules_matching(p_match jsonb, p_reason text) IS 'Cancels every unfinished row whose columns have the given values, for example ''{"kind": "mail"}''.';

CREATE FUNCTION gleaner.capture_changes(p_table regclass, p_on boolean) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '1s'
    AS $$
declare
    v_wanted text;
    v_old    text;
    v_new    text;
    v_make   record;
begin
    for v_make in
        select t.tgname from pg_trigger as t
        where t.tgrelid = p_table and t.tgfoid = 'gleaner.note_change()'::regprocedure and t.tgparentid = 0
    loop
        execute format('drop trigger %I on %s', v_make.tgname, p_table);
    end loop;
    select l.wanted into v_wanted from gleaner.list_captures() as l where l.relation = p_table;
    if not p_on or v_wanted is null then
        return;
    end if;
    select string_agg(format('old.%I', a.attname), ', ' order by a.attnum), string_agg(format('new.%I', a.attname), ', ' order by a.attnum)
    into v_old, v_new
    from pg_attribute as a
    where a.attrelid = p_table and a.attnum = any (string_to_array(substr(v_wanted, strpos(v_wanted, ' ') + 1), ' ')::int2[]);
    for v_make in
        select *
        from (values
            ('I', '00_gleaner_insert', 'insert', ''),
            ('U', '00_gleaner_update', 'update', format('when (row(%s) is not distinct from row(%s))', v_old, v_new)),
            -- The only updates of which more than the new row must be reported.
            ('U', '00_gleaner_rekey',  'update', format('when (row(%s) is distinct from row(%s))', v_old, v_new)),
            ('D', '00_gleaner_delete', 'delete', '')
        ) as made (kind, name, event, condition)
        where strpos(split_part(v_wanted, ' ', 1), made.kind) > 0
    loop
        execute format('create trigger %I after %s on %s for each row %s execute function gleaner.note_change(%L)',
            v_make.name, v_make.event, p_table, v_make.condition, v_wanted);
        -- Also for sessions that have turned ordinary triggers off: the log would show their changes too.
        execute format('alter table %s enable always trigger %I', p_table, v_make.name);
    end loop;
end
$$;

COMMENT ON FUNCTION gleaner.capture_changes(p_table regclass, p_on boolean) IS 'Puts the triggers on a published table that note its changes, or takes them off.';

CREATE FUNCTION gleaner.change_region() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    -- A contact that is saved meanwhile is read in the region of before or of after, by its own trigger: it must be one or the other.
    lock table public.contact_addresses in share row exclusive mode;
    delete from public.contact_addresses as a where a.kind = 'phone';
    insert into public.contact_addresses (contact_id, kind, address, written, loose, parsed)
    select c.id, l.kind, l.address, l.written, l.loose, l.parsed
    from public.contacts as c
    cross join lateral public.list_contact_addresses(c.email, c.phone_number, c.email_jsonb, c.phone_jsonb) as l
    where l.kind = 'phone';
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.change_region() IS 'Has the numbers of all contacts read again.';

CREATE FUNCTION gleaner.change_user(p_user uuid, p_changes jsonb, p_session uuid) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_now   timestamptz := clock_timestamp();
    v_email text := p_changes ->> 'email';
    v_ban   text := p_changes ->> 'ban';
begin
    perform from auth.users as u where u.id = p_user for no key update;
    if not found then
        return 'gone';
    end if;
    begin
        update auth.users as u
        set encrypted_password = coalesce(p_changes ->> 'password', u.encrypted_password),
            email = coalesce(v_email, u.email),
            email_confirmed_at = case when (p_changes ->> 'email_confirm')::boolean then coalesce(u.email_confirmed_at, v_now) else u.email_confirmed_at end,
            raw_user_meta_data = gleaner.merge_metadata(u.raw_user_meta_data, p_changes -> 'user_metadata'),
            raw_app_meta_data = gleaner.merge_metadata(u.raw_app_meta_data, p_changes -> 'app_metadata'),
            banned_until = case v_ban when 'none' then null when 'forever' then 'infinity'
                                      else coalesce(v_now + v_ban::interval, u.banned_until) end,
            updated_at = v_now
        where u.id = p_user;
    exception when unique_violation then
        return 'email_exists';
    end;
    if v_email is not null then
        update auth.identities as i
        set identity_data = i.identity_data || jsonb_build_object('email', v_email), updated_at = v_now
        where i.user_id = p_user and i.provider = 'email';
    end if;
    if (p_changes ->> 'email_confirm')::boolean then
        update auth.identities as i
        set identity_data = i.identity_data || '{"email_verified": true}', updated_at = v_now
        where i.user_id = p_user and i.provider = 'email';
        perform gleaner.join_team(p_user, false, true);
    end if;
    if p_changes ->> 'password' is not null then
        delete from auth.sessions as s where s.user_id = p_user and s.id is distinct from p_session;
        -- Links to set it are no longer needed, and a stolen one must not stay valid.
        delete from auth.one_time_tokens as t where t.user_id = p_user and t.token_type in ('recovery', 'invite');
    end if;
    if v_ban <> 'none' then
        delete from auth.sessions as s where s.user_id = p_user;
        -- Servers close this person's sockets; who misses it looks every few seconds. Rare enough to ring in the transaction.
        perform pg_notify('gleaner', 'auth.users');
    end if;
    return 'done';
end
$$;

COMMENT ON FUNCTION gleaner.change_user(p_user uuid, p_changes jsonb, p_session uuid) IS 'Changes a user; a new password or a ban ends sessions.';

CREATE FUNCTION gleaner.check_columns(p_table regclass, p_columns text[]) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
declare
    v_unknown text := (
        select string_agg(c, ', ') from unnest(p_columns) as c
        where not exists (select from pg_attribute as a where a.attrelid = p_table and a.attname = c and a.attnum > 0 and not a.attisdropped));
begin
    if v_unknown is not null then
        raise exception 'no such column in %: %', p_table, v_unknown using errcode = '42703';
    end if;
end
$$;

COMMENT ON FUNCTION gleaner.check_columns(p_table regclass, p_columns text[]) IS 'Raises where the table lacks one of the columns.';

CREATE FUNCTION gleaner.check_leases(p_ids anyarray, p_leases bigint[]) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    if cardinality(p_ids) is distinct from cardinality(p_leases) then
        raise exception 'p_ids has % rows and p_leases has %', cardinality(p_ids), cardinality(p_leases) using errcode = 'GL002',
            hint = 'Pass one lease for every row, in the same order.';
    end if;
end
$$;

COMMENT ON FUNCTION gleaner.check_leases(p_ids anyarray, p_leases bigint[]) IS 'Raises where there is not one lease for every row.';

CREATE FUNCTION gleaner.check_plain(p_setting text, p_now timestamp with time zone, p_table regclass, p_columns text[], p_status text) RETURNS double precision
    LANGUAGE plpgsql
    AS $$
declare
    v_until double precision := extract(epoch from p_now + interval '1 second') * case when gleaner.is_plain(p_table, p_columns, p_status) then 1 else -1 end;
begin
    perform set_config(p_setting, v_until::text, false);
    return v_until;
end
$$;

COMMENT ON FUNCTION gleaner.check_plain(p_setting text, p_now timestamp with time zone, p_table regclass, p_columns text[], p_status text) IS 'Whether nothing on the table can reject a claim, remembered for a second.';

CREATE FUNCTION gleaner.check_time(p_act text, p_at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    if p_at is null then
        raise exception '% needs a time', p_act using errcode = 'GL002', hint = 'Pass a time, for example now() + interval ''10 minutes''.';
    end if;
end
$$;

COMMENT ON FUNCTION gleaner.check_time(p_act text, p_at timestamp with time zone) IS 'Raises where an act that needs a time was given none.';

CREATE FUNCTION gleaner.choose_rows(p_held_before smallint[], p_limit integer, p_taken integer, OUT places integer[], OUT passed integer[], OUT ended integer[], OUT alone boolean, OUT room integer) RETURNS record
    LANGUAGE plpgsql IMMUTABLE
    AS $$
declare
    v_most integer;
begin
    places := '{}'; passed := '{}'; ended := '{}'; alone := false; room := p_limit;
    for v_i in 1 .. cardinality(p_held_before) loop
        -- The rows behind a batch that is full are not left out: they are next in the line.
        exit when cardinality(places) >= room;
        if p_held_before[v_i] = -2 then
            ended := ended || v_i;
            continue;
        elsif p_held_before[v_i] >= 0 then
            v_most := case when p_held_before[v_i] > 1 then greatest((p_taken + p_limit) >> (p_held_before[v_i] - 1), 1) - p_taken else room end;
            if cardinality(places) < v_most then
                places := places || v_i;
                room := least(room, v_most);
                alone := p_held_before[v_i] > 1 and room = 1 and p_taken = 0;
                continue;
            end if;
        elsif p_taken = 0 and cardinality(places) = 0 then
            places := array[v_i];
            alone := true;
            exit;
        end if;
        passed := passed || v_i;
    end loop;
end
$$;

COMMENT ON FUNCTION gleaner.choose_rows(p_held_before smallint[], p_limit integer, p_taken integer, OUT places integer[], OUT passed integer[], OUT ended integer[], OUT alone boolean, OUT room integer) IS 'Chooses what a claim takes of rows that it found, where some had a holder before.';

CREATE TABLE public.activities (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    type text DEFAULT 'other'::text NOT NULL,
    direction text DEFAULT 'inbound'::text,
    sales_id bigint,
    contact_id bigint,
    processing_status text DEFAULT 'raw'::text NOT NULL,
    raw_data jsonb,
    processed_data jsonb,
    metadata jsonb DEFAULT '{}'::jsonb,
    locked_by uuid,
    locked_at timestamp with time zone,
    provider_id uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    progress jsonb,
    external_id text,
    sender_kind text,
    sender_address text,
    due_at timestamp with time zone DEFAULT now(),
    open_at timestamp with time zone,
    lease bigint DEFAULT 0 NOT NULL,
    deadline_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    lost integer DEFAULT 0 NOT NULL,
    started smallint DEFAULT 0 NOT NULL,
    agent text,
    session text,
    CONSTRAINT activities_direction_check CHECK ((direction = ANY (ARRAY['inbound'::text, 'outbound'::text]))),
    CONSTRAINT activities_processing_status_check CHECK ((processing_status = ANY (ARRAY['raw'::text, 'processing'::text, 'completed'::text, 'failed'::text, 'cancelled'::text]))),
    CONSTRAINT activities_type_check CHECK ((type = ANY (ARRAY['email'::text, 'call'::text, 'sms'::text, 'meeting'::text, 'note'::text, 'task'::text, 'whatsapp'::text, 'other'::text])))
);

COMMENT ON TABLE public.activities IS 'Unified event store and work queue: raw, processing, completed, failed, cancelled.';

COMMENT ON COLUMN public.activities.sales_id IS 'Owner; null when the work belongs to nobody (global).';

COMMENT ON COLUMN public.activities.contact_id IS 'The person on the other end; null while unmatched.';

COMMENT ON COLUMN public.activities.raw_data IS '{source_type: url | text, content, subject, sender, format}';

COMMENT ON COLUMN public.activities.processed_data IS '{transcript, summary, facts}; also holds early results while work goes on.';

COMMENT ON COLUMN public.activities.metadata IS 'What the provider said (from, to, call_sid, …), error, recovery_count.';

COMMENT ON COLUMN public.activities.locked_by IS 'Signed-in user (auth.users.id) whose agent holds the row.';

COMMENT ON COLUMN public.activities.locked_at IS 'When that agent took it.';

COMMENT ON COLUMN public.activities.progress IS '{stage, percent, at}: how far the work has come.';

COMMENT ON COLUMN public.activities.external_id IS 'The sender''s own name for this event; the same event delivered again has the same one.';

COMMENT ON COLUMN public.activities.sender_kind IS 'What sender_address is: email, phone or other.';

COMMENT ON COLUMN public.activities.sender_address IS 'Who is on the other end, in the form contacts are compared in.';

CREATE FUNCTION gleaner.claim_activities(p_agent text, p_limit integer DEFAULT 1, p_owner bigint DEFAULT NULL::bigint, p_classes text[] DEFAULT '{own,global,stale}'::text[], p_kinds text[] DEFAULT NULL::text[], p_request uuid DEFAULT NULL::uuid, p_started boolean DEFAULT false, p_hold interval DEFAULT NULL::interval, p_early interval DEFAULT '00:00:00'::interval, p_holder text DEFAULT NULL::text) RETURNS SETOF public.activities
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now         timestamptz := clock_timestamp();
    v_session     text := gleaner.begin_claim('activities', p_agent);
    v_by          timestamptz := v_now + case when p_early <= interval '0' or gleaner.is_trusted() then p_early else interval '0' end;
    v_lease       bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_left        integer := least(coalesce(p_limit, 1), 10000);
    v_asked       integer; v_seen integer; v_count integer; v_total integer := 0; v_tries integer := 0; v_alone boolean := false;
    v_key         uuid; v_keys uuid[]; v_held_before smallint[]; v_passed uuid[] := '{}'; v_taken uuid[] := '{}'; v_found record; v_chosen record;
    v_plain       double precision := coalesce(nullif(current_setting('gleaner.plain_activities', true), ''), '0');
    v_kinds       text[];
    v_class       text; v_refused boolean := false;
    v_holder      uuid;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    if p_request is not null and gleaner.is_repeated('activities', p_request) then
        return query execute 'select * from gleaner.repeat_activities($1, $2)' using p_request, v_session; return;
    end if;
    if current_setting('request.jwt.claims', true) <> '' then
        p_kinds := gleaner.scoped_kinds('activities', p_kinds);
    end if;
    if p_kinds is not null then
        v_kinds := array(select distinct k from unnest(p_kinds) as k);
    end if;
    p_owner := gleaner.own_activities(p_owner);
    if p_holder is not null and not gleaner.is_trusted() then
        raise exception 'a signed-in caller claims in its own name' using errcode = '42501', hint = 'Leave p_holder out, or use the service key.';
    end if;
    v_holder := coalesce(p_holder::uuid, gleaner.caller_uid());
    if v_holder is null and p_owner is not null then
        select o.user_id into v_holder from public.sales as o where o.id = p_owner;
    end if;
    if abs(v_plain) < extract(epoch from v_now) then
        v_plain := gleaner.check_plain('gleaner.plain_activities', v_now, 'public.activities', array['due_at', 'open_at', 'lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'processing_status', 'metadata', 'locked_by', 'locked_at'], 'processing_status');
    end if;
    foreach v_class in array '{own,global,stale,overdue}'::text[] loop
    continue when v_class = 'own' and p_owner is null;
    continue when case v_class when 'overdue' then 'stale' else v_class end <> all (p_classes) or v_class = 'overdue' and v_total > 0 and not v_refused;
    if p_limit = 1 and v_left = 1 and v_plain > 0 and v_class in ('own', 'global') and coalesce(current_setting('gleaner.cursor_activities_' || v_class, true), '') = '' then
        -- One row, the usual claim. What is not found so, such as a row that had a holder, is looked for below.
        v_key := case v_class when 'own' then gleaner.take_first_own_activities(v_by, p_owner, v_kinds, p_agent, v_session, v_now, p_hold, p_started, v_holder) else gleaner.take_first_global_activities(v_by, v_kinds, p_agent, v_session, v_now, p_hold, p_started, v_holder) end;
        return query select q.* from public.activities as q where q.id = v_key;
        if found then v_left := 0; v_total := 1; v_taken := array[v_key]; end if;
    end if;
    while v_left > 0 and not v_alone and v_tries < 100 loop
        exit when exists (select from gleaner.pause as p where p.queue = 'activities');
        v_asked := case when v_plain <= 0 and v_tries % 25 > 0 then greatest(v_left, 100) else v_left end;
        case v_class
        when 'own' then
            v_found := gleaner.find_own_activities(v_asked, v_now, v_by, v_passed, p_owner, v_kinds);
        when 'global' then
            v_found := gleaner.find_global_activities(v_asked, v_now, v_by, v_passed, v_kinds);
        when 'stale' then
            v_found := gleaner.find_stale_activities(v_asked, v_now, v_by, v_passed, case when 'own' = any (p_classes) then p_owner end, v_kinds);
        else
            v_found := gleaner.find_overdue_activities(v_asked, v_now, v_by, v_passed, case when 'own' = any (p_classes) then p_owner end, v_kinds);
        end case;
        v_keys := v_found.keys; v_held_before := v_found.held_before; v_seen := v_found.seen;
        -- Rows that the owners of today do not share, by stamps of another policy.
        v_refused := v_class = 'stale' and cardinality(v_keys) < v_seen;
        exit when cardinality(v_keys) = 0;
        if 0 <> any (v_held_before) then
            v_tries := v_tries + 25;
            v_chosen := gleaner.choose_rows(v_held_before, v_left, v_total);
            perform gleaner.lose_activities(q) from unnest(v_chosen.ended) as p join public.activities as q on q.id = any (array[v_keys[p]]);
            v_passed := v_passed || array(select v_keys[p] from unnest(v_chosen.passed) as p);
            v_keys := array(select v_keys[p] from unnest(v_chosen.places) as p);
            v_alone := v_chosen.alone; v_left := v_chosen.room;
            -- What was found and not chosen must be found again.
            if cardinality(v_keys) < v_seen then perform set_config('gleaner.cursor_activities_' || case v_class when 'stale' then 'open' else v_class end, '', false); end if;
        end if;
        if v_plain > 0 then
            return query
            update public.activities as q
            set processing_status = 'processing',
                due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end)), deadline_at = v_now + (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end),
                open_at = case when q.open_at is null then null else greatest(q.open_at, v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end))) end,
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end),
                metadata = case when (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end) = 1 then jsonb_set(coalesce(q.metadata, '{}'), '{recovery_count}', to_jsonb(q.lost + 1)) else q.metadata end,
                started = case when p_started or v_alone then 1 when q.processing_status in ('processing') and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session,
                locked_by = v_holder,
                locked_at = v_now
            from unnest(v_keys) as k (id) where q.id = any (array[k.id])
            returning q.*;
        else
            -- By `execute`: a plan that was kept would not notice that the table got another column.
            return query execute 'select * from gleaner.take_each_activities($1, $2, $3, $4, $5, $6, $7, $8)'
            using v_keys, v_left, p_agent, v_session, v_now, p_hold, p_started or v_alone, v_holder, null::text, null::text;
        end if;
        get diagnostics v_count = row_count;
        v_alone := v_alone and v_count > 0; v_tries := v_tries + (v_count < least(v_seen, v_left))::integer;
        v_total := v_total + v_count; v_left := v_left - v_count; v_taken := v_taken || v_keys;
        exit when v_seen < v_asked or v_refused;
    end loop;
    end loop;
    if p_request is not null and v_total > 0 then perform gleaner.remember_activities(p_request, v_taken, v_lease, v_session); end if;
end
$_$;

ALTER FUNCTION gleaner.claim_activities(p_agent text, p_limit integer, p_owner bigint, p_classes text[], p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.claim_activities(p_agent text, p_limit integer, p_owner bigint, p_classes text[], p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) IS 'Takes up to p_limit rows for p_agent: its owner''s own first, then those without an owner, then what other owners left
waiting longer than they allow, in order of due time, then key.
Changes  status to ''processing'', a new lease, due_at to the end of the hold; counts a lost lease, and ends rows that lost too many.
Races    skip locked: no row is handed out twice and no caller waits for another.
Returns  the rows as they now stand, lease included; none when nothing is due. A short answer is no proof of emptiness.
Agent    null: the caller is known by its sign-in alone and ends the work by plain updates.
Early    trusted callers also get rows that wait and come due within p_early; below zero: only what has been due for so long.
Repeats  with the same p_request the same rows come back, for as long as their leases stand.';

CREATE TABLE public.agent_processing_queue (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    dump_id uuid NOT NULL,
    basket_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    processing_state public.processing_state DEFAULT 'pending'::public.processing_state,
    claimed_at timestamp with time zone,
    claimed_by text,
    completed_at timestamp with time zone,
    attempts integer DEFAULT 0,
    error_message text,
    created_at timestamp with time zone DEFAULT now(),
    progress jsonb,
    result jsonb,
    due_at timestamp with time zone DEFAULT now(),
    lease bigint DEFAULT 0 NOT NULL,
    deadline_at timestamp with time zone,
    lost integer DEFAULT 0 NOT NULL,
    started smallint DEFAULT 0 NOT NULL,
    agent text,
    session text
);

COMMENT ON TABLE public.agent_processing_queue IS 'Work queue of dumps: pending, claimed, processing, completed, failed, cancelled.';

COMMENT ON COLUMN public.agent_processing_queue.attempts IS 'Failures so far; a claim that is given back does not count.';

COMMENT ON COLUMN public.agent_processing_queue.progress IS '{stage, percent, at}: how far the work has come.';

COMMENT ON COLUMN public.agent_processing_queue.result IS 'Early results while work goes on, then the final ones.';

CREATE FUNCTION gleaner.claim_dumps(p_agent text, p_limit integer DEFAULT 1, p_request uuid DEFAULT NULL::uuid, p_started boolean DEFAULT false, p_hold interval DEFAULT NULL::interval, p_early interval DEFAULT '00:00:00'::interval, p_holder text DEFAULT NULL::text) RETURNS SETOF public.agent_processing_queue
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now         timestamptz := clock_timestamp();
    v_session     text := gleaner.begin_claim('dumps', p_agent);
    v_by          timestamptz := v_now + case when p_early <= interval '0' or gleaner.is_trusted() then p_early else interval '0' end;
    v_lease       bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_left        integer := least(coalesce(p_limit, 1), 10000);
    v_asked       integer; v_seen integer; v_count integer; v_total integer := 0; v_tries integer := 0; v_alone boolean := false;
    v_key         uuid; v_keys uuid[]; v_held_before smallint[]; v_passed uuid[] := '{}'; v_taken uuid[] := '{}'; v_found record; v_chosen record;
    v_plain       double precision := coalesce(nullif(current_setting('gleaner.plain_dumps', true), ''), '0');
    v_holder      text;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    if p_request is not null and gleaner.is_repeated('dumps', p_request) then
        return query execute 'select * from gleaner.repeat_dumps($1, $2)' using p_request, v_session; return;
    end if;
    if p_holder is not null and not gleaner.is_trusted() then
        raise exception 'a signed-in caller claims in its own name' using errcode = '42501', hint = 'Leave p_holder out, or use the service key.';
    end if;
    v_holder := coalesce(p_holder, p_agent);
    if abs(v_plain) < extract(epoch from v_now) then
        v_plain := gleaner.check_plain('gleaner.plain_dumps', v_now, 'public.agent_processing_queue', array['due_at', 'lease', 'deadline_at', 'lost', 'started', 'agent', 'session', 'processing_state', 'claimed_by', 'claimed_at'], 'processing_state');
    end if;
    if p_limit = 1 and v_left = 1 and v_plain > 0 and coalesce(current_setting('gleaner.cursor_dumps', true), '') = '' then
        -- One row, the usual claim. What is not found so, such as a row that had a holder, is looked for below.
        v_key := gleaner.take_first_dumps(v_by, p_agent, v_session, v_now, p_hold, p_started, v_holder);
        return query select q.* from public.agent_processing_queue as q where q.id = v_key;
        if found then v_left := 0; v_total := 1; v_taken := array[v_key]; end if;
    end if;
    while v_left > 0 and not v_alone and v_tries < 100 loop
        exit when exists (select from gleaner.pause as p where p.queue = 'dumps');
        v_asked := case when v_plain <= 0 and v_tries % 25 > 0 then greatest(v_left, 100) else v_left end;
        v_found := gleaner.find_dumps(v_asked, v_now, v_by, v_passed);
        v_keys := v_found.keys; v_held_before := v_found.held_before; v_seen := v_found.seen;
        exit when cardinality(v_keys) = 0;
        if 0 <> any (v_held_before) then
            v_tries := v_tries + 25;
            v_chosen := gleaner.choose_rows(v_held_before, v_left, v_total);
            perform gleaner.lose_dumps(q) from unnest(v_chosen.ended) as p join public.agent_processing_queue as q on q.id = any (array[v_keys[p]]);
            v_passed := v_passed || array(select v_keys[p] from unnest(v_chosen.passed) as p);
            v_keys := array(select v_keys[p] from unnest(v_chosen.places) as p);
            v_alone := v_chosen.alone; v_left := v_chosen.room;
            -- What was found and not chosen must be found again.
            if cardinality(v_keys) < v_seen then perform set_config('gleaner.cursor_dumps', '', false); end if;
        end if;
        if v_plain > 0 then
            return query
            update public.agent_processing_queue as q
            set processing_state = 'claimed'::public.processing_state,
                due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '30 minutes'), deadline_at = v_now + interval '30 minutes',
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and q.started >= 1 then 1 else 0 end),
                started = case when p_started or v_alone then 1 when q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session,
                claimed_by = v_holder,
                claimed_at = v_now
            from unnest(v_keys) as k (id) where q.id = any (array[k.id])
            returning q.*;
        else
            -- By `execute`: a plan that was kept would not notice that the table got another column.
            return query execute 'select * from gleaner.take_each_dumps($1, $2, $3, $4, $5, $6, $7, $8)'
            using v_keys, v_left, p_agent, v_session, v_now, p_hold, p_started or v_alone, v_holder, null::text, null::text;
        end if;
        get diagnostics v_count = row_count;
        v_alone := v_alone and v_count > 0; v_tries := v_tries + (v_count < least(v_seen, v_left))::integer;
        v_total := v_total + v_count; v_left := v_left - v_count; v_taken := v_taken || v_keys;
        exit when v_seen < v_asked;
    end loop;
    if p_request is not null and v_total > 0 then perform gleaner.remember_dumps(p_request, v_taken, v_lease, v_session); end if;
end
$_$;

ALTER FUNCTION gleaner.claim_dumps(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.claim_dumps(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) IS 'Takes up to p_limit rows for p_agent, in order of due time, then key.
Changes  status to ''claimed''::public.processing_state, a new lease, due_at to the end of the hold; counts a lost lease, and ends rows that lost too many.
Races    skip locked: no row is handed out twice and no caller waits for another.
Returns  the rows as they now stand, lease included; none when nothing is due. A short answer is no proof of emptiness.
Agent    null: the caller is known by its sign-in alone and ends the work by plain updates.
Early    trusted callers also get rows that wait and come due within p_early; below zero: only what has been due for so long.
Repeats  with the same p_request the same rows come back, for as long as their leases stand.';

CREATE TABLE public.scheduled_actions (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    prospect_id character varying(255) NOT NULL,
    action_type text DEFAULT 'follow_up'::text NOT NULL,
    scheduled_for timestamp with time zone NOT NULL,
    status character varying(20) DEFAULT 'pending'::character varying NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    started_processing_at timestamp with time zone,
    executed_at timestamp with time zone,
    finished_at timestamp with time zone,
    cancelled_reason text,
    error_message text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    contact_id bigint,
    result jsonb,
    message jsonb,
    idempotency_key uuid,
    sending_at timestamp with time zone,
    sending_lease bigint,
    armed_at timestamp with time zone DEFAULT now() NOT NULL,
    deferred_reason text,
    approved_at timestamp with time zone,
    schedule_id uuid,
    occurrence timestamp with time zone,
    due_at timestamp with time zone DEFAULT now(),
    lease bigint DEFAULT 0 NOT NULL,
    deadline_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    lost integer DEFAULT 0 NOT NULL,
    started smallint DEFAULT 0 NOT NULL,
    agent text,
    session text,
    CONSTRAINT scheduled_actions_status_check CHECK (((status)::text = ANY ((ARRAY['pending'::character varying, 'processing'::character varying, 'executed'::character varying, 'cancelled'::character varying, 'failed'::character varying])::text[])))
);

COMMENT ON TABLE public.scheduled_actions IS 'Work queue of follow-ups: pending, processing, executed, cancelled, failed.';

COMMENT ON COLUMN public.scheduled_actions.prospect_id IS 'Whom it is for; a reply from that person calls it off.';

COMMENT ON COLUMN public.scheduled_actions.scheduled_for IS 'When it is meant to happen.';

COMMENT ON COLUMN public.scheduled_actions.started_processing_at IS 'When a worker took it.';

COMMENT ON COLUMN public.scheduled_actions.executed_at IS 'When it was done; null for what was called off or given up.';

COMMENT ON COLUMN public.scheduled_actions.finished_at IS 'When it ended, in whatever way.';

COMMENT ON COLUMN public.scheduled_actions.contact_id IS 'The contact, where prospect_id names one.';

COMMENT ON COLUMN public.scheduled_actions.result IS 'What the sink answered: sink, to, message_id, receipts.';

COMMENT ON COLUMN public.scheduled_actions.message IS 'What is sent, as it was stored before the first try: {sink, to, subject, text}.';

COMMENT ON COLUMN public.scheduled_actions.idempotency_key IS 'The key each try carries; null until the first.';

COMMENT ON COLUMN public.scheduled_actions.sending_at IS 'When the latest try began to send.';

COMMENT ON COLUMN public.scheduled_actions.sending_lease IS 'The lease under which it did: while it is the row''s lease, the message may be on its way.';

COMMENT ON COLUMN public.scheduled_actions.armed_at IS 'A reply after this time calls it off; a requeue moves it.';

COMMENT ON COLUMN public.scheduled_actions.deferred_reason IS 'Why it waits beyond scheduled_for: quiet hours, the daily limit, approval.';

COMMENT ON COLUMN public.scheduled_actions.approved_at IS 'When a person approved it.';

COMMENT ON COLUMN public.scheduled_actions.schedule_id IS 'The schedule that this is an occurrence of; null for a follow-up of its own.';

COMMENT ON COLUMN public.scheduled_actions.occurrence IS 'Which occurrence; scheduled_for may be moved, this is not.';

CREATE FUNCTION gleaner.claim_followups(p_agent text, p_limit integer DEFAULT 1, p_kinds text[] DEFAULT NULL::text[], p_request uuid DEFAULT NULL::uuid, p_started boolean DEFAULT false, p_hold interval DEFAULT NULL::interval, p_early interval DEFAULT '00:00:00'::interval) RETURNS SETOF public.scheduled_actions
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now         timestamptz := clock_timestamp();
    v_session     text := gleaner.begin_claim('followups', p_agent);
    v_by          timestamptz := v_now + case when p_early <= interval '0' or gleaner.is_trusted() then p_early else interval '0' end;
    v_lease       bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_left        integer := least(coalesce(p_limit, 1), 10000);
    v_asked       integer; v_seen integer; v_count integer; v_total integer := 0; v_tries integer := 0; v_alone boolean := false;
    v_key         uuid; v_keys uuid[]; v_held_before smallint[]; v_passed uuid[] := '{}'; v_taken uuid[] := '{}'; v_found record; v_chosen record;
    v_plain       double precision := coalesce(nullif(current_setting('gleaner.plain_followups', true), ''), '0');
    v_kinds       text[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    if p_request is not null and gleaner.is_repeated('followups', p_request) then
        return query execute 'select * from gleaner.repeat_followups($1, $2)' using p_request, v_session; return;
    end if;
    if current_setting('request.jwt.claims', true) <> '' then
        p_kinds := gleaner.scoped_kinds('followups', p_kinds);
    end if;
    if p_kinds is not null then
        v_kinds := array(select distinct k from unnest(p_kinds) as k);
    end if;
    if abs(v_plain) < extract(epoch from v_now) then
        v_plain := gleaner.check_plain('gleaner.plain_followups', v_now, 'public.scheduled_actions', array['due_at', 'lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'status', 'started_processing_at'], 'status');
    end if;
    if p_limit = 1 and v_left = 1 and v_plain > 0 and coalesce(current_setting('gleaner.cursor_followups', true), '') = '' then
        -- One row, the usual claim. What is not found so, such as a row that had a holder, is looked for below.
        v_key := gleaner.take_first_followups(v_by, v_kinds, p_agent, v_session, v_now, p_hold, p_started);
        return query select q.* from public.scheduled_actions as q where q.id = v_key;
        if found then v_left := 0; v_total := 1; v_taken := array[v_key]; end if;
    end if;
    while v_left > 0 and not v_alone and v_tries < 100 loop
        exit when exists (select from gleaner.pause as p where p.queue = 'followups');
        v_asked := case when v_plain <= 0 and v_tries % 25 > 0 then greatest(v_left, 100) else v_left end;
        v_found := gleaner.find_followups(v_asked, v_now, v_by, v_passed, v_kinds);
        v_keys := v_found.keys; v_held_before := v_found.held_before; v_seen := v_found.seen;
        exit when cardinality(v_keys) = 0;
        if 0 <> any (v_held_before) then
            v_tries := v_tries + 25;
            v_chosen := gleaner.choose_rows(v_held_before, v_left, v_total);
            perform gleaner.lose_followups(q) from unnest(v_chosen.ended) as p join public.scheduled_actions as q on q.id = any (array[v_keys[p]]);
            v_passed := v_passed || array(select v_keys[p] from unnest(v_chosen.passed) as p);
            v_keys := array(select v_keys[p] from unnest(v_chosen.places) as p);
            v_alone := v_chosen.alone; v_left := v_chosen.room;
            -- What was found and not chosen must be found again.
            if cardinality(v_keys) < v_seen then perform set_config('gleaner.cursor_followups', '', false); end if;
        end if;
        if v_plain > 0 then
            return query
            update public.scheduled_actions as q
            set status = 'processing',
                due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '15 minutes'), deadline_at = v_now + interval '15 minutes',
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.status in ('processing') and q.started >= 1 then 1 else 0 end),
                started = case when p_started or v_alone then 1 when q.status in ('processing') and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session,
                started_processing_at = v_now
            from unnest(v_keys) as k (id) where q.id = any (array[k.id])
            returning q.*;
        else
            -- By `execute`: a plan that was kept would not notice that the table got another column.
            return query execute 'select * from gleaner.take_each_followups($1, $2, $3, $4, $5, $6, $7)'
            using v_keys, v_left, p_agent, v_session, v_now, p_hold, p_started or v_alone, null::text, null::text, null::text;
        end if;
        get diagnostics v_count = row_count;
        v_alone := v_alone and v_count > 0; v_tries := v_tries + (v_count < least(v_seen, v_left))::integer;
        v_total := v_total + v_count; v_left := v_left - v_count; v_taken := v_taken || v_keys;
        exit when v_seen < v_asked;
    end loop;
    if p_request is not null and v_total > 0 then perform gleaner.remember_followups(p_request, v_taken, v_lease, v_session); end if;
end
$_$;

ALTER FUNCTION gleaner.claim_followups(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.claim_followups(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval) IS 'Takes up to p_limit rows for p_agent, in order of due time, then key.
Changes  status to ''processing'', a new lease, due_at to the end of the hold; counts a lost lease, and ends rows that lost too many.
Races    skip locked: no row is handed out twice and no caller waits for another.
Returns  the rows as they now stand, lease included; none when nothing is due. A short answer is no proof of emptiness.
Agent    null: the caller is known by its sign-in alone and ends the work by plain updates.
Early    trusted callers also get rows that wait and come due within p_early; below zero: only what has been due for so long.
Repeats  with the same p_request the same rows come back, for as long as their leases stand.';

CREATE FUNCTION gleaner.claim_jobs(p_agent text, p_limit integer DEFAULT 1, p_kinds text[] DEFAULT NULL::text[], p_request uuid DEFAULT NULL::uuid, p_started boolean DEFAULT false, p_hold interval DEFAULT NULL::interval, p_early interval DEFAULT '00:00:00'::interval) RETURNS SETOF gleaner.jobs
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now         timestamptz := clock_timestamp();
    v_session     text := gleaner.begin_claim('jobs', p_agent);
    v_by          timestamptz := v_now + case when p_early <= interval '0' or gleaner.is_trusted() then p_early else interval '0' end;
    v_lease       bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_left        integer := least(coalesce(p_limit, 1), 10000);
    v_asked       integer; v_seen integer; v_count integer; v_total integer := 0; v_tries integer := 0; v_alone boolean := false;
    v_many        boolean := v_left >= 64 and gleaner.in_shape_jobs();
    v_batches     int8multirange := '{}'; v_look record;
    v_range       gleaner.bulk_range; v_locked gleaner.bulk_range; v_elsewhere bigint[] := '{}';
    v_key         bigint; v_keys bigint[]; v_held_before smallint[]; v_fresh boolean[]; v_passed bigint[] := '{}'; v_taken bigint[] := '{}'; v_found record; v_chosen record;
    v_plain       double precision := coalesce(nullif(current_setting('gleaner.plain_jobs', true), ''), '0');
    v_kinds       text[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    if p_request is not null and gleaner.is_repeated('jobs', p_request) then
        return query execute 'select * from gleaner.repeat_jobs($1, $2)' using p_request, v_session; return;
    end if;
    if current_setting('request.jwt.claims', true) <> '' then
        p_kinds := gleaner.scoped_kinds('jobs', p_kinds);
    end if;
    if p_kinds is not null then
        v_kinds := array(select distinct k from unnest(p_kinds) as k);
    end if;
    if abs(v_plain) < extract(epoch from v_now) then
        v_plain := gleaner.check_plain('gleaner.plain_jobs', v_now, 'gleaner.jobs', array['due_at', 'lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'status'], 'status');
    end if;
    if p_limit = 1 and v_plain > 0 and coalesce(current_setting('gleaner.cursor_jobs', true), '') = '' then
        -- One row, the usual claim. What is not found so, such as a row that had a holder, is looked for below.
        v_key := gleaner.take_first_jobs(v_by, v_kinds, p_agent, v_session, v_now, p_hold, p_started);
        return query select q.* from gleaner.jobs as q where q.id = v_key;
        if found then v_left := 0; v_total := 1; v_taken := array[v_key]; end if;
    end if;
    while v_left > 0 and not v_alone and v_tries < 100 loop
        exit when exists (select from gleaner.pause as p where p.queue = 'jobs');
        v_asked := case when v_plain <= 0 and v_tries % 25 > 0 then greatest(v_left, 100) else v_left end;
        v_range := gleaner.find_range_jobs(v_kinds::text[], v_now, v_by, v_elsewhere);
        v_found := gleaner.find_jobs(v_asked, v_now, v_by, v_passed, v_kinds, v_batches, v_range);
        v_keys := v_found.keys; v_held_before := v_found.held_before; v_fresh := v_found.fresh; v_seen := v_found.seen;
        -- After the lock: rows that are locked now cannot be put in a batch by others any more, so this look is the last word.
        v_look := gleaner.look_at_batches('jobs', v_now); v_batches := v_look.keys;
        if v_look.ran_out then
            perform gleaner.unbatch_jobs(null, array(
                select b.id from gleaner.batch_lease as b where b.queue = 'jobs' and b.due_at <= v_now for update skip locked));
            perform set_config('gleaner.cursor_jobs', '', false);
            v_tries := v_tries + 25; continue;
        end if;
        if v_seen > 0 and true = any (v_fresh) and exists (select from unnest(v_keys, v_fresh) as k (id, fresh) where k.fresh and v_batches @> k.id) then
            perform set_config('gleaner.cursor_jobs', '', false);
            v_tries := v_tries + 1; continue;
        end if;
        if v_seen = 0 then
            exit when v_range.first is null;
            select r.* into v_locked from gleaner.bulk_range as r
            where r.queue = 'jobs' and r.kind = v_range.kind and r.class = v_range.class and r.due_at = v_range.due_at and r.first = v_range.first
            for update skip locked;
            if not found then
                v_elsewhere := v_elsewhere || v_range.first;
            elsif not v_many then
                v_elsewhere := v_elsewhere || gleaner.unpack_range_jobs(v_locked, v_locked.first + 127);
                perform set_config('gleaner.cursor_jobs', '', false);
            else
                return query select * from gleaner.hold_range_jobs(v_locked, v_left, p_agent, v_session, v_now, p_hold, p_started);
                get diagnostics v_count = row_count;
                if p_request is not null then
                    v_taken := v_taken || array(
                        select q.id from gleaner.jobs as q
                        where q.id between v_locked.first and least(v_locked.last, v_locked.first + v_left - 1) and q.lease = -1 and q.status = 'ready'
                        order by q.id);
                end if;
                v_total := v_total + v_count; v_left := v_left - v_count;
            end if;
            continue;
        end if;
        if 0 <> any (v_held_before) then
            v_tries := v_tries + 25;
            v_chosen := gleaner.choose_rows(v_held_before, v_left, v_total);
            perform gleaner.lose_jobs(q) from unnest(v_chosen.ended) as p join gleaner.jobs as q on q.id = any (array[v_keys[p]]);
            v_passed := v_passed || array(select v_keys[p] from unnest(v_chosen.passed) as p);
            v_fresh := array(select v_fresh[p] from unnest(v_chosen.places) as p);
            v_keys := array(select v_keys[p] from unnest(v_chosen.places) as p);
            v_alone := v_chosen.alone; v_left := v_chosen.room;
            -- What was found and not chosen must be found again.
            if cardinality(v_keys) < v_seen then perform set_config('gleaner.cursor_jobs', '', false); end if;
        end if;
        if v_many and cardinality(v_keys) >= 64 and true = all (v_fresh) then
            return query select * from gleaner.hold_batch_jobs(v_keys, p_agent, v_session, v_now, p_hold, p_started);
        elsif v_many and v_plain > 0 and not v_alone and cardinality(array_positions(v_fresh, true)) >= 64 then
            return query select * from gleaner.hold_mixed_jobs(v_keys, v_fresh, p_agent, v_session, v_now, p_hold, p_started);
        elsif v_plain > 0 then
            return query
            update gleaner.jobs as q
            set status = 'running',
                due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '1 hour'), deadline_at = v_now + interval '1 hour',
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                started = case when p_started or v_alone then 1 when q.status in ('running') and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session
            from unnest(v_keys) as k (id) where q.id = any (array[k.id])
            returning q.*;
        else
            -- By `execute`: a plan that was kept would not notice that the table got another column.
            return query execute 'select * from gleaner.take_each_jobs($1, $2, $3, $4, $5, $6, $7)'
            using v_keys, v_left, p_agent, v_session, v_now, p_hold, p_started or v_alone;
        end if;
        get diagnostics v_count = row_count;
        v_alone := v_alone and v_count > 0; v_tries := v_tries + (v_count < least(v_seen, v_left))::integer;
        v_total := v_total + v_count; v_left := v_left - v_count; v_taken := v_taken || v_keys;
        exit when v_seen < v_asked and v_range.first is null;
    end loop;
    if p_request is not null and v_total > 0 then perform gleaner.remember_jobs(p_request, v_taken, v_session, v_now); end if;
end
$_$;

ALTER FUNCTION gleaner.claim_jobs(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.claim_jobs(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval) IS 'Takes up to p_limit rows for p_agent, in order of due time, then key; urgent classes have a head start.

Changes  status to ''running'', a new lease, due_at to the end of the hold; counts a lost lease, and ends rows that lost too many.
Batch    64 rows and more that no act has written yet are not changed at all: one record holds them together, and their lease
         is its id, negated. They are returned as if each had been claimed alone.
Range    rows that were enqueued together wait as one record, too: its head is held as it is, or, for fewer rows, unpacked.
Races    skip locked: no row is handed out twice and no caller waits for another.
Returns  the rows as they now stand, lease included; none when nothing is due. A short answer is no proof of emptiness.
Agent    null: the caller is known by its sign-in alone.
Early    trusted callers also get rows that wait and come due within p_early; below zero: only what has been due for so long.
Repeats  with the same p_request the same rows come back, for as long as their leases stand.';

CREATE TABLE gleaner.polls (
    provider_id uuid NOT NULL,
    status text DEFAULT 'ready'::text NOT NULL,
    wanted_at timestamp with time zone DEFAULT now() NOT NULL,
    history_id text,
    mailbox text,
    look_began_at timestamp with time zone,
    last_look_at timestamp with time zone,
    last_sync_at timestamp with time zone,
    last_stored integer DEFAULT 0 NOT NULL,
    watch_expires_at timestamp with time zone,
    last_error text,
    failures integer DEFAULT 0 NOT NULL,
    refused_grant text,
    due_at timestamp with time zone DEFAULT now(),
    lease bigint DEFAULT 0 NOT NULL,
    deadline_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    lost integer DEFAULT 0 NOT NULL,
    started smallint DEFAULT 0 NOT NULL,
    agent text,
    session text,
    CONSTRAINT polls_status_known CHECK ((status = ANY (ARRAY['ready'::text, 'running'::text, 'done'::text, 'failed'::text])))
);

COMMENT ON TABLE gleaner.polls IS 'Mailboxes that are fetched from: how far each was read, and when it is read next.';

COMMENT ON COLUMN gleaner.polls.wanted_at IS 'When somebody last asked for a look; a waiting row is due then, a running one is looked at again.';

COMMENT ON COLUMN gleaner.polls.history_id IS 'Everything up to this point of the mailbox''s history is stored; null before the first look.';

COMMENT ON COLUMN gleaner.polls.mailbox IS 'Address of the mailbox, as the provider names it.';

COMMENT ON COLUMN gleaner.polls.look_began_at IS 'When the latest look began.';

COMMENT ON COLUMN gleaner.polls.last_look_at IS 'When a look last ended, well or not.';

COMMENT ON COLUMN gleaner.polls.last_sync_at IS 'When the mailbox was last read to its end.';

COMMENT ON COLUMN gleaner.polls.last_stored IS 'How many messages that look brought.';

COMMENT ON COLUMN gleaner.polls.watch_expires_at IS 'Until when the provider sends hints by push; null without.';

COMMENT ON COLUMN gleaner.polls.last_error IS 'Why the last look failed; null when it did not.';

COMMENT ON COLUMN gleaner.polls.failures IS 'Failed looks in a row; the wait grows with them.';

COMMENT ON COLUMN gleaner.polls.refused_grant IS 'Hash of the grant that the provider has refused for good: no call is made with it again.';

CREATE FUNCTION gleaner.claim_polls(p_agent text, p_limit integer DEFAULT 1, p_request uuid DEFAULT NULL::uuid, p_started boolean DEFAULT false, p_hold interval DEFAULT NULL::interval, p_early interval DEFAULT '00:00:00'::interval) RETURNS SETOF gleaner.polls
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now         timestamptz := clock_timestamp();
    v_session     text := gleaner.begin_claim('polls', p_agent);
    v_by          timestamptz := v_now + case when p_early <= interval '0' or gleaner.is_trusted() then p_early else interval '0' end;
    v_lease       bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_left        integer := least(coalesce(p_limit, 1), 10000);
    v_asked       integer; v_seen integer; v_count integer; v_total integer := 0; v_tries integer := 0; v_alone boolean := false;
    v_key         uuid; v_keys uuid[]; v_held_before smallint[]; v_passed uuid[] := '{}'; v_taken uuid[] := '{}'; v_found record; v_chosen record;
    v_plain       double precision := coalesce(nullif(current_setting('gleaner.plain_polls', true), ''), '0');
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    if p_request is not null and gleaner.is_repeated('polls', p_request) then
        return query execute 'select * from gleaner.repeat_polls($1, $2)' using p_request, v_session; return;
    end if;
    if abs(v_plain) < extract(epoch from v_now) then
        v_plain := gleaner.check_plain('gleaner.plain_polls', v_now, 'gleaner.polls', array['due_at', 'lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'status'], 'status');
    end if;
    if p_limit = 1 and v_left = 1 and v_plain > 0 and coalesce(current_setting('gleaner.cursor_polls', true), '') = '' then
        -- One row, the usual claim. What is not found so, such as a row that had a holder, is looked for below.
        v_key := gleaner.take_first_polls(v_by, p_agent, v_session, v_now, p_hold, p_started);
        return query select q.* from gleaner.polls as q where q.provider_id = v_key;
        if found then v_left := 0; v_total := 1; v_taken := array[v_key]; end if;
    end if;
    while v_left > 0 and not v_alone and v_tries < 100 loop
        exit when exists (select from gleaner.pause as p where p.queue = 'polls');
        v_asked := case when v_plain <= 0 and v_tries % 25 > 0 then greatest(v_left, 100) else v_left end;
        v_found := gleaner.find_polls(v_asked, v_now, v_by, v_passed);
        v_keys := v_found.keys; v_held_before := v_found.held_before; v_seen := v_found.seen;
        exit when cardinality(v_keys) = 0;
        if 0 <> any (v_held_before) then
            v_tries := v_tries + 25;
            v_chosen := gleaner.choose_rows(v_held_before, v_left, v_total);
            perform gleaner.lose_polls(q) from unnest(v_chosen.ended) as p join gleaner.polls as q on q.provider_id = any (array[v_keys[p]]);
            v_passed := v_passed || array(select v_keys[p] from unnest(v_chosen.passed) as p);
            v_keys := array(select v_keys[p] from unnest(v_chosen.places) as p);
            v_alone := v_chosen.alone; v_left := v_chosen.room;
            -- What was found and not chosen must be found again.
            if cardinality(v_keys) < v_seen then perform set_config('gleaner.cursor_polls', '', false); end if;
        end if;
        if v_plain > 0 then
            return query
            update gleaner.polls as q
            set status = 'running',
                due_at = v_now + least(coalesce(p_hold, interval '2 minutes'), interval '6 hours'), deadline_at = v_now + interval '6 hours',
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                started = case when p_started or v_alone then 1 when q.status in ('running') and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session
            from unnest(v_keys) as k (id) where q.provider_id = any (array[k.id])
            returning q.*;
        else
            -- By `execute`: a plan that was kept would not notice that the table got another column.
            return query execute 'select * from gleaner.take_each_polls($1, $2, $3, $4, $5, $6, $7)'
            using v_keys, v_left, p_agent, v_session, v_now, p_hold, p_started or v_alone, null::text, null::text, null::text;
        end if;
        get diagnostics v_count = row_count;
        v_alone := v_alone and v_count > 0; v_tries := v_tries + (v_count < least(v_seen, v_left))::integer;
        v_total := v_total + v_count; v_left := v_left - v_count; v_taken := v_taken || v_keys;
        exit when v_seen < v_asked;
    end loop;
    if p_request is not null and v_total > 0 then perform gleaner.remember_polls(p_request, v_taken, v_lease, v_session); end if;
end
$_$;

ALTER FUNCTION gleaner.claim_polls(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.claim_polls(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval) IS 'Takes up to p_limit rows for p_agent, in order of due time, then key.
Changes  status to ''running'', a new lease, due_at to the end of the hold; counts a lost lease, and ends rows that lost too many.
Races    skip locked: no row is handed out twice and no caller waits for another.
Returns  the rows as they now stand, lease included; none when nothing is due. A short answer is no proof of emptiness.
Agent    null: the caller is known by its sign-in alone and ends the work by plain updates.
Early    trusted callers also get rows that wait and come due within p_early; below zero: only what has been due for so long.
Repeats  with the same p_request the same rows come back, for as long as their leases stand.';

CREATE TABLE public.execution_jobs (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    status text DEFAULT 'queued'::text NOT NULL,
    recording_id text,
    csv_data text,
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    worker_id text,
    started_at timestamp with time zone,
    completed_at timestamp with time zone,
    result jsonb,
    progress jsonb,
    error text,
    version integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    kind text,
    recording_version_id uuid,
    site text,
    submitted_by uuid,
    begun_lease bigint,
    due_at timestamp with time zone DEFAULT now(),
    lease bigint DEFAULT 0 NOT NULL,
    deadline_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    lost integer DEFAULT 0 NOT NULL,
    started smallint DEFAULT 0 NOT NULL,
    agent text,
    session text,
    CONSTRAINT execution_jobs_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text, 'completed'::text, 'failed'::text, 'cancelled'::text])))
);

COMMENT ON TABLE public.execution_jobs IS 'Work queue of test runs: queued, running, completed, failed, cancelled.';

COMMENT ON COLUMN public.execution_jobs.recording_id IS 'Id of a row in recordings; or whatever your own runner reads.';

COMMENT ON COLUMN public.execution_jobs.worker_id IS 'Who runs it; given by the worker.';

COMMENT ON COLUMN public.execution_jobs.version IS 'Grows with every change of status, so that a claim by version fails when anybody was quicker.';

COMMENT ON COLUMN public.execution_jobs.updated_at IS 'The database''s time of the last change; a claim may compare it like a version.';

COMMENT ON COLUMN public.execution_jobs.kind IS 'browser, or browser:LABEL for machines with that label: replayed by agents that have a browser. Null: run by programs of your own.';

COMMENT ON COLUMN public.execution_jobs.recording_version_id IS 'The version it replays; the newest one at the time it was queued.';

COMMENT ON COLUMN public.execution_jobs.site IS 'Host and port that the run opens first; run_sites limits how many runs may use it at once.';

COMMENT ON COLUMN public.execution_jobs.submitted_by IS 'Who queued it; null for the service key.';

COMMENT ON COLUMN public.execution_jobs.begun_lease IS 'The lease under which an agent began to use the site.';

CREATE FUNCTION gleaner.claim_runs(p_agent text, p_limit integer DEFAULT 1, p_kinds text[] DEFAULT NULL::text[], p_request uuid DEFAULT NULL::uuid, p_started boolean DEFAULT false, p_hold interval DEFAULT NULL::interval, p_early interval DEFAULT '00:00:00'::interval, p_holder text DEFAULT NULL::text) RETURNS SETOF public.execution_jobs
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now         timestamptz := clock_timestamp();
    v_session     text := gleaner.begin_claim('runs', p_agent);
    v_by          timestamptz := v_now + case when p_early <= interval '0' or gleaner.is_trusted() then p_early else interval '0' end;
    v_lease       bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_left        integer := least(coalesce(p_limit, 1), 10000);
    v_asked       integer; v_seen integer; v_count integer; v_total integer := 0; v_tries integer := 0; v_alone boolean := false;
    v_key         uuid; v_keys uuid[]; v_held_before smallint[]; v_passed uuid[] := '{}'; v_taken uuid[] := '{}'; v_found record; v_chosen record;
    v_plain       double precision := coalesce(nullif(current_setting('gleaner.plain_runs', true), ''), '0');
    v_kinds       text[];
    v_holder      text;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    if p_request is not null and gleaner.is_repeated('runs', p_request) then
        return query execute 'select * from gleaner.repeat_runs($1, $2)' using p_request, v_session; return;
    end if;
    if current_setting('request.jwt.claims', true) <> '' then
        p_kinds := gleaner.scoped_kinds('runs', p_kinds);
    end if;
    if p_kinds is not null then
        v_kinds := array(select distinct k from unnest(p_kinds) as k);
    end if;
    if p_holder is not null and not gleaner.is_trusted() then
        raise exception 'a signed-in caller claims in its own name' using errcode = '42501', hint = 'Leave p_holder out, or use the service key.';
    end if;
    v_holder := coalesce(p_holder, p_agent);
    if abs(v_plain) < extract(epoch from v_now) then
        v_plain := gleaner.check_plain('gleaner.plain_runs', v_now, 'public.execution_jobs', array['due_at', 'lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'status', 'worker_id', 'started_at'], 'status');
    end if;
    if p_limit = 1 and v_left = 1 and v_plain > 0 and coalesce(current_setting('gleaner.cursor_runs', true), '') = '' then
        -- One row, the usual claim. What is not found so, such as a row that had a holder, is looked for below.
        v_key := gleaner.take_first_runs(v_by, v_kinds, p_agent, v_session, v_now, p_hold, p_started, v_holder);
        return query select q.* from public.execution_jobs as q where q.id = v_key;
        if found then v_left := 0; v_total := 1; v_taken := array[v_key]; end if;
    end if;
    while v_left > 0 and not v_alone and v_tries < 100 loop
        exit when exists (select from gleaner.pause as p where p.queue = 'runs');
        v_asked := case when v_plain <= 0 and v_tries % 25 > 0 then greatest(v_left, 100) else v_left end;
        v_found := gleaner.find_runs(v_asked, v_now, v_by, v_passed, v_kinds);
        v_keys := v_found.keys; v_held_before := v_found.held_before; v_seen := v_found.seen;
        exit when cardinality(v_keys) = 0;
        if 0 <> any (v_held_before) then
            v_tries := v_tries + 25;
            v_chosen := gleaner.choose_rows(v_held_before, v_left, v_total);
            perform gleaner.lose_runs(q) from unnest(v_chosen.ended) as p join public.execution_jobs as q on q.id = any (array[v_keys[p]]);
            v_passed := v_passed || array(select v_keys[p] from unnest(v_chosen.passed) as p);
            v_keys := array(select v_keys[p] from unnest(v_chosen.places) as p);
            v_alone := v_chosen.alone; v_left := v_chosen.room;
            -- What was found and not chosen must be found again.
            if cardinality(v_keys) < v_seen then perform set_config('gleaner.cursor_runs', '', false); end if;
        end if;
        if v_plain > 0 then
            return query
            update public.execution_jobs as q
            set status = 'running',
                due_at = v_now + least(coalesce(p_hold, interval '30 minutes'), interval '2 hours'), deadline_at = v_now + interval '2 hours',
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                started = case when p_started or v_alone then 1 when q.status in ('running') and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session,
                worker_id = v_holder,
                started_at = v_now
            from unnest(v_keys) as k (id) where q.id = any (array[k.id])
            returning q.*;
        else
            -- By `execute`: a plan that was kept would not notice that the table got another column.
            return query execute 'select * from gleaner.take_each_runs($1, $2, $3, $4, $5, $6, $7, $8)'
            using v_keys, v_left, p_agent, v_session, v_now, p_hold, p_started or v_alone, v_holder, null::text, null::text;
        end if;
        get diagnostics v_count = row_count;
        v_alone := v_alone and v_count > 0; v_tries := v_tries + (v_count < least(v_seen, v_left))::integer;
        v_total := v_total + v_count; v_left := v_left - v_count; v_taken := v_taken || v_keys;
        exit when v_seen < v_asked;
    end loop;
    if p_request is not null and v_total > 0 then perform gleaner.remember_runs(p_request, v_taken, v_lease, v_session); end if;
end
$_$;

ALTER FUNCTION gleaner.claim_runs(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.claim_runs(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) IS 'Takes up to p_limit rows for p_agent, in order of due time, then key.
Changes  status to ''running'', a new lease, due_at to the end of the hold; counts a lost lease, and ends rows that lost too many.
Races    skip locked: no row is handed out twice and no caller waits for another.
Returns  the rows as they now stand, lease included; none when nothing is due. A short answer is no proof of emptiness.
Agent    null: the caller is known by its sign-in alone and ends the work by plain updates.
Early    trusted callers also get rows that wait and come due within p_early; below zero: only what has been due for so long.
Repeats  with the same p_request the same rows come back, for as long as their leases stand.';

CREATE TABLE public.followup_schedules (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text,
    prospect_id character varying(255) NOT NULL,
    contact_id bigint,
    action_type text DEFAULT 'follow_up'::text NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    cron text NOT NULL,
    time_zone text DEFAULT 'UTC'::text NOT NULL,
    missed text DEFAULT 'latest'::text NOT NULL,
    missed_limit integer DEFAULT 10 NOT NULL,
    tolerance interval DEFAULT '00:05:00'::interval NOT NULL,
    until_reply boolean DEFAULT false NOT NULL,
    ends_at timestamp with time zone,
    status character varying(20) DEFAULT 'active'::character varying NOT NULL,
    next_at timestamp with time zone DEFAULT now() NOT NULL,
    seen_until timestamp with time zone DEFAULT now() NOT NULL,
    last_occurrence timestamp with time zone,
    missed_count bigint DEFAULT 0 NOT NULL,
    paused_reason text,
    error_message text,
    finished_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    due_at timestamp with time zone DEFAULT now(),
    lease bigint DEFAULT 0 NOT NULL,
    deadline_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    lost integer DEFAULT 0 NOT NULL,
    started smallint DEFAULT 0 NOT NULL,
    agent text,
    session text,
    CONSTRAINT followup_schedules_missed_check CHECK ((missed = ANY (ARRAY['skip'::text, 'latest'::text, 'all'::text]))),
    CONSTRAINT followup_schedules_missed_limit_check CHECK (((missed_limit >= 1) AND (missed_limit <= 1000))),
    CONSTRAINT followup_schedules_status_check CHECK (((status)::text = ANY ((ARRAY['active'::character varying, 'working'::character varying, 'ended'::character varying, 'failed'::character varying, 'paused'::character varying])::text[]))),
    CONSTRAINT followup_schedules_tolerance_check CHECK ((tolerance >= '00:00:00'::interval))
);

COMMENT ON TABLE public.followup_schedules IS 'Follow-ups that recur: each occurrence becomes a row of scheduled_actions, once.';

COMMENT ON COLUMN public.followup_schedules.cron IS 'Five fields: minute, hour, day of month, month, day of week; or @daily and its like.';

COMMENT ON COLUMN public.followup_schedules.time_zone IS 'Name of the time zone in which cron is meant, such as Europe/Berlin.';

COMMENT ON COLUMN public.followup_schedules.missed IS 'What becomes of occurrences that were missed: skip them, the latest is made up for, or all up to missed_limit.';

COMMENT ON COLUMN public.followup_schedules.tolerance IS 'An occurrence counts as missed when it is noticed later than this.';

COMMENT ON COLUMN public.followup_schedules.until_reply IS 'Whether a reply of the prospect pauses the schedule.';

COMMENT ON COLUMN public.followup_schedules.ends_at IS 'After this time there are no more occurrences; null for never.';

COMMENT ON COLUMN public.followup_schedules.next_at IS 'When the next occurrence is; until an agent has looked at a new row, its creation.';

COMMENT ON COLUMN public.followup_schedules.seen_until IS 'Occurrences up to this time have become rows, or were missed.';

COMMENT ON COLUMN public.followup_schedules.missed_count IS 'How many occurrences were missed and not made up for.';

CREATE FUNCTION gleaner.claim_schedules(p_agent text, p_limit integer DEFAULT 1, p_request uuid DEFAULT NULL::uuid, p_started boolean DEFAULT false, p_hold interval DEFAULT NULL::interval, p_early interval DEFAULT '00:00:00'::interval) RETURNS SETOF public.followup_schedules
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now         timestamptz := clock_timestamp();
    v_session     text := gleaner.begin_claim('schedules', p_agent);
    v_by          timestamptz := v_now + case when p_early <= interval '0' or gleaner.is_trusted() then p_early else interval '0' end;
    v_lease       bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_left        integer := least(coalesce(p_limit, 1), 10000);
    v_asked       integer; v_seen integer; v_count integer; v_total integer := 0; v_tries integer := 0; v_alone boolean := false;
    v_key         uuid; v_keys uuid[]; v_held_before smallint[]; v_passed uuid[] := '{}'; v_taken uuid[] := '{}'; v_found record; v_chosen record;
    v_plain       double precision := coalesce(nullif(current_setting('gleaner.plain_schedules', true), ''), '0');
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    if p_request is not null and gleaner.is_repeated('schedules', p_request) then
        return query execute 'select * from gleaner.repeat_schedules($1, $2)' using p_request, v_session; return;
    end if;
    if abs(v_plain) < extract(epoch from v_now) then
        v_plain := gleaner.check_plain('gleaner.plain_schedules', v_now, 'public.followup_schedules', array['due_at', 'lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'status'], 'status');
    end if;
    if p_limit = 1 and v_left = 1 and v_plain > 0 and coalesce(current_setting('gleaner.cursor_schedules', true), '') = '' then
        -- One row, the usual claim. What is not found so, such as a row that had a holder, is looked for below.
        v_key := gleaner.take_first_schedules(v_by, p_agent, v_session, v_now, p_hold, p_started);
        return query select q.* from public.followup_schedules as q where q.id = v_key;
        if found then v_left := 0; v_total := 1; v_taken := array[v_key]; end if;
    end if;
    while v_left > 0 and not v_alone and v_tries < 100 loop
        exit when exists (select from gleaner.pause as p where p.queue = 'schedules');
        v_asked := case when v_plain <= 0 and v_tries % 25 > 0 then greatest(v_left, 100) else v_left end;
        v_found := gleaner.find_schedules(v_asked, v_now, v_by, v_passed);
        v_keys := v_found.keys; v_held_before := v_found.held_before; v_seen := v_found.seen;
        exit when cardinality(v_keys) = 0;
        if 0 <> any (v_held_before) then
            v_tries := v_tries + 25;
            v_chosen := gleaner.choose_rows(v_held_before, v_left, v_total);
            perform gleaner.lose_schedules(q) from unnest(v_chosen.ended) as p join public.followup_schedules as q on q.id = any (array[v_keys[p]]);
            v_passed := v_passed || array(select v_keys[p] from unnest(v_chosen.passed) as p);
            v_keys := array(select v_keys[p] from unnest(v_chosen.places) as p);
            v_alone := v_chosen.alone; v_left := v_chosen.room;
            -- What was found and not chosen must be found again.
            if cardinality(v_keys) < v_seen then perform set_config('gleaner.cursor_schedules', '', false); end if;
        end if;
        if v_plain > 0 then
            return query
            update public.followup_schedules as q
            set status = 'working',
                due_at = v_now + least(coalesce(p_hold, interval '1 minute'), interval '10 minutes'), deadline_at = v_now + interval '10 minutes',
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.status in ('working') and q.started >= 1 then 1 else 0 end),
                started = case when p_started or v_alone then 1 when q.status in ('working') and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session
            from unnest(v_keys) as k (id) where q.id = any (array[k.id])
            returning q.*;
        else
            -- By `execute`: a plan that was kept would not notice that the table got another column.
            return query execute 'select * from gleaner.take_each_schedules($1, $2, $3, $4, $5, $6, $7)'
            using v_keys, v_left, p_agent, v_session, v_now, p_hold, p_started or v_alone, null::text, null::text, null::text;
        end if;
        get diagnostics v_count = row_count;
        v_alone := v_alone and v_count > 0; v_tries := v_tries + (v_count < least(v_seen, v_left))::integer;
        v_total := v_total + v_count; v_left := v_left - v_count; v_taken := v_taken || v_keys;
        exit when v_seen < v_asked;
    end loop;
    if p_request is not null and v_total > 0 then perform gleaner.remember_schedules(p_request, v_taken, v_lease, v_session); end if;
end
$_$;

ALTER FUNCTION gleaner.claim_schedules(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.claim_schedules(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval) IS 'Takes up to p_limit rows for p_agent, in order of due time, then key.
Changes  status to ''working'', a new lease, due_at to the end of the hold; counts a lost lease, and ends rows that lost too many.
Races    skip locked: no row is handed out twice and no caller waits for another.
Returns  the rows as they now stand, lease included; none when nothing is due. A short answer is no proof of emptiness.
Agent    null: the caller is known by its sign-in alone and ends the work by plain updates.
Early    trusted callers also get rows that wait and come due within p_early; below zero: only what has been due for so long.
Repeats  with the same p_request the same rows come back, for as long as their leases stand.';

CREATE FUNCTION gleaner.close_sessions(p_user uuid, p_session uuid, p_scope text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if not exists (select from auth.sessions as s where s.id = p_session and s.user_id = p_user) then
        return false;
    end if;
    delete from auth.sessions as s
    where s.user_id = p_user
      and case p_scope when 'local' then s.id = p_session when 'others' then s.id <> p_session else true end;
    return true;
end
$$;

COMMENT ON FUNCTION gleaner.close_sessions(p_user uuid, p_session uuid, p_scope text) IS 'Signs out here, elsewhere or everywhere; false when the session was over.';

CREATE FUNCTION gleaner.complete_activities(p_id uuid, p_lease bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
begin
    return query
    select p_id, m.outcome, m.status from gleaner.complete_activities_many(array[p_id], array[p_lease], array[p_result]) as m;
end
$$;

ALTER FUNCTION gleaner.complete_activities(p_id uuid, p_lease bigint, p_result jsonb) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_activities(p_id uuid, p_lease bigint, p_result jsonb) IS 'The same for one row: for people at a prompt, and programs that work one at a time.';

CREATE FUNCTION gleaner.complete_activities_many(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(ids uuid[], outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[]; v_leases bigint[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    with changed as (
        update public.activities as q
        set processing_status = 'completed',
            processed_data = case when u.result is null then q.processed_data
                -- Partial results of earlier stages stay beside the final ones.
                when jsonb_typeof(q.processed_data) = 'object' and jsonb_typeof(u.result) = 'object' then q.processed_data || u.result
                else u.result end,
            deadline_at = null, started = 0,
            locked_by = null,
            locked_at = null
        -- In key order, so that two batches never deadlock.
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where q.id = any (array[u.id]) and q.lease = u.lease and q.processing_status in ('processing') and (v_trusted or q.session = v_session)
        returning q.id as id, q.lease as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    return query select v_done, 'done', ('completed')::text where cardinality(v_done) > 0;
    if cardinality(v_done) < cardinality(p_ids) then
        perform gleaner.keep_late('activities', '', u.id::text, u.lease, u.result)
        from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
        left join public.activities as q on q.id = any (array[u.id])
        where (v_trusted or u.lease <= q.lease) and (q.lease = u.lease and q.processing_status = 'completed') is not true;
        return query
        select array_agg(o.id), o.outcome, o.status from (
            select u.id, case when q.id is null and gleaner.is_trusted() then 'gone' when q.lease = u.lease and q.processing_status = 'completed' then 'already' else 'lost' end,
                   case when (v_trusted or q.session = v_session) then q.processing_status::text end
            from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
            left join public.activities as q on q.id = any (array[u.id])
        ) as o (id, outcome, status) group by o.outcome, o.status;
    end if;
end
$$;

ALTER FUNCTION gleaner.complete_activities_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_activities_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) IS 'Results in, leases out, for many rows at once.
Fence    the lease and the status. A lease that ran out but was taken by no other still completes: laptops sleep.
Returns  per outcome, its rows: done; already (this lease completed it before); lost (another holder or none; the result is kept); gone.';

CREATE FUNCTION gleaner.complete_dumps(p_id uuid, p_lease bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
begin
    return query
    select p_id, m.outcome, m.status from gleaner.complete_dumps_many(array[p_id], array[p_lease], array[p_result]) as m;
end
$$;

ALTER FUNCTION gleaner.complete_dumps(p_id uuid, p_lease bigint, p_result jsonb) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_dumps(p_id uuid, p_lease bigint, p_result jsonb) IS 'The same for one row: for people at a prompt, and programs that work one at a time.';

CREATE FUNCTION gleaner.complete_dumps_many(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(ids uuid[], outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[]; v_leases bigint[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    with changed as (
        update public.agent_processing_queue as q
        set processing_state = 'completed'::public.processing_state,
            result = case when u.result is null then q.result
                -- Partial results of earlier stages stay beside the final ones.
                when jsonb_typeof(q.result) = 'object' and jsonb_typeof(u.result) = 'object' then q.result || u.result
                else u.result end,
            completed_at = v_now,
            deadline_at = null, started = 0
        -- In key order, so that two batches never deadlock.
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where q.id = any (array[u.id]) and q.lease = u.lease and q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and (v_trusted or q.session = v_session)
        returning q.id as id, q.lease as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    return query select v_done, 'done', ('completed'::public.processing_state)::text where cardinality(v_done) > 0;
    if cardinality(v_done) < cardinality(p_ids) then
        perform gleaner.keep_late('dumps', '', u.id::text, u.lease, u.result)
        from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
        left join public.agent_processing_queue as q on q.id = any (array[u.id])
        where (v_trusted or u.lease <= q.lease) and (q.lease = u.lease and q.processing_state = 'completed'::public.processing_state) is not true;
        return query
        select array_agg(o.id), o.outcome, o.status from (
            select u.id, case when q.id is null and gleaner.is_trusted() then 'gone' when q.lease = u.lease and q.processing_state = 'completed'::public.processing_state then 'already' else 'lost' end,
                   case when (v_trusted or q.session = v_session) then q.processing_state::text end
            from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
            left join public.agent_processing_queue as q on q.id = any (array[u.id])
        ) as o (id, outcome, status) group by o.outcome, o.status;
    end if;
end
$$;

ALTER FUNCTION gleaner.complete_dumps_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_dumps_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) IS 'Results in, leases out, for many rows at once.
Fence    the lease and the status. A lease that ran out but was taken by no other still completes: laptops sleep.
Returns  per outcome, its rows: done; already (this lease completed it before); lost (another holder or none; the result is kept); gone.';

CREATE FUNCTION gleaner.complete_followups(p_id uuid, p_lease bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
begin
    return query
    select p_id, m.outcome, m.status from gleaner.complete_followups_many(array[p_id], array[p_lease], array[p_result]) as m;
end
$$;

ALTER FUNCTION gleaner.complete_followups(p_id uuid, p_lease bigint, p_result jsonb) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_followups(p_id uuid, p_lease bigint, p_result jsonb) IS 'The same for one row: for people at a prompt, and programs that work one at a time.';

CREATE FUNCTION gleaner.complete_followups_many(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(ids uuid[], outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[]; v_leases bigint[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    with changed as (
        update public.scheduled_actions as q
        set status = 'executed',
            result = case when u.result is null then q.result
                -- Partial results of earlier stages stay beside the final ones.
                when jsonb_typeof(q.result) = 'object' and jsonb_typeof(u.result) = 'object' then q.result || u.result
                else u.result end,
            finished_at = v_now,
            deadline_at = null, started = 0
        -- In key order, so that two batches never deadlock.
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where q.id = any (array[u.id]) and q.lease = u.lease and q.status in ('processing') and (v_trusted or q.session = v_session)
        returning q.id as id, q.lease as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    return query select v_done, 'done', ('executed')::text where cardinality(v_done) > 0;
    if cardinality(v_done) < cardinality(p_ids) then
        perform gleaner.keep_late('followups', '', u.id::text, u.lease, u.result)
        from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
        left join public.scheduled_actions as q on q.id = any (array[u.id])
        where (v_trusted or u.lease <= q.lease) and (q.lease = u.lease and q.status = 'executed') is not true;
        return query
        select array_agg(o.id), o.outcome, o.status from (
            select u.id, case when q.id is null and gleaner.is_trusted() then 'gone' when q.lease = u.lease and q.status = 'executed' then 'already' else 'lost' end,
                   case when (v_trusted or q.session = v_session) then q.status::text end
            from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
            left join public.scheduled_actions as q on q.id = any (array[u.id])
        ) as o (id, outcome, status) group by o.outcome, o.status;
    end if;
end
$$;

ALTER FUNCTION gleaner.complete_followups_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_followups_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) IS 'Results in, leases out, for many rows at once.
Fence    the lease and the status. A lease that ran out but was taken by no other still completes: laptops sleep.
Returns  per outcome, its rows: done; already (this lease completed it before); lost (another holder or none; the result is kept); gone.';

CREATE FUNCTION gleaner.complete_in_batch_jobs(p_ids bigint[], p_leases bigint[], p_results jsonb[], v_trusted boolean, v_session text) RETURNS TABLE(id bigint, lease bigint)
    LANGUAGE plpgsql
    SET enable_bitmapscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_now   timestamptz := clock_timestamp();
    -- Mostly all are of one batch, and one range of keys.
    v_one   boolean := p_leases[1] = all (p_leases);
    v_batch gleaner.batch_lease;
    v_keys  int8multirange;
    v_count integer;
begin
    for v_batch in
        select b.* from gleaner.batch_lease as b
        where b.queue = 'jobs' and (v_trusted or b.session = v_session)
          and b.id = any (case when v_one then array[-p_leases[1]] else array(select distinct -l from unnest(p_leases) as l where l < 0) end)
        order by b.id
        for update
    loop
        if v_one and p_ids = array(select generate_series(p_ids[1], p_ids[1] + cardinality(p_ids) - 1)) then
            v_keys := int8multirange(int8range(p_ids[1], p_ids[1] + cardinality(p_ids)));
        else
            v_keys := (select coalesce(range_agg(int8range(u.id, u.id, '[]')), '{}') from unnest(p_ids, p_leases) as u (id, lease) where u.lease = -v_batch.id);
        end if;
        v_keys := v_keys * v_batch.keys;
        if cardinality(array_remove(p_results, null)) > 0 then
            update gleaner.jobs as q
            set status = 'done',
                lease = -v_batch.id,
                due_at = v_batch.due_at,
                agent = v_batch.agent,
                session = v_batch.session,
                finished_at = v_now,
                result = case when u.result is null then q.result
                -- Partial results of earlier stages stay beside the final ones.
                when jsonb_typeof(q.result) = 'object' and jsonb_typeof(u.result) = 'object' then q.result || u.result
                else u.result end
            from (select u.id, u.result from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
                  where u.lease = -v_batch.id and v_keys @> u.id
                  order by u.id) as u
            where q.id = any (array[u.id]) and q.lease = v_batch.mark and q.status = 'ready';
        else
            update gleaner.jobs as q
            set status = 'done',
                lease = -v_batch.id,
                due_at = v_batch.due_at,
                agent = v_batch.agent,
                session = v_batch.session,
                finished_at = v_now
            from unnest(v_keys) as piece
            where q.id >= lower(piece) and q.id < upper(piece)
              and q.lease = v_batch.mark and q.status = 'ready';
        end if;
        get diagnostics v_count = row_count;
        if v_count >= v_batch.remaining then
            delete from gleaner.batch_lease as b where b.id = v_batch.id;
        elsif v_count > 0 then
            update gleaner.batch_lease as b set remaining = b.remaining - v_count where b.id = v_batch.id;
        end if;
        if v_one and v_count = cardinality(p_ids) then
            return query select u.id, u.lease from unnest(p_ids, p_leases) as u (id, lease);
        elsif v_count > 0 then
            -- Only these were written by this call: they ended at its time.
            return query
            select q.id, -v_batch.id
            from unnest(v_keys) as piece
            join gleaner.jobs as q on q.id >= lower(piece) and q.id < upper(piece)
            where q.lease = -v_batch.id and q.status = 'done' and q.finished_at = v_now;
        end if;
    end loop;
end
$$;

ALTER FUNCTION gleaner.complete_in_batch_jobs(p_ids bigint[], p_leases bigint[], p_results jsonb[], v_trusted boolean, v_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_jobs(p_id bigint, p_lease bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
begin
    return query
    select p_id, m.outcome, m.status from gleaner.complete_jobs_many(array[p_id], array[p_lease], array[p_result]) as m;
end
$$;

ALTER FUNCTION gleaner.complete_jobs(p_id bigint, p_lease bigint, p_result jsonb) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_jobs(p_id bigint, p_lease bigint, p_result jsonb) IS 'The same for one row: for people at a prompt, and programs that work one at a time.';

CREATE FUNCTION gleaner.complete_jobs_many(p_ids bigint[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(ids bigint[], outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    bigint[] := '{}';
    v_leases  bigint[] := '{}';
    v_changed record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    if 0 > any (p_leases) then
        select coalesce(array_agg(b.id), '{}'), coalesce(array_agg(b.lease), '{}') into v_done, v_leases
        from gleaner.complete_in_batch_jobs(p_ids, p_leases, p_results, v_trusted, v_session) as b;
    end if;
    if cardinality(v_done) < cardinality(p_ids) then
        with changed as (
            update gleaner.jobs as q
            set status = 'done',
                result = case when u.result is null then q.result
                    -- Partial results of earlier stages stay beside the final ones.
                    when jsonb_typeof(q.result) = 'object' and jsonb_typeof(u.result) = 'object' then q.result || u.result
                    else u.result end,
                finished_at = v_now,
                deadline_at = null, started = 0
            from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
            where q.id = any (array[u.id]) and q.lease = u.lease and q.status in ('running') and (v_trusted or q.session = v_session)
            returning q.id as id, q.lease as lease
        )
        select coalesce(array_agg(changed.id), '{}') as ids, coalesce(array_agg(changed.lease), '{}') as leases into v_changed from changed;
        v_done := v_done || v_changed.ids;
        v_leases := v_leases || v_changed.leases;
    end if;
    if cardinality(v_done) > 0 then
        return query select v_done, 'done', ('done')::text;
    end if;
    if cardinality(v_done) < cardinality(p_ids) then
        perform gleaner.keep_late('jobs', '', u.id::text, u.lease, u.result)
        from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
        left join gleaner.jobs as q on q.id = any (array[u.id])
        where (v_trusted or u.lease <= q.lease) and (q.lease = u.lease and q.status = 'done') is not true;
        return query
        select array_agg(o.id), o.outcome, o.status from (
            select u.id, case when q.id is null and gleaner.is_trusted() then 'gone' when q.lease = u.lease and q.status = 'done' then 'already' else 'lost' end,
                   case when (v_trusted or q.session = v_session) then (gleaner.as_held_jobs(q)).status::text end
            from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
            left join gleaner.jobs as q on q.id = any (array[u.id])
        ) as o (id, outcome, status) group by o.outcome, o.status;
    end if;
end
$$;

ALTER FUNCTION gleaner.complete_jobs_many(p_ids bigint[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_jobs_many(p_ids bigint[], p_leases bigint[], p_results jsonb[]) IS 'Results in, leases out, for many rows at once.
Fence    the lease and the status. A lease that ran out but was taken by no other still completes: laptops sleep.
Order    rows change in key order, so that two batches never deadlock; the record of a batch before its rows.
Returns  per outcome, its rows: done; already (this lease completed it before); lost (another holder or none; the result is kept); gone.';

CREATE FUNCTION gleaner.complete_polls(p_id uuid, p_lease bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
begin
    return query
    select p_id, m.outcome, m.status from gleaner.complete_polls_many(array[p_id], array[p_lease], array[p_result]) as m;
end
$$;

ALTER FUNCTION gleaner.complete_polls(p_id uuid, p_lease bigint, p_result jsonb) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_polls(p_id uuid, p_lease bigint, p_result jsonb) IS 'The same for one row: for people at a prompt, and programs that work one at a time.';

CREATE FUNCTION gleaner.complete_polls_many(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(ids uuid[], outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[]; v_leases bigint[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    with changed as (
        update gleaner.polls as q
        set status = 'done',
            deadline_at = null, started = 0
        -- In key order, so that two batches never deadlock.
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where q.provider_id = any (array[u.id]) and q.lease = u.lease and q.status in ('running') and (v_trusted or q.session = v_session)
        returning q.provider_id as id, q.lease as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    return query select v_done, 'done', ('done')::text where cardinality(v_done) > 0;
    if cardinality(v_done) < cardinality(p_ids) then
        perform gleaner.keep_late('polls', '', u.id::text, u.lease, u.result)
        from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
        left join gleaner.polls as q on q.provider_id = any (array[u.id])
        where (v_trusted or u.lease <= q.lease) and (q.lease = u.lease and q.status = 'done') is not true;
        return query
        select array_agg(o.id), o.outcome, o.status from (
            select u.id, case when q.provider_id is null and gleaner.is_trusted() then 'gone' when q.lease = u.lease and q.status = 'done' then 'already' else 'lost' end,
                   case when (v_trusted or q.session = v_session) then q.status::text end
            from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
            left join gleaner.polls as q on q.provider_id = any (array[u.id])
        ) as o (id, outcome, status) group by o.outcome, o.status;
    end if;
end
$$;

ALTER FUNCTION gleaner.complete_polls_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_polls_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) IS 'Results in, leases out, for many rows at once.
Fence    the lease and the status. A lease that ran out but was taken by no other still completes: laptops sleep.
Returns  per outcome, its rows: done; already (this lease completed it before); lost (another holder or none; the result is kept); gone.';

CREATE FUNCTION gleaner.complete_runs(p_id uuid, p_lease bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
begin
    return query
    select p_id, m.outcome, m.status from gleaner.complete_runs_many(array[p_id], array[p_lease], array[p_result]) as m;
end
$$;

ALTER FUNCTION gleaner.complete_runs(p_id uuid, p_lease bigint, p_result jsonb) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_runs(p_id uuid, p_lease bigint, p_result jsonb) IS 'The same for one row: for people at a prompt, and programs that work one at a time.';

CREATE FUNCTION gleaner.complete_runs_many(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(ids uuid[], outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[]; v_leases bigint[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    with changed as (
        update public.execution_jobs as q
        set status = 'completed',
            result = case when u.result is null then q.result
                -- Partial results of earlier stages stay beside the final ones.
                when jsonb_typeof(q.result) = 'object' and jsonb_typeof(u.result) = 'object' then q.result || u.result
                else u.result end,
            completed_at = v_now,
            deadline_at = null, started = 0
        -- In key order, so that two batches never deadlock.
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where q.id = any (array[u.id]) and q.lease = u.lease and q.status in ('running') and (v_trusted or q.session = v_session)
        returning q.id as id, q.lease as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    return query select v_done, 'done', ('completed')::text where cardinality(v_done) > 0;
    if cardinality(v_done) < cardinality(p_ids) then
        perform gleaner.keep_late('runs', '', u.id::text, u.lease, u.result)
        from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
        left join public.execution_jobs as q on q.id = any (array[u.id])
        where (v_trusted or u.lease <= q.lease) and (q.lease = u.lease and q.status = 'completed') is not true;
        return query
        select array_agg(o.id), o.outcome, o.status from (
            select u.id, case when q.id is null and gleaner.is_trusted() then 'gone' when q.lease = u.lease and q.status = 'completed' then 'already' else 'lost' end,
                   case when (v_trusted or q.session = v_session) then q.status::text end
            from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
            left join public.execution_jobs as q on q.id = any (array[u.id])
        ) as o (id, outcome, status) group by o.outcome, o.status;
    end if;
end
$$;

ALTER FUNCTION gleaner.complete_runs_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_runs_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) IS 'Results in, leases out, for many rows at once.
Fence    the lease and the status. A lease that ran out but was taken by no other still completes: laptops sleep.
Returns  per outcome, its rows: done; already (this lease completed it before); lost (another holder or none; the result is kept); gone.';

CREATE FUNCTION gleaner.complete_schedules(p_id uuid, p_lease bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
begin
    return query
    select p_id, m.outcome, m.status from gleaner.complete_schedules_many(array[p_id], array[p_lease], array[p_result]) as m;
end
$$;

ALTER FUNCTION gleaner.complete_schedules(p_id uuid, p_lease bigint, p_result jsonb) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_schedules(p_id uuid, p_lease bigint, p_result jsonb) IS 'The same for one row: for people at a prompt, and programs that work one at a time.';

CREATE FUNCTION gleaner.complete_schedules_many(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(ids uuid[], outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[]; v_leases bigint[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    with changed as (
        update public.followup_schedules as q
        set status = 'ended',
            finished_at = v_now,
            deadline_at = null, started = 0
        -- In key order, so that two batches never deadlock.
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where q.id = any (array[u.id]) and q.lease = u.lease and q.status in ('working') and (v_trusted or q.session = v_session)
        returning q.id as id, q.lease as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    return query select v_done, 'done', ('ended')::text where cardinality(v_done) > 0;
    if cardinality(v_done) < cardinality(p_ids) then
        perform gleaner.keep_late('schedules', '', u.id::text, u.lease, u.result)
        from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
        left join public.followup_schedules as q on q.id = any (array[u.id])
        where (v_trusted or u.lease <= q.lease) and (q.lease = u.lease and q.status = 'ended') is not true;
        return query
        select array_agg(o.id), o.outcome, o.status from (
            select u.id, case when q.id is null and gleaner.is_trusted() then 'gone' when q.lease = u.lease and q.status = 'ended' then 'already' else 'lost' end,
                   case when (v_trusted or q.session = v_session) then q.status::text end
            from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
            left join public.followup_schedules as q on q.id = any (array[u.id])
        ) as o (id, outcome, status) group by o.outcome, o.status;
    end if;
end
$$;

ALTER FUNCTION gleaner.complete_schedules_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.complete_schedules_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) IS 'Results in, leases out, for many rows at once.
Fence    the lease and the status. A lease that ran out but was taken by no other still completes: laptops sleep.
Returns  per outcome, its rows: done; already (this lease completed it before); lost (another holder or none; the result is kept); gone.';

CREATE FUNCTION gleaner.condition_of(p_table regclass, p_match jsonb) RETURNS text
    LANGUAGE plpgsql
    AS $_$
declare
    v_column text;
    v_value  text;
    v_parts  text[] := '{}';
begin
    if p_match is null or p_match = '{}' then
        raise exception 'cancel needs at least one column to match' using errcode = 'GL002', hint = 'To cancel rows by key use the act without "_matching".';
    end if;
    perform gleaner.check_columns(p_table, array(select jsonb_object_keys(p_match)));
    for v_column in select jsonb_object_keys(p_match) loop
        execute format('select (jsonb_populate_record(null::%s, $1)).%I::text', p_table, v_column) into v_value using p_match;
        v_parts := v_parts || case when v_value is null then format('q.%I is null', v_column) else format('q.%I = %L', v_column, v_value) end;
    end loop;
    return array_to_string(v_parts, ' and ');
end
$_$;

COMMENT ON FUNCTION gleaner.condition_of(p_table regclass, p_match jsonb) IS 'The SQL condition that the columns of a row have the given values.';

CREATE FUNCTION gleaner.contact_name(p_contact bigint) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    if p_contact is null or to_regclass('public.contacts') is null then
        return null;
    end if;
    return (select nullif(concat_ws(' ', c.first_name, c.last_name), '') from public.contacts as c where c.id = p_contact);
end
$$;

COMMENT ON FUNCTION gleaner.contact_name(p_contact bigint) IS 'The name of a contact; null without the system crm.';

CREATE FUNCTION gleaner.contact_of_prospect(p_prospect text) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
declare
    v_found bigint[];
    v_email text;
begin
    if to_regclass('public.contact_identities') is null then
        return null;
    end if;
    if p_prospect ~ '^contact:[0-9]{1,18}$' then
        return (select c.id from public.contacts as c where c.id = substr(p_prospect, 9)::bigint);
    end if;
    v_found := array(
        select distinct i.contact_id from public.contact_identities as i
        where i.value = p_prospect
           or i.kind = split_part(p_prospect, ':', 1) and i.value = substr(p_prospect, strpos(p_prospect, ':') + 1)
        limit 2);
    if v_found = '{}' then
        v_email := public.normalize_email(p_prospect);
        if v_email is not null then
            v_found := (select m.candidates from gleaner.match_contact('email', v_email, null) as m);
        elsif p_prospect ~ '^\+[0-9]' then
            v_found := (select m.candidates from gleaner.match_contact('phone', public.normalize_phone(p_prospect), null) as m);
        end if;
    end if;
    return case when cardinality(v_found) = 1 then v_found[1] end;
end
$_$;

COMMENT ON FUNCTION gleaner.contact_of_prospect(p_prospect text) IS 'The contact that a prospect id names; null when no contact or several have that name.';

CREATE FUNCTION gleaner.create_contacts(p_activity_ids uuid[]) RETURNS TABLE(id uuid, contact_id bigint, outcome text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    v_row     record;
    v_found   record;
    v_name    record;
    v_contact bigint;
    v_written text;
begin
    for v_row in
        select a.id, a.sender_kind as kind, a.sender_address as address, a.provider_id, a.sales_id, a.metadata, a.created_at, k.lock
        from public.activities as a
        join public.ingestion_providers as p on p.id = a.provider_id
        cross join lateral (
            -- Spellings that would match each other share the lock.
            select hashtextextended('gleaner contact ' || case a.sender_kind
                when 'email' then gleaner.loose_email(a.sender_address)
                else least(a.sender_address, (gleaner.phone_aliases(a.sender_address))[1]) end, 0)
        ) as k (lock)
        where a.id = any (p_activity_ids)
          and a.contact_id is null
          and a.sender_kind in ('email', 'phone') and a.sender_address is not null
          and (p.auto_create_contacts or p.config ->> 'auto_create_contacts' = 'true')
          -- Of several candidates one is meant, not a new one; and a spammer gets no contact.
          and a.metadata -> 'match' is null
          and a.metadata ->> 'spam' is distinct from 'true'
        order by k.lock, a.id
    loop
        perform pg_advisory_xact_lock(v_row.lock);
        select m.method, m.candidates into v_found from gleaner.match_contact(v_row.kind, v_row.address, v_row.provider_id) as m;
        id := v_row.id;
        contact_id := null;
        if cardinality(v_found.candidates) > 1 then
            update public.activities as a
            set metadata = a.metadata || jsonb_build_object('match', jsonb_build_object('method', v_found.method, 'candidates', v_found.candidates))
            where a.id = v_row.id and a.contact_id is null;
            outcome := 'ambiguous';
            return next;
            continue;
        elsif cardinality(v_found.candidates) = 1 then
            v_contact := v_found.candidates[1];
            outcome := 'linked';
        else
            -- What is no possible number is kept as it was said: read again without its plus it would be another one.
            v_written := case when v_row.kind = 'email' or v_row.address like '+%' then v_row.address
                              else coalesce(nullif(left(v_row.metadata ->> 'from', 100), ''), v_row.address) end;
            select n.first_name, n.last_name into v_name
            from gleaner.split_name(coalesce(v_row.metadata ->> 'sender_name', v_row.metadata ->> 'profile_name'), v_row.address) as n;
            begin
                v_contact := gleaner.insert_contact(
                    v_name.first_name, v_name.last_name, v_row.kind, v_written, v_row.sales_id, v_row.created_at);
                -- The sender was read properly when the message came: nothing to guess, and nothing to wait for.
                delete from public.contact_addresses as a where a.contact_id = v_contact;
                insert into public.contact_addresses (contact_id, kind, address, written, loose)
                values (v_contact, v_row.kind, v_row.address, v_written,
                        case v_row.kind when 'email' then gleaner.loose_email(v_row.address)
                                        else substring(v_row.address from '^\+1([0-9]{10})$') end);
                outcome := 'created';
            exception when others then
                raise warning 'no contact could be made of the sender of activity %: %', v_row.id, sqlerrm;
                outcome := 'failed';
                return next;
                continue;
            end;
        end if;
        update public.activities as a set contact_id = v_contact where a.id = v_row.id and a.contact_id is null;
        contact_id := v_contact;
        return next;
    end loop;
end
$_$;

COMMENT ON FUNCTION gleaner.create_contacts(p_activity_ids uuid[]) IS 'Makes contacts of the unknown senders of these activities, where their channel wants it.';

CREATE FUNCTION gleaner.dead_letter_activities(p_row public.activities, p_reason text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    insert into public.activity_failures (original_activity_id, failure_reason, raw_data)
    values (p_row.id, p_reason, p_row.raw_data);
end
$$;

ALTER FUNCTION gleaner.dead_letter_activities(p_row public.activities, p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.default_region() RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return coalesce((select s.default_region from gleaner.contact_settings as s), 'US');
end
$$;

COMMENT ON FUNCTION gleaner.default_region() IS 'The country of numbers written without one.';

CREATE FUNCTION gleaner.enqueue_activities(p_items jsonb, p_on_duplicate text DEFAULT 'skip'::text) RETURNS TABLE(id uuid, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    v_run record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    for v_run in select * from gleaner.group_items('public.activities', p_items, p_on_duplicate, array['lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'due_at', 'open_at']) loop
        return query execute format(
            'insert into public.activities as q (%sdue_at, open_at) '
            'select %sw.due, case when r.sales_id is null then w.due else gleaner.open_activities(r.sales_id, coalesce(r.created_at, $2), w.due) end '
            'from jsonb_populate_recordset(null::public.activities, $1) as r cross join lateral (select coalesce(r.due_at, r.created_at, $2) as due) as w ',
            v_run.columns, v_run.taken)
            || 'returning q.id, ''enqueued''' using v_run.items, clock_timestamp();
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_activities(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.enqueue_activities(p_items jsonb, p_on_duplicate text) IS 'Enqueues an item, or an array of items: objects whose keys are columns. Answers in their order.';

CREATE FUNCTION gleaner.enqueue_dumps(p_items jsonb, p_on_duplicate text DEFAULT 'skip'::text) RETURNS TABLE(id uuid, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    v_run record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    for v_run in select * from gleaner.group_items('public.agent_processing_queue', p_items, p_on_duplicate, array['lease', 'deadline_at', 'lost', 'started', 'agent', 'session', 'due_at']) loop
        return query execute format(
            'insert into public.agent_processing_queue as q (%sdue_at) '
            'select %sw.due '
            'from jsonb_populate_recordset(null::public.agent_processing_queue, $1) as r cross join lateral (select coalesce(r.due_at, r.created_at, $2) as due) as w ',
            v_run.columns, v_run.taken)
            || 'returning q.id, ''enqueued''' using v_run.items, clock_timestamp();
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_dumps(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.enqueue_dumps(p_items jsonb, p_on_duplicate text) IS 'Enqueues an item, or an array of items: objects whose keys are columns. Answers in their order.';

CREATE FUNCTION gleaner.enqueue_followups(p_items jsonb, p_on_duplicate text DEFAULT 'skip'::text) RETURNS TABLE(id uuid, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    v_run record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    for v_run in select * from gleaner.group_items('public.scheduled_actions', p_items, p_on_duplicate, array['lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'due_at']) loop
        return query execute format(
            'insert into public.scheduled_actions as q (%sdue_at) '
            'select %sw.due '
            'from jsonb_populate_recordset(null::public.scheduled_actions, $1) as r cross join lateral (select coalesce(r.scheduled_for, r.due_at, r.created_at, $2) as due) as w ',
            v_run.columns, v_run.taken)
            || 'returning q.id, ''enqueued''' using v_run.items, clock_timestamp();
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_followups(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.enqueue_followups(p_items jsonb, p_on_duplicate text) IS 'Enqueues an item, or an array of items: objects whose keys are columns. Answers in their order.';

CREATE FUNCTION gleaner.enqueue_jobs(p_items jsonb, p_on_duplicate text DEFAULT 'skip'::text) RETURNS TABLE(id bigint, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    v_run record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    if exists (select from jsonb_array_elements(case jsonb_typeof(p_items) when 'array' then p_items else jsonb_build_array(p_items) end) as i (item) where i.item ->> 'unique_key' is not null) then
        return query select u.id, u.outcome from gleaner.enqueue_unique_jobs(p_items, p_on_duplicate) as u order by u.n;
        return;
    end if;
    for v_run in select * from gleaner.group_items('gleaner.jobs', p_items, p_on_duplicate, array['lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'due_at']) loop
        return query execute format(
            'insert into gleaner.jobs as q (%sdue_at) '
            'select %sw.due '
            'from jsonb_populate_recordset(null::gleaner.jobs, $1) as r cross join lateral (select coalesce(r.due_at, r.created_at, $2) as due) as w ',
            v_run.columns, v_run.taken)
            || 'returning q.id, ''enqueued''' using v_run.items, clock_timestamp();
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_jobs(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.enqueue_jobs(p_items jsonb, p_on_duplicate text) IS 'Enqueues an item, or an array of items: objects whose keys are columns. Answers in their order: enqueued, standing or replaced.
A row waiting with the same unique key stands: with ''skip'' its id is returned, with ''replace'' it takes the new values.
A running row does not stand in the way, and is never replaced. Unique keys are taken in their order, so that two calls never deadlock.';

CREATE FUNCTION gleaner.enqueue_polls(p_items jsonb, p_on_duplicate text DEFAULT 'skip'::text) RETURNS TABLE(id uuid, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    v_run record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    for v_run in select * from gleaner.group_items('gleaner.polls', p_items, p_on_duplicate, array['lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'due_at']) loop
        return query execute format(
            'insert into gleaner.polls as q (%sdue_at) '
            'select %sw.due '
            'from jsonb_populate_recordset(null::gleaner.polls, $1) as r cross join lateral (select coalesce(r.wanted_at, r.due_at, $2) as due) as w ',
            v_run.columns, v_run.taken)
            || 'returning q.provider_id, ''enqueued''' using v_run.items, clock_timestamp();
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_polls(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.enqueue_polls(p_items jsonb, p_on_duplicate text) IS 'Enqueues an item, or an array of items: objects whose keys are columns. Answers in their order.';

CREATE FUNCTION gleaner.enqueue_runs(p_items jsonb, p_on_duplicate text DEFAULT 'skip'::text) RETURNS TABLE(id uuid, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    v_run record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    for v_run in select * from gleaner.group_items('public.execution_jobs', p_items, p_on_duplicate, array['lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'due_at']) loop
        return query execute format(
            'insert into public.execution_jobs as q (%sdue_at) '
            'select %sw.due '
            'from jsonb_populate_recordset(null::public.execution_jobs, $1) as r cross join lateral (select coalesce(r.due_at, r.created_at, $2) as due) as w ',
            v_run.columns, v_run.taken)
            || 'returning q.id, ''enqueued''' using v_run.items, clock_timestamp();
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_runs(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.enqueue_runs(p_items jsonb, p_on_duplicate text) IS 'Enqueues an item, or an array of items: objects whose keys are columns. Answers in their order.';

CREATE FUNCTION gleaner.enqueue_schedules(p_items jsonb, p_on_duplicate text DEFAULT 'skip'::text) RETURNS TABLE(id uuid, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $_$
declare
    v_run record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    for v_run in select * from gleaner.group_items('public.followup_schedules', p_items, p_on_duplicate, array['lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'due_at']) loop
        return query execute format(
            'insert into public.followup_schedules as q (%sdue_at) '
            'select %sw.due '
            'from jsonb_populate_recordset(null::public.followup_schedules, $1) as r cross join lateral (select coalesce(r.next_at, r.due_at, r.created_at, $2) as due) as w ',
            v_run.columns, v_run.taken)
            || 'returning q.id, ''enqueued''' using v_run.items, clock_timestamp();
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_schedules(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.enqueue_schedules(p_items jsonb, p_on_duplicate text) IS 'Enqueues an item, or an array of items: objects whose keys are columns. Answers in their order.';

CREATE FUNCTION gleaner.enqueue_unique_jobs(p_items jsonb, p_on_duplicate text) RETURNS TABLE(n bigint, id bigint, outcome text)
    LANGUAGE plpgsql
    AS $_$
#variable_conflict use_column
declare
    v_item   record; v_run record;
    v_sql    text;
    v_update text;
begin
    for v_item in
        select i.item, i.n, i.item ->> 'unique_key' as unique_key
        from jsonb_array_elements(case jsonb_typeof(p_items) when 'array' then p_items else jsonb_build_array(p_items) end) with ordinality as i (item, n)
        order by i.item ->> 'unique_key' nulls first, i.n
    loop
        n := v_item.n;
        id := null;
        select * into v_run from gleaner.group_items('gleaner.jobs', v_item.item, p_on_duplicate, array['lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'due_at']);
        v_sql := format(
            'insert into gleaner.jobs as q (%sdue_at) '
            'select %sw.due '
            'from jsonb_populate_recordset(null::gleaner.jobs, $1) as r cross join lateral (select coalesce(r.due_at, r.created_at, $2) as due) as w ',
            v_run.columns, v_run.taken);
        select string_agg(format('%1$I = excluded.%1$I', c), ', ') into v_update
        from (select distinct unnest(v_run.names || array['due_at']) as c) as columns
        where c <> all (array['lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'id', 'unique_key']);
        for v_try in 1 .. 5 loop
            if v_item.unique_key is not null and p_on_duplicate = 'replace' then
                execute v_sql || ' on conflict (unique_key) where unique_key is not null and due_at is not null and status in (''ready'', ''failed'') do update set ' || v_update || ' returning q.id, case when q.xmax = 0 then ''enqueued'' else ''replaced'' end'
                into id, outcome using jsonb_build_array(v_item.item), clock_timestamp();
                exit;
            end if;
            execute v_sql || ' on conflict (unique_key) where unique_key is not null and due_at is not null and status in (''ready'', ''failed'') do nothing returning q.id'
            into id using jsonb_build_array(v_item.item), clock_timestamp();
            outcome := 'enqueued';
            exit when id is not null;
            -- The row that stands may be newer than this statement's snapshot, or taken by now: look, then try again.
            select q.id, 'standing' into id, outcome
            from gleaner.jobs as q
            where q.unique_key = v_item.unique_key::text
              and q.status in ('ready', 'failed') and q.due_at is not null;
            exit when id is not null;
        end loop;
        if id is null then
            raise exception 'could not enqueue: the unique key % is contended', v_item.unique_key using errcode = '40001';
        end if;
        return next;
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_unique_jobs(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.estimate_rows(p_table regclass) RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $$
begin
    if coalesce((select sum(pg_relation_size(t.relid)) from pg_partition_tree(p_table) as t), pg_relation_size(p_table)) < 16 * 1024 * 1024 then
        return null;
    end if;
    return (select c.reltuples::bigint from pg_class as c where c.oid = p_table);
end
$$;

COMMENT ON FUNCTION gleaner.estimate_rows(p_table regclass) IS 'How many rows a large table has, from its statistics; null for a small one.';

CREATE FUNCTION gleaner.explain_activities(p_id uuid, p_owner bigint DEFAULT NULL::bigint, p_kinds text[] DEFAULT NULL::text[]) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now    timestamptz := clock_timestamp(); v_row public.activities;
    v_class  text := 'global';
    v_at     timestamptz;
    v_shared boolean := true;
    v_after  interval;
begin
    -- Those who work the queue, and those who operate it.
    perform gleaner.operates('activities', array['authenticated', 'service_role', 'service_role'], array['authenticated']);
    p_owner := gleaner.own_activities(p_owner);
    select q.* into v_row from public.activities as q where q.id = p_id;
    v_at := v_row.due_at;
    if v_row.sales_id is not null then
        v_class := 'own';
        if v_row.sales_id is distinct from p_owner then
            v_class := 'stale';
            select coalesce(o.allow_remote_processing, false), coalesce(o.stale_threshold_minutes * interval '1 minute', interval '5 minutes') into v_shared, v_after
            from (select v_row.sales_id as id) as asked
            left join public.sales as o on o.id = asked.id;
            if not gleaner.is_trusted() and not gleaner.is_administrator() and not v_shared then
                -- A private row must not be revealed: the same answer as for a row that does not exist.
                return null;
            end if;
            v_at := case when v_shared then greatest(v_at, v_row.created_at + v_after) end;
        end if;
    end if;
    return gleaner.explain_row('activities', '', v_row.id::text, v_now, v_row.session, jsonb_build_object(
        'id', v_row.id, 'status', v_row.processing_status, 'claimable_at', v_at, 'due_at', v_row.due_at,
        'state', gleaner.state_activities(v_row, v_now), 'attempts', v_row.attempts, 'lost', v_row.lost,
        'agent', coalesce(v_row.agent, v_row.session), 'deadline_at', v_row.deadline_at,
        'class', v_class, 'owner', v_row.sales_id, 'open_at', v_row.open_at),
        not v_shared, case when v_row.type::text <> all (p_kinds) then v_row.type::text end);
end
$$;

ALTER FUNCTION gleaner.explain_activities(p_id uuid, p_owner bigint, p_kinds text[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.explain_activities(p_id uuid, p_owner bigint, p_kinds text[]) IS 'Why this row is or is not claimable by an agent of p_owner, and when it will be; null when there is no such row.';

CREATE FUNCTION gleaner.explain_dumps(p_id uuid) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now    timestamptz := clock_timestamp(); v_row public.agent_processing_queue;
begin
    -- Those who work the queue, and those who operate it.
    perform gleaner.operates('dumps', array['service_role', 'service_role'], array['authenticated']);
    select q.* into v_row from public.agent_processing_queue as q where q.id = p_id;
    if gleaner.operates('dumps', array['service_role', 'service_role'], array['authenticated']) = 'own' and (v_row.workspace_id = any (gleaner.my_workspaces())) is not true then
        -- The same answer as for a row that is not there.
        return null;
    end if;
    return gleaner.explain_row('dumps', '', v_row.id::text, v_now, v_row.session, jsonb_build_object(
        'id', v_row.id, 'status', v_row.processing_state, 'claimable_at', v_row.due_at, 'due_at', v_row.due_at,
        'state', gleaner.state_dumps(v_row, v_now), 'attempts', v_row.attempts, 'lost', v_row.lost,
        'agent', coalesce(v_row.agent, v_row.session), 'deadline_at', v_row.deadline_at), false);
end
$$;

ALTER FUNCTION gleaner.explain_dumps(p_id uuid) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.explain_dumps(p_id uuid) IS 'Why this row is or is not claimable, and when it will be; null when there is no such row.';

CREATE FUNCTION gleaner.explain_followups(p_id uuid, p_kinds text[] DEFAULT NULL::text[]) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now    timestamptz := clock_timestamp(); v_row public.scheduled_actions;
begin
    -- Those who work the queue, and those who operate it.
    perform gleaner.operates('followups', array['service_role', 'service_role'], array['authenticated']);
    select q.* into v_row from public.scheduled_actions as q where q.id = p_id;
    return gleaner.explain_row('followups', '', v_row.id::text, v_now, v_row.session, jsonb_build_object(
        'id', v_row.id, 'status', v_row.status, 'claimable_at', v_row.due_at, 'due_at', v_row.due_at,
        'state', gleaner.state_followups(v_row, v_now), 'attempts', v_row.attempts, 'lost', v_row.lost,
        'agent', coalesce(v_row.agent, v_row.session), 'deadline_at', v_row.deadline_at), false, case when v_row.action_type::text <> all (p_kinds) then v_row.action_type::text end);
end
$$;

ALTER FUNCTION gleaner.explain_followups(p_id uuid, p_kinds text[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.explain_followups(p_id uuid, p_kinds text[]) IS 'Why this row is or is not claimable, and when it will be; null when there is no such row.';

CREATE FUNCTION gleaner.explain_jobs(p_id bigint, p_kinds text[] DEFAULT NULL::text[]) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now    timestamptz := clock_timestamp(); v_row gleaner.jobs;
begin
    -- Those who work the queue, and those who operate it.
    perform gleaner.operates('jobs', array['service_role', 'service_role'], '{}');
    select q.* into v_row from gleaner.jobs as q where q.id = p_id;
    v_row := gleaner.as_held_jobs(v_row);
    return gleaner.explain_row('jobs', '', v_row.id::text, v_now, v_row.session, jsonb_build_object(
        'id', v_row.id, 'status', v_row.status, 'claimable_at', v_row.due_at, 'due_at', v_row.due_at,
        'state', case when v_row.lease = -1 and (v_row.status in ('ready', 'running', 'failed') and v_row.due_at is not null) and not (gleaner.range_keys('jobs') + gleaner.batch_keys('jobs')) @> p_id then 'orphan'
            else gleaner.state_jobs(v_row, v_now) end, 'attempts', v_row.attempts, 'lost', v_row.lost,
        'agent', coalesce(v_row.agent, v_row.session), 'deadline_at', v_row.deadline_at), false, case when v_row.kind::text <> all (p_kinds) then v_row.kind::text end);
end
$$;

ALTER FUNCTION gleaner.explain_jobs(p_id bigint, p_kinds text[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.explain_jobs(p_id bigint, p_kinds text[]) IS 'Why this row is or is not claimable, and when it will be; null when there is no such row.';

CREATE FUNCTION gleaner.explain_polls(p_id uuid) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now    timestamptz := clock_timestamp(); v_row gleaner.polls;
begin
    -- Those who work the queue, and those who operate it.
    perform gleaner.operates('polls', array['service_role', 'service_role'], '{}');
    select q.* into v_row from gleaner.polls as q where q.provider_id = p_id;
    return gleaner.explain_row('polls', '', v_row.provider_id::text, v_now, v_row.session, jsonb_build_object(
        'id', v_row.provider_id, 'status', v_row.status, 'claimable_at', v_row.due_at, 'due_at', v_row.due_at,
        'state', gleaner.state_polls(v_row, v_now), 'attempts', v_row.attempts, 'lost', v_row.lost,
        'agent', coalesce(v_row.agent, v_row.session), 'deadline_at', v_row.deadline_at), false);
end
$$;

ALTER FUNCTION gleaner.explain_polls(p_id uuid) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.explain_polls(p_id uuid) IS 'Why this row is or is not claimable, and when it will be; null when there is no such row.';

CREATE FUNCTION gleaner.explain_row(p_queue text, p_tenant text, p_key text, p_now timestamp with time zone, p_session text, p_row jsonb, p_private boolean, p_other_kind text DEFAULT NULL::text) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    v_state    text := p_row ->> 'state';
    v_agent    text := p_row ->> 'agent';
    v_stands   boolean := v_state in ('ready', 'running', 'backing off', 'scheduled');
    v_at       timestamptz := p_row ->> 'claimable_at';
    v_due      timestamptz := p_row ->> 'due_at';
    v_rejected gleaner.rejected_row;
    v_pause    gleaner.pause;
begin
    if p_row ->> 'id' is null or p_session is distinct from gleaner.worker_session() and gleaner.worker_session() is not null then
        return null;
    end if;
    select r.* into v_rejected from gleaner.rejected_row as r where r.queue = p_queue and r.tenant = p_tenant and r.key = p_key;
    select p.* into v_pause from gleaner.pause as p where p.queue = p_queue;
    return jsonb_build_object('class', 'global') || p_row || jsonb_build_object(
        'claimable', coalesce(v_stands and v_at <= p_now and coalesce(v_rejected.until <= p_now, true) and p_other_kind is null, false) and v_pause.queue is null,
        'claimable_at', case when v_stands then v_at end,
        'agent', case when v_state = 'running' then v_agent end,
        'reason', case
            when v_state in ('done', 'cancelled', 'dead', 'other') then format('it is %s (status %L)', v_state, p_row ->> 'status')
            when v_state = 'orphan' then 'it waits in a bulk range that is not there: it was copied or restored without it; requeue it'
            when v_state = 'unfilled' then 'it has no due time yet: it was written before the table was attached, or while its trigger was off'
            when v_pause.queue is not null and v_state <> 'running' then
                concat_ws(': ', format('the queue has been paused for %s', date_trunc('second', p_now - v_pause.at)), v_pause.reason)
            when p_other_kind is not null then format('its kind %L is not among those asked for', p_other_kind)
            when p_private then format('its owner %s keeps work private', p_row ->> 'owner')
            when v_at is null then 'it has no due time'
            when v_at <= p_now and v_state = 'running' then format('the lease of %s ran out %s ago', v_agent, p_now - v_due)
            when v_at <= p_now and v_rejected.until > p_now then
                format('it rejected a change, and is tried again in %s: %s', v_rejected.until - p_now, v_rejected.reason)
            when v_at <= p_now then 'its time has come'
            when v_state = 'running' then format('%s holds it; the lease ends in %s unless progress extends it', v_agent, v_at - p_now)
            when v_state = 'backing off' and v_due > p_now then format('attempt %s failed; the next try is in %s', p_row ->> 'attempts', v_at - p_now)
            when p_row ->> 'class' = 'stale' and v_due <= p_now then
                format('its owner %s has first right to it for another %s', p_row ->> 'owner', v_at - p_now)
            else format('it is due in %s', v_at - p_now)
        end)
        || case when v_pause.queue is null then '{}' else jsonb_build_object('paused', jsonb_build_object('at', v_pause.at, 'caller', v_pause.caller, 'reason', v_pause.reason)) end;
end
$$;

COMMENT ON FUNCTION gleaner.explain_row(p_queue text, p_tenant text, p_key text, p_now timestamp with time zone, p_session text, p_row jsonb, p_private boolean, p_other_kind text) IS 'The explanation of a row that an act describes by the engine''s names.';

CREATE FUNCTION gleaner.explain_runs(p_id uuid, p_kinds text[] DEFAULT NULL::text[]) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now    timestamptz := clock_timestamp(); v_row public.execution_jobs;
begin
    -- Those who work the queue, and those who operate it.
    perform gleaner.operates('runs', array['service_role', 'service_role'], array['authenticated']);
    select q.* into v_row from public.execution_jobs as q where q.id = p_id;
    return gleaner.explain_row('runs', '', v_row.id::text, v_now, v_row.session, jsonb_build_object(
        'id', v_row.id, 'status', v_row.status, 'claimable_at', v_row.due_at, 'due_at', v_row.due_at,
        'state', gleaner.state_runs(v_row, v_now), 'attempts', v_row.attempts, 'lost', v_row.lost,
        'agent', coalesce(v_row.agent, v_row.session), 'deadline_at', v_row.deadline_at), false, case when coalesce(v_row.kind, '')::text <> all (p_kinds) then coalesce(v_row.kind, '')::text end);
end
$$;

ALTER FUNCTION gleaner.explain_runs(p_id uuid, p_kinds text[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.explain_runs(p_id uuid, p_kinds text[]) IS 'Why this row is or is not claimable, and when it will be; null when there is no such row.';

CREATE FUNCTION gleaner.explain_schedules(p_id uuid) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now    timestamptz := clock_timestamp(); v_row public.followup_schedules;
begin
    -- Those who work the queue, and those who operate it.
    perform gleaner.operates('schedules', array['service_role', 'service_role'], array['authenticated']);
    select q.* into v_row from public.followup_schedules as q where q.id = p_id;
    return gleaner.explain_row('schedules', '', v_row.id::text, v_now, v_row.session, jsonb_build_object(
        'id', v_row.id, 'status', v_row.status, 'claimable_at', v_row.due_at, 'due_at', v_row.due_at,
        'state', gleaner.state_schedules(v_row, v_now), 'attempts', v_row.attempts, 'lost', v_row.lost,
        'agent', coalesce(v_row.agent, v_row.session), 'deadline_at', v_row.deadline_at), false);
end
$$;

ALTER FUNCTION gleaner.explain_schedules(p_id uuid) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.explain_schedules(p_id uuid) IS 'Why this row is or is not claimable, and when it will be; null when there is no such row.';

CREATE FUNCTION gleaner.fail_activities(p_id uuid, p_lease bigint, p_message text, p_category text DEFAULT 'Error'::text, p_retryable boolean DEFAULT true, p_retry_in interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now      timestamptz := clock_timestamp();
    v_it       record; v_row public.activities; v_attempts integer; v_due timestamptz;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    v_it := gleaner.lock_activities(p_id, p_lease);
    if v_it.outcome = 'done' then
        v_row := v_it.held;
        v_attempts := v_row.attempts + 1;
        v_due := case when p_retryable and (v_attempts < 3 and coalesce(v_row.created_at, v_now) + interval '24 hours' > v_now) then v_now + coalesce(p_retry_in, gleaner.backoff(interval '30 seconds', interval '1 hour', v_attempts, p_id::text)) end;
        v_it.status := gleaner.settle_activities(v_row, 'failed', v_due, true, v_attempts, v_row.lost, coalesce(p_category, 'Error'), p_message);
    end if;
    return query select p_id, v_it.outcome, v_it.status;
end
$$;

ALTER FUNCTION gleaner.fail_activities(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.fail_activities(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) IS 'The work failed, which counts an attempt: the row waits, longer each time, or is dead.';

CREATE FUNCTION gleaner.fail_dumps(p_id uuid, p_lease bigint, p_message text, p_category text DEFAULT 'Error'::text, p_retryable boolean DEFAULT true, p_retry_in interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now      timestamptz := clock_timestamp();
    v_it       record; v_row public.agent_processing_queue; v_attempts integer; v_due timestamptz;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    v_it := gleaner.lock_dumps(p_id, p_lease);
    if v_it.outcome = 'done' then
        v_row := v_it.held;
        v_attempts := v_row.attempts + 1;
        v_due := case when p_retryable and (v_attempts < 3) then v_now + coalesce(p_retry_in, gleaner.backoff(interval '30 seconds', interval '10 minutes', v_attempts, p_id::text)) end;
        v_it.status := gleaner.settle_dumps(v_row, 'failed'::public.processing_state, v_due, true, v_attempts, v_row.lost, coalesce(p_category, 'Error'), p_message);
    end if;
    return query select p_id, v_it.outcome, v_it.status;
end
$$;

ALTER FUNCTION gleaner.fail_dumps(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.fail_dumps(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) IS 'The work failed, which counts an attempt: the row waits, longer each time, or is dead.';

CREATE FUNCTION gleaner.fail_followups(p_id uuid, p_lease bigint, p_message text, p_category text DEFAULT 'Error'::text, p_retryable boolean DEFAULT true, p_retry_in interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now      timestamptz := clock_timestamp();
    v_it       record; v_row public.scheduled_actions; v_attempts integer; v_due timestamptz;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    v_it := gleaner.lock_followups(p_id, p_lease);
    if v_it.outcome = 'done' then
        v_row := v_it.held;
        v_attempts := v_row.attempts + 1;
        v_due := case when p_retryable and (v_attempts < 20) then v_now + coalesce(p_retry_in, gleaner.backoff(interval '60 seconds', interval '15 minutes', v_attempts, p_id::text)) end;
        v_it.status := gleaner.settle_followups(v_row, 'failed', v_due, true, v_attempts, v_row.lost, coalesce(p_category, 'Error'), p_message);
    end if;
    return query select p_id, v_it.outcome, v_it.status;
end
$$;

ALTER FUNCTION gleaner.fail_followups(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.fail_followups(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) IS 'The work failed, which counts an attempt: the row waits, longer each time, or is dead.';

CREATE FUNCTION gleaner.fail_jobs(p_id bigint, p_lease bigint, p_message text, p_category text DEFAULT 'Error'::text, p_retryable boolean DEFAULT true, p_retry_in interval DEFAULT NULL::interval) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now      timestamptz := clock_timestamp();
    v_it       record; v_row gleaner.jobs; v_attempts integer; v_due timestamptz;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    if p_lease < 0 then
        perform gleaner.unbatch_jobs(array[p_id], array[-p_lease]);
    end if;
    v_it := gleaner.lock_jobs(p_id, p_lease);
    if v_it.outcome = 'done' then
        v_row := v_it.held;
        v_attempts := v_row.attempts + 1;
        v_due := case when p_retryable and (v_attempts < 3) then v_now + coalesce(p_retry_in, gleaner.backoff(interval '30 seconds', interval '1 hour', v_attempts, p_id::text)) end;
        v_it.status := gleaner.settle_jobs(v_row, 'failed', v_due, true, v_attempts, v_row.lost, coalesce(p_category, 'Error'), p_message);
    end if;
    return query select p_id, v_it.outcome, v_it.status;
end
$$;

ALTER FUNCTION gleaner.fail_jobs(p_id bigint, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.fail_jobs(p_id bigint, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) IS 'The work failed, which counts an attempt: the row waits, longer each time, or is dead.';

CREATE FUNCTION gleaner.fail_polls(p_id uuid, p_lease bigint, p_message text, p_category text DEFAULT 'Error'::text, p_retryable boolean DEFAULT true, p_retry_in interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now      timestamptz := clock_timestamp();
    v_it       record; v_row gleaner.polls; v_attempts integer; v_due timestamptz;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    v_it := gleaner.lock_polls(p_id, p_lease);
    if v_it.outcome = 'done' then
        v_row := v_it.held;
        v_attempts := v_row.attempts + 1;
        v_due := case when p_retryable and (v_attempts < 3) then v_now + coalesce(p_retry_in, gleaner.backoff(interval '30 seconds', interval '1 hour', v_attempts, p_id::text)) end;
        v_it.status := gleaner.settle_polls(v_row, 'failed', v_due, true, v_attempts, v_row.lost, coalesce(p_category, 'Error'), p_message);
    end if;
    return query select p_id, v_it.outcome, v_it.status;
end
$$;

ALTER FUNCTION gleaner.fail_polls(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.fail_polls(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) IS 'The work failed, which counts an attempt: the row waits, longer each time, or is dead.';

CREATE FUNCTION gleaner.fail_runs(p_id uuid, p_lease bigint, p_message text, p_category text DEFAULT 'Error'::text, p_retryable boolean DEFAULT true, p_retry_in interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now      timestamptz := clock_timestamp();
    v_it       record; v_row public.execution_jobs; v_attempts integer; v_due timestamptz;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    v_it := gleaner.lock_runs(p_id, p_lease);
    if v_it.outcome = 'done' then
        v_row := v_it.held;
        v_attempts := v_row.attempts + 1;
        v_due := case when p_retryable and (v_attempts < 3) then v_now + coalesce(p_retry_in, gleaner.backoff(interval '30 seconds', interval '10 minutes', v_attempts, p_id::text)) end;
        v_it.status := gleaner.settle_runs(v_row, 'failed', v_due, true, v_attempts, v_row.lost, coalesce(p_category, 'Error'), p_message);
    end if;
    return query select p_id, v_it.outcome, v_it.status;
end
$$;

ALTER FUNCTION gleaner.fail_runs(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.fail_runs(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) IS 'The work failed, which counts an attempt: the row waits, longer each time, or is dead.';

CREATE FUNCTION gleaner.fail_schedules(p_id uuid, p_lease bigint, p_message text, p_category text DEFAULT 'Error'::text, p_retryable boolean DEFAULT true, p_retry_in interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now      timestamptz := clock_timestamp();
    v_it       record; v_row public.followup_schedules; v_attempts integer; v_due timestamptz;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    v_it := gleaner.lock_schedules(p_id, p_lease);
    if v_it.outcome = 'done' then
        v_row := v_it.held;
        v_attempts := v_row.attempts + 1;
        v_due := case when p_retryable and (v_attempts < 20) then v_now + coalesce(p_retry_in, gleaner.backoff(interval '10 seconds', interval '15 minutes', v_attempts, p_id::text)) end;
        v_it.status := gleaner.settle_schedules(v_row, 'failed', v_due, true, v_attempts, v_row.lost, coalesce(p_category, 'Error'), p_message);
    end if;
    return query select p_id, v_it.outcome, v_it.status;
end
$$;

ALTER FUNCTION gleaner.fail_schedules(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.fail_schedules(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) IS 'The work failed, which counts an attempt: the row waits, longer each time, or is dead.';

CREATE FUNCTION gleaner.find_ban(p_user uuid) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if exists (select from auth.users as u where u.id = p_user and u.banned_until > clock_timestamp()) then
        return 'banned';
    end if;
    if exists (select from gleaner.deleted_user as d where d.id = p_user) then
        return 'deleted';
    end if;
    if gleaner.is_disabled(p_user) then
        return 'disabled';
    end if;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.find_ban(p_user uuid) IS 'Why a user may not sign in: banned, deleted or disabled; null when it may.';

CREATE FUNCTION gleaner.find_dumps(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_begun  timestamptz;
    v_cursor jsonb := gleaner.read_cursor('gleaner.cursor_dumps', '', p_now);
    v_at     timestamptz;
begin
    loop
        v_begun := clock_timestamp();
        select coalesce(array_agg(f.id), '{}'), array_agg(f.held_before), count(*), max(f.at)
        into keys, held_before, seen, v_at
        from (
                select q.id as id, q.due_at as at, (case when q.lost = 0 and q.processing_state not in ('claimed'::public.processing_state, 'processing'::public.processing_state) then 0
                    when q.lost = 0 and q.started <= 0 then 1 - q.started when q.lost + (case when q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and q.started >= 1 then 1 else 0 end) >= 3 then -2 else -1 end)::smallint as held_before
                from public.agent_processing_queue as q
                where q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null
                  and q.due_at <= p_by and (q.due_at <= p_now or q.processing_state in ('pending'::public.processing_state, 'failed'::public.processing_state))
                  and (q.due_at, q.id) >= (coalesce((v_cursor ->> 'at')::timestamptz, '-infinity'), coalesce((v_cursor ->> 'key')::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                  and q.id <> all (p_passed)
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'dumps' and r.tenant = '' and r.until > p_now)
                order by q.due_at, q.id
                limit p_limit
                for no key update skip locked
        ) as f;
        exit when seen > 0 or v_cursor is null;
        v_cursor := null;
    end loop;
    -- Not behind rows that this claim passed over: the next one must find them.
    if cardinality(p_passed) = 0 and (seen > 0) and (v_cursor is not null or seen >= 64 and seen = p_limit or clock_timestamp() - v_begun - seen * interval '5 microseconds' > interval '3 milliseconds') then
        perform gleaner.write_cursor('gleaner.cursor_dumps', '', v_cursor, p_now, clock_timestamp() - v_begun,
            jsonb_build_object('at', v_at, 'key', keys[cardinality(keys)]));
    end if;
end
$$;

ALTER FUNCTION gleaner.find_dumps(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.find_followups(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_begun  timestamptz;
    v_cursor jsonb := gleaner.read_cursor('gleaner.cursor_followups', concat_ws(' ', p_kinds), p_now);
    v_lanes  jsonb;
    v_most   integer[];
    v_kinds  text[];
    v_page   bigint := -9223372036854775808; v_turn bigint; v_turned boolean := false; v_more boolean := false;
begin
    loop
        v_begun := clock_timestamp();
        if p_kinds is not null then v_kinds := p_kinds;
        elsif v_cursor is not null then
            v_kinds := array(select jsonb_array_elements_text(v_cursor -> 'kinds'))::text[];
        else
            with recursive waiting as (
            (select (hashtextextended(q.action_type collate "C", 0) & -16) as lane, q.action_type as kind, 1 as n from public.scheduled_actions as q
             where q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) > v_page order by (hashtextextended(q.action_type collate "C", 0) & -16) limit 1)
            union all
            select next.lane, next.kind, waiting.n + 1
            from waiting
            cross join lateral (
                select (hashtextextended(q.action_type collate "C", 0) & -16) as lane, q.action_type as kind from public.scheduled_actions as q
                where q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) > (waiting.lane | 15) order by (hashtextextended(q.action_type collate "C", 0) & -16) limit 1
            ) as next
            where waiting.n < 200
        )
            select coalesce(array_agg(w.kind), '{}'), coalesce(max(w.lane) | 15, v_page), count(*) = 200 into v_kinds, v_page, v_more from waiting as w;
            if v_more and v_turn is null then
                -- More kinds than one look serves: begin anywhere, so that each has its turn.
                v_turn := ((random() - 0.5) * 1.8e19)::bigint; v_page := v_turn; continue;
            elsif v_turned then
                -- Round again: what comes from here on was seen.
                v_more := v_more and v_page < v_turn;
            elsif v_turn is not null and not v_more then
                v_page := -9223372036854775808; v_more := true; v_turned := true;
            end if;
        end if;
        -- How many rows of each lane the batch will hold, so that no more are locked than are taken. One row is not worth the question.
        v_most := null;
        if p_limit > 1 then
            v_most := array(
                select count(head.n)
                from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                left join (
                    select k.n as kind_n, c.class, 1 as n
                    from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                    cross join lateral (
                        select q.due_at as at, q.id as id
                        from public.scheduled_actions as q
                        where q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and q.action_type = k.kind
                          and q.due_at <= p_by and (q.due_at <= p_now or q.status in ('pending', 'failed'))
                          and (q.due_at, q.id) >= (coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '0'])::timestamptz, '-infinity'), coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                          and q.id <> all (p_passed)
                          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'followups' and r.tenant = '' and r.until > p_now)
                        order by q.due_at, q.id
                        limit p_limit
                    ) as p
                    order by p.at + c.class * interval '0', p.id
                    limit p_limit
                ) as head on head.kind_n = k.n and head.class = c.class
                group by k.n, c.class
                order by k.n, c.class);
        end if;
        loop
            select coalesce(array_agg(f.id), '{}'), array_agg(f.held_before), coalesce(count(*), 0),
                   (select jsonb_object_agg(last.lane, jsonb_build_array(last.at, last.id))
                    from (select distinct on (u.lane) u.lane, u.at, u.id from unnest(array_agg(f.lane), array_agg(f.at), array_agg(f.id)) as u (lane, at, id)
                          order by u.lane, u.at desc, u.id desc) as last)
            into keys, held_before, seen, v_lanes
            from (
                select p.*, k.kind::text || ' ' || c.class::text as lane
                from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                cross join lateral (
                    select q.id as id, q.due_at as at, (case when q.lost = 0 and q.status not in ('processing') then 0
                    when q.lost = 0 and q.started <= 0 then 1 - q.started when (q.status in ('processing') and q.started = 2 or q.lost + (case when q.status in ('processing') and q.started >= 1 then 1 else 0 end) >= 3) then -2 else -1 end)::smallint as held_before
                    from public.scheduled_actions as q
                where q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and q.action_type = k.kind
                  and q.due_at <= p_by and (q.due_at <= p_now or q.status in ('pending', 'failed'))
                  and (q.due_at, q.id) >= (coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '0'])::timestamptz, '-infinity'), coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                  and q.id <> all (p_passed)
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'followups' and r.tenant = '' and r.until > p_now)
                order by q.due_at, q.id
                limit coalesce(v_most[(k.n - 1)::integer * 1 + c.class + 1], p_limit)
                for no key update skip locked
                ) as p
                order by p.at + c.class * interval '0', p.id
                limit p_limit
            ) as f;
            exit when seen > 0 or v_most is null;
            -- What was counted is locked by now. Then the other lanes are due.
            v_most := null;
        end loop;
        exit when seen > 0 or v_cursor is null and not v_more;
        v_cursor := null;
    end loop;
    -- Not behind rows that this claim passed over: the next one must find them.
    if cardinality(p_passed) = 0 and (seen > 0) and (v_cursor is not null or seen >= 64 and seen = p_limit or clock_timestamp() - v_begun - seen * interval '5 microseconds' > interval '3 milliseconds') then
        perform gleaner.write_cursor('gleaner.cursor_followups', concat_ws(' ', p_kinds), v_cursor, p_now, clock_timestamp() - v_begun,
            jsonb_build_object('lanes', coalesce(v_cursor -> 'lanes', '{}') || coalesce(v_lanes, '{}'), 'kinds', to_jsonb(v_kinds)));
    end if;
end
$$;

ALTER FUNCTION gleaner.find_followups(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.find_global_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_begun  timestamptz;
    v_cursor jsonb := gleaner.read_cursor('gleaner.cursor_activities_global', concat_ws(' ', p_kinds), p_now);
    v_lanes  jsonb;
    v_most   integer[];
    v_kinds  text[];
    v_page   bigint := -9223372036854775808; v_turn bigint; v_turned boolean := false; v_more boolean := false;
begin
    loop
        v_begun := clock_timestamp();
        if p_kinds is not null then v_kinds := p_kinds;
        elsif v_cursor is not null then
            v_kinds := array(select jsonb_array_elements_text(v_cursor -> 'kinds'))::text[];
        else
            with recursive waiting as (
            (select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind, 1 as n from public.activities as q
             where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > v_page order by (hashtextextended(q.type collate "C", 0) & -16) limit 1)
            union all
            select next.lane, next.kind, waiting.n + 1
            from waiting
            cross join lateral (
                select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > (waiting.lane | 15) order by (hashtextextended(q.type collate "C", 0) & -16) limit 1
            ) as next
            where waiting.n < 200
        )
            select coalesce(array_agg(w.kind), '{}'), coalesce(max(w.lane) | 15, v_page), count(*) = 200 into v_kinds, v_page, v_more from waiting as w;
            if v_more and v_turn is null then
                -- More kinds than one look serves: begin anywhere, so that each has its turn.
                v_turn := ((random() - 0.5) * 1.8e19)::bigint; v_page := v_turn; continue;
            elsif v_turned then
                -- Round again: what comes from here on was seen.
                v_more := v_more and v_page < v_turn;
            elsif v_turn is not null and not v_more then
                v_page := -9223372036854775808; v_more := true; v_turned := true;
            end if;
        end if;
        -- How many rows of each lane the batch will hold, so that no more are locked than are taken. One row is not worth the question.
        v_most := null;
        if p_limit > 1 then
            v_most := array(
                select count(head.n)
                from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                left join (
                    select k.n as kind_n, c.class, 1 as n
                    from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                    cross join lateral (
                        select q.due_at as at, q.id as id
                        from public.activities as q
                        where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and q.type = k.kind
                          and q.due_at <= p_by and (q.due_at <= p_now or q.processing_status in ('raw', 'failed'))
                          and (q.due_at, q.id) >= (coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '0'])::timestamptz, '-infinity'), coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                          and q.id <> all (p_passed)
                          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'activities' and r.tenant = '' and r.until > p_now)
                        order by q.due_at, q.id
                        limit p_limit
                    ) as p
                    order by p.at + c.class * interval '0', p.id
                    limit p_limit
                ) as head on head.kind_n = k.n and head.class = c.class
                group by k.n, c.class
                order by k.n, c.class);
        end if;
        loop
            select coalesce(array_agg(f.id), '{}'), array_agg(f.held_before), coalesce(count(*), 0),
                   (select jsonb_object_agg(last.lane, jsonb_build_array(last.at, last.id))
                    from (select distinct on (u.lane) u.lane, u.at, u.id from unnest(array_agg(f.lane), array_agg(f.at), array_agg(f.id)) as u (lane, at, id)
                          order by u.lane, u.at desc, u.id desc) as last)
            into keys, held_before, seen, v_lanes
            from (
                select p.*, k.kind::text || ' ' || c.class::text as lane
                from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                cross join lateral (
                    select q.id as id, q.due_at as at, (case when q.lost = 0 and q.processing_status not in ('processing') then 0
                    when q.lost = 0 and q.started <= 0 then 1 - q.started when q.lost + (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end) >= 3 then -2 else -1 end)::smallint as held_before
                    from public.activities as q
                where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and q.type = k.kind
                  and q.due_at <= p_by and (q.due_at <= p_now or q.processing_status in ('raw', 'failed'))
                  and (q.due_at, q.id) >= (coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '0'])::timestamptz, '-infinity'), coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                  and q.id <> all (p_passed)
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'activities' and r.tenant = '' and r.until > p_now)
                order by q.due_at, q.id
                limit coalesce(v_most[(k.n - 1)::integer * 1 + c.class + 1], p_limit)
                for no key update skip locked
                ) as p
                order by p.at + c.class * interval '0', p.id
                limit p_limit
            ) as f;
            exit when seen > 0 or v_most is null;
            -- What was counted is locked by now. Then the other lanes are due.
            v_most := null;
        end loop;
        exit when seen > 0 or v_cursor is null and not v_more;
        v_cursor := null;
    end loop;
    -- Not behind rows that this claim passed over: the next one must find them.
    if cardinality(p_passed) = 0 and (seen > 0) and (v_cursor is not null or seen >= 64 and seen = p_limit or clock_timestamp() - v_begun - seen * interval '5 microseconds' > interval '3 milliseconds') then
        perform gleaner.write_cursor('gleaner.cursor_activities_global', concat_ws(' ', p_kinds), v_cursor, p_now, clock_timestamp() - v_begun,
            jsonb_build_object('lanes', coalesce(v_cursor -> 'lanes', '{}') || coalesce(v_lanes, '{}'), 'kinds', to_jsonb(v_kinds)));
    end if;
end
$$;

ALTER FUNCTION gleaner.find_global_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) OWNER TO gleaner_engine;

CREATE TABLE gleaner.bulk_range (
    queue text NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    class smallint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    CONSTRAINT bulk_range_not_empty CHECK ((first <= last))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

COMMENT ON TABLE gleaner.bulk_range IS 'Rows that were put in together and wait together: one entry in the line for all of them.';

CREATE FUNCTION gleaner.find_jobs(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed bigint[], p_kinds text[], p_batches int8multirange, p_before gleaner.bulk_range, OUT keys bigint[], OUT held_before smallint[], OUT fresh boolean[], OUT seen integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_begun  timestamptz;
    v_cursor jsonb := gleaner.read_cursor('gleaner.cursor_jobs', concat_ws(' ', p_kinds), p_now);
    v_lanes  jsonb;
    v_most   integer[];
    v_kinds  text[];
    v_page   bigint := -9223372036854775808; v_turn bigint; v_turned boolean := false; v_more boolean := false;
begin
    loop
        v_begun := clock_timestamp();
        if p_kinds is not null then v_kinds := p_kinds;
        elsif v_cursor is not null then
            v_kinds := array(select jsonb_array_elements_text(v_cursor -> 'kinds'))::text[];
        else
            with recursive waiting as (
            (select ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) as lane, q.kind as kind, 1 as n from gleaner.jobs as q
             where q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) > v_page order by ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) limit 1)
            union all
            select next.lane, next.kind, waiting.n + 1
            from waiting
            cross join lateral (
                select ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) as lane, q.kind as kind from gleaner.jobs as q
                where q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) > (waiting.lane | 15) order by ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) limit 1
            ) as next
            where waiting.n < 200
        )
            select coalesce(array_agg(w.kind), '{}'), coalesce(max(w.lane) | 15, v_page), count(*) = 200 into v_kinds, v_page, v_more from waiting as w;
            if v_more and v_turn is null then
                -- More kinds than one look serves: begin anywhere, so that each has its turn.
                v_turn := ((random() - 0.5) * 1.8e19)::bigint; v_page := v_turn; continue;
            elsif v_turned then
                -- Round again: what comes from here on was seen.
                v_more := v_more and v_page < v_turn;
            elsif v_turn is not null and not v_more then
                v_page := -9223372036854775808; v_more := true; v_turned := true;
            end if;
        end if;
        -- How many rows of each lane the batch will hold, so that no more are locked than are taken. One row is not worth the question.
        v_most := null;
        if p_limit > 1 then
            v_most := array(
                select count(head.n)
                from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 3) as c (class)
                left join (
                    select k.n as kind_n, c.class, 1 as n
                    from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 3) as c (class)
                    cross join lateral (
                        select q.due_at as at, q.id as id
                        from gleaner.jobs as q
                        where q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) = ((hashtextextended(k.kind collate "C", 0) & -16) + c.class) and q.kind = k.kind
                          and q.due_at <= p_by and (q.due_at <= p_now or q.status in ('ready', 'failed'))
                          and (q.due_at, q.id) >= (coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '0'])::timestamptz, '-infinity'), coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '1'])::bigint, (-9223372036854775808)::bigint))
                          -- What comes before the first bulk range in the line, and is not held by a batch lease.
                          and (q.due_at, q.id) < (coalesce(p_before.due_at + (p_before.class - c.class) * interval '10 minutes', 'infinity'), coalesce(p_before.first, 9223372036854775807))
                          and (q.lease <> 0 or not p_batches @> q.id)
                          and q.id <> all (p_passed)
                          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'jobs' and r.tenant = '' and r.until > p_now)
                        order by q.due_at, q.id
                        limit p_limit
                    ) as p
                    order by p.at + c.class * interval '10 minutes', p.id
                    limit p_limit
                ) as head on head.kind_n = k.n and head.class = c.class
                group by k.n, c.class
                order by k.n, c.class);
        end if;
        loop
            select coalesce(array_agg(f.id), '{}'), array_agg(f.held_before), array_agg(f.fresh), coalesce(count(*), 0),
                   (select jsonb_object_agg(last.lane, jsonb_build_array(last.at, last.id))
                    from (select distinct on (u.lane) u.lane, u.at, u.id from unnest(array_agg(f.lane), array_agg(f.at), array_agg(f.id)) as u (lane, at, id)
                          order by u.lane, u.at desc, u.id desc) as last)
            into keys, held_before, fresh, seen, v_lanes
            from (
                select p.*, k.kind::text || ' ' || c.class::text as lane
                from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 3) as c (class)
                cross join lateral (
                    select q.id as id, q.due_at as at, (case when q.lost = 0 and q.status not in ('running') then 0
                    when q.lost = 0 and q.started <= 0 then 1 - q.started when q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end) >= 3 then -2 else -1 end)::smallint as held_before, q.lease = 0 and q.status = 'ready' and q.unique_key is null as fresh
                    from gleaner.jobs as q
                where q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) = ((hashtextextended(k.kind collate "C", 0) & -16) + c.class) and q.kind = k.kind
                  and q.due_at <= p_by and (q.due_at <= p_now or q.status in ('ready', 'failed'))
                  and (q.due_at, q.id) >= (coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '0'])::timestamptz, '-infinity'), coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '1'])::bigint, (-9223372036854775808)::bigint))
                  -- What comes before the first bulk range in the line, and is not held by a batch lease.
                  and (q.due_at, q.id) < (coalesce(p_before.due_at + (p_before.class - c.class) * interval '10 minutes', 'infinity'), coalesce(p_before.first, 9223372036854775807))
                  and (q.lease <> 0 or not p_batches @> q.id)
                  and q.id <> all (p_passed)
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'jobs' and r.tenant = '' and r.until > p_now)
                order by q.due_at, q.id
                limit coalesce(v_most[(k.n - 1)::integer * 4 + c.class + 1], p_limit)
                for no key update skip locked
                ) as p
                order by p.at + c.class * interval '10 minutes', p.id
                limit p_limit
            ) as f;
            exit when seen > 0 or v_most is null;
            -- What was counted is locked by now. Then the other lanes are due.
            v_most := null;
        end loop;
        exit when seen > 0 or v_cursor is null and not v_more or p_before.first is not null;
        v_cursor := null;
    end loop;
    if seen = 0 and p_before.first is not null then
        -- Nothing waits by itself before the bulk range. Dead entries there need not be read again.
        select jsonb_object_agg(k.kind::text || ' ' || c.class::text, jsonb_build_array(least(p_by, p_before.due_at + (p_before.class - c.class) * interval '10 minutes'), (-9223372036854775808)::bigint))
        into v_lanes
        from unnest(v_kinds) as k (kind) cross join generate_series(0, 3) as c (class);
    end if;
    -- Not behind rows that this claim passed over: the next one must find them.
    if cardinality(p_passed) = 0 and (seen > 0 or p_before.first is not null) and (v_cursor is not null or seen >= 64 and seen = p_limit or clock_timestamp() - v_begun - seen * interval '5 microseconds' > interval '3 milliseconds') then
        perform gleaner.write_cursor('gleaner.cursor_jobs', concat_ws(' ', p_kinds), v_cursor, p_now, clock_timestamp() - v_begun,
            jsonb_build_object('lanes', coalesce(v_cursor -> 'lanes', '{}') || coalesce(v_lanes, '{}'), 'kinds', to_jsonb(v_kinds)));
    end if;
end
$$;

ALTER FUNCTION gleaner.find_jobs(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed bigint[], p_kinds text[], p_batches int8multirange, p_before gleaner.bulk_range, OUT keys bigint[], OUT held_before smallint[], OUT fresh boolean[], OUT seen integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.find_open_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_owner bigint, p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_begun  timestamptz;
    v_cursor jsonb := gleaner.read_cursor('gleaner.cursor_activities_open', concat_ws(' ', p_kinds), p_now);
    v_lanes  jsonb;
    v_most   integer[];
    v_kinds  text[];
    v_page   bigint := -9223372036854775808; v_turn bigint; v_turned boolean := false; v_more boolean := false;
begin
    loop
        v_begun := clock_timestamp();
        if p_kinds is not null then v_kinds := p_kinds;
        elsif v_cursor is not null then
            v_kinds := array(select jsonb_array_elements_text(v_cursor -> 'kinds'))::text[];
        else
            with recursive waiting as (
            (select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind, 1 as n from public.activities as q
             where q.sales_id is not null and q.open_at is not null and q.sales_id is distinct from p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > v_page order by (hashtextextended(q.type collate "C", 0) & -16) limit 1)
            union all
            select next.lane, next.kind, waiting.n + 1
            from waiting
            cross join lateral (
                select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                where q.sales_id is not null and q.open_at is not null and q.sales_id is distinct from p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > (waiting.lane | 15) order by (hashtextextended(q.type collate "C", 0) & -16) limit 1
            ) as next
            where waiting.n < 200
        )
            select coalesce(array_agg(w.kind), '{}'), coalesce(max(w.lane) | 15, v_page), count(*) = 200 into v_kinds, v_page, v_more from waiting as w;
            if v_more and v_turn is null then
                -- More kinds than one look serves: begin anywhere, so that each has its turn.
                v_turn := ((random() - 0.5) * 1.8e19)::bigint; v_page := v_turn; continue;
            elsif v_turned then
                -- Round again: what comes from here on was seen.
                v_more := v_more and v_page < v_turn;
            elsif v_turn is not null and not v_more then
                v_page := -9223372036854775808; v_more := true; v_turned := true;
            end if;
        end if;
        -- How many rows of each lane the batch will hold, so that no more are locked than are taken. One row is not worth the question.
        v_most := null;
        if p_limit > 1 then
            v_most := array(
                select count(head.n)
                from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                left join (
                    select k.n as kind_n, c.class, 1 as n
                    from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                    cross join lateral (
                        select q.open_at as at, q.id as id
                        from public.activities as q
                        where q.sales_id is not null and q.open_at is not null and q.sales_id is distinct from p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and q.type = k.kind
                          and q.open_at <= p_by and (q.due_at <= p_now or q.processing_status in ('raw', 'failed'))
                          and (q.open_at, q.id) >= (coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '0'])::timestamptz, '-infinity'), coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                          and q.id <> all (p_passed)
                          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'activities' and r.tenant = '' and r.until > p_now)
                        order by q.open_at, q.id
                        limit p_limit
                    ) as p
                    order by p.at + c.class * interval '0', p.id
                    limit p_limit
                ) as head on head.kind_n = k.n and head.class = c.class
                group by k.n, c.class
                order by k.n, c.class);
        end if;
        loop
            select coalesce(array_agg(f.id), '{}'), array_agg(f.held_before), coalesce(count(*), 0),
                   (select jsonb_object_agg(last.lane, jsonb_build_array(last.at, last.id))
                    from (select distinct on (u.lane) u.lane, u.at, u.id from unnest(array_agg(f.lane), array_agg(f.at), array_agg(f.id)) as u (lane, at, id)
                          order by u.lane, u.at desc, u.id desc) as last)
            into keys, held_before, seen, v_lanes
            from (
                select p.*, k.kind::text || ' ' || c.class::text as lane
                from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                cross join lateral (
                    select q.id as id, q.open_at as at, (case when q.lost = 0 and q.processing_status not in ('processing') then 0
                    when q.lost = 0 and q.started <= 0 then 1 - q.started when q.lost + (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end) >= 3 then -2 else -1 end)::smallint as held_before
                    from public.activities as q
                where q.sales_id is not null and q.open_at is not null and q.sales_id is distinct from p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and q.type = k.kind
                  and q.open_at <= p_by and (q.due_at <= p_now or q.processing_status in ('raw', 'failed'))
                  and (q.open_at, q.id) >= (coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '0'])::timestamptz, '-infinity'), coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                  and q.id <> all (p_passed)
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'activities' and r.tenant = '' and r.until > p_now)
                order by q.open_at, q.id
                limit coalesce(v_most[(k.n - 1)::integer * 1 + c.class + 1], p_limit)
                for no key update skip locked
                ) as p
                order by p.at + c.class * interval '0', p.id
                limit p_limit
            ) as f;
            exit when seen > 0 or v_most is null;
            -- What was counted is locked by now. Then the other lanes are due.
            v_most := null;
        end loop;
        exit when seen > 0 or v_cursor is null and not v_more;
        v_cursor := null;
    end loop;
    -- Not behind rows that this claim passed over: the next one must find them.
    if cardinality(p_passed) = 0 and (seen > 0) and (v_cursor is not null or seen >= 64 and seen = p_limit or clock_timestamp() - v_begun - seen * interval '5 microseconds' > interval '3 milliseconds') then
        perform gleaner.write_cursor('gleaner.cursor_activities_open', concat_ws(' ', p_kinds), v_cursor, p_now, clock_timestamp() - v_begun,
            jsonb_build_object('lanes', coalesce(v_cursor -> 'lanes', '{}') || coalesce(v_lanes, '{}'), 'kinds', to_jsonb(v_kinds)));
    end if;
end
$$;

ALTER FUNCTION gleaner.find_open_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_owner bigint, p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.find_overdue_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_owner bigint, p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_begun  timestamptz := clock_timestamp();
    v_fields integer;
begin
    if gleaner.read_cursor('gleaner.cursor_activities_overdue', concat_ws(' ', p_kinds), p_now) is not null then
        keys := '{}';
        seen := 0;
        return;
    end if;
    with recursive owners as (
        (select q.sales_id as owner from public.activities as q
         where q.sales_id is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null order by q.sales_id limit 1)
        union all
        select next.owner
        from owners
        cross join lateral (
            select q.sales_id as owner from public.activities as q
            where q.sales_id is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and q.sales_id > owners.owner
            order by q.sales_id limit 1
        ) as next
    ), fields as (
        select w.owner, w.kind, w.open_after
        from (select owners.owner, coalesce(o.stale_threshold_minutes * interval '1 minute', interval '5 minutes') as open_after
              from owners join public.sales as o on o.id = owners.owner
              where coalesce(o.allow_remote_processing, false) and owners.owner is distinct from p_owner offset 0) as shared
        cross join lateral (
            with recursive waiting as (
                (select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                 where q.sales_id = shared.owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null order by (hashtextextended(q.type collate "C", 0) & -16) limit 1)
                union all
                select next.lane, next.kind
                from waiting
                cross join lateral (
                    select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                    where q.sales_id = shared.owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > (waiting.lane | 15)
                    order by (hashtextextended(q.type collate "C", 0) & -16) limit 1
                ) as next
            )
            select shared.owner, waiting.kind, shared.open_after from waiting
            where p_kinds is null or waiting.kind = any (p_kinds)
        ) as w
    ), share as (
        select greatest(1, ceil(p_limit::numeric / greatest(count(*), 1)))::integer as take from fields
    )
    select coalesce(array_agg(f.id), '{}'), array_agg(f.held_before), count(*), (select count(*) from fields)
    into keys, held_before, seen, v_fields
    from (
        select p.*
        from fields cross join share cross join generate_series(0, 0) as c (class)
        cross join lateral (
            select q.id as id, q.due_at as at, (case when q.lost = 0 and q.processing_status not in ('processing') then 0
                    when q.lost = 0 and q.started <= 0 then 1 - q.started when q.lost + (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end) >= 3 then -2 else -1 end)::smallint as held_before
            from public.activities as q
            where q.sales_id = fields.owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(fields.kind collate "C", 0) & -16) and q.type = fields.kind
              -- The first keeps it on the index; the second is the policy, for a due time may be earlier than the row.
              and q.due_at <= least(p_by, p_now) - fields.open_after and q.created_at <= least(p_by, p_now) - fields.open_after
              and q.id <> all (p_passed) and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'activities' and r.tenant = '' and r.until > p_now)
            order by q.due_at, q.id
            limit share.take
            for no key update skip locked
        ) as p
        order by p.at, p.id
        limit p_limit
    ) as f;
    if seen = 0 and v_fields > 500 then
        perform gleaner.write_cursor('gleaner.cursor_activities_overdue', concat_ws(' ', p_kinds), null, p_now, clock_timestamp() - v_begun, '{}');
    end if;
end
$$;

ALTER FUNCTION gleaner.find_overdue_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_owner bigint, p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.find_own_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_owner bigint, p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_begun  timestamptz;
    v_cursor jsonb := gleaner.read_cursor('gleaner.cursor_activities_own', concat_ws(' ', p_owner, p_kinds), p_now);
    v_lanes  jsonb;
    v_most   integer[];
    v_kinds  text[];
    v_page   bigint := -9223372036854775808; v_turn bigint; v_turned boolean := false; v_more boolean := false;
begin
    loop
        v_begun := clock_timestamp();
        if p_kinds is not null then v_kinds := p_kinds;
        elsif v_cursor is not null then
            v_kinds := array(select jsonb_array_elements_text(v_cursor -> 'kinds'))::text[];
        else
            with recursive waiting as (
            (select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind, 1 as n from public.activities as q
             where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > v_page order by (hashtextextended(q.type collate "C", 0) & -16) limit 1)
            union all
            select next.lane, next.kind, waiting.n + 1
            from waiting
            cross join lateral (
                select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > (waiting.lane | 15) order by (hashtextextended(q.type collate "C", 0) & -16) limit 1
            ) as next
            where waiting.n < 200
        )
            select coalesce(array_agg(w.kind), '{}'), coalesce(max(w.lane) | 15, v_page), count(*) = 200 into v_kinds, v_page, v_more from waiting as w;
            if v_more and v_turn is null then
                -- More kinds than one look serves: begin anywhere, so that each has its turn.
                v_turn := ((random() - 0.5) * 1.8e19)::bigint; v_page := v_turn; continue;
            elsif v_turned then
                -- Round again: what comes from here on was seen.
                v_more := v_more and v_page < v_turn;
            elsif v_turn is not null and not v_more then
                v_page := -9223372036854775808; v_more := true; v_turned := true;
            end if;
        end if;
        -- How many rows of each lane the batch will hold, so that no more are locked than are taken. One row is not worth the question.
        v_most := null;
        if p_limit > 1 then
            v_most := array(
                select count(head.n)
                from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                left join (
                    select k.n as kind_n, c.class, 1 as n
                    from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                    cross join lateral (
                        select q.due_at as at, q.id as id
                        from public.activities as q
                        where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and q.type = k.kind
                          and q.due_at <= p_by and (q.due_at <= p_now or q.processing_status in ('raw', 'failed'))
                          and (q.due_at, q.id) >= (coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '0'])::timestamptz, '-infinity'), coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                          and q.id <> all (p_passed)
                          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'activities' and r.tenant = '' and r.until > p_now)
                        order by q.due_at, q.id
                        limit p_limit
                    ) as p
                    order by p.at + c.class * interval '0', p.id
                    limit p_limit
                ) as head on head.kind_n = k.n and head.class = c.class
                group by k.n, c.class
                order by k.n, c.class);
        end if;
        loop
            select coalesce(array_agg(f.id), '{}'), array_agg(f.held_before), coalesce(count(*), 0),
                   (select jsonb_object_agg(last.lane, jsonb_build_array(last.at, last.id))
                    from (select distinct on (u.lane) u.lane, u.at, u.id from unnest(array_agg(f.lane), array_agg(f.at), array_agg(f.id)) as u (lane, at, id)
                          order by u.lane, u.at desc, u.id desc) as last)
            into keys, held_before, seen, v_lanes
            from (
                select p.*, k.kind::text || ' ' || c.class::text as lane
                from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                cross join lateral (
                    select q.id as id, q.due_at as at, (case when q.lost = 0 and q.processing_status not in ('processing') then 0
                    when q.lost = 0 and q.started <= 0 then 1 - q.started when q.lost + (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end) >= 3 then -2 else -1 end)::smallint as held_before
                    from public.activities as q
                where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and q.type = k.kind
                  and q.due_at <= p_by and (q.due_at <= p_now or q.processing_status in ('raw', 'failed'))
                  and (q.due_at, q.id) >= (coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '0'])::timestamptz, '-infinity'), coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                  and q.id <> all (p_passed)
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'activities' and r.tenant = '' and r.until > p_now)
                order by q.due_at, q.id
                limit coalesce(v_most[(k.n - 1)::integer * 1 + c.class + 1], p_limit)
                for no key update skip locked
                ) as p
                order by p.at + c.class * interval '0', p.id
                limit p_limit
            ) as f;
            exit when seen > 0 or v_most is null;
            -- What was counted is locked by now. Then the other lanes are due.
            v_most := null;
        end loop;
        exit when seen > 0 or v_cursor is null and not v_more;
        v_cursor := null;
    end loop;
    -- Not behind rows that this claim passed over: the next one must find them.
    if cardinality(p_passed) = 0 and (seen > 0) and (v_cursor is not null or seen >= 64 and seen = p_limit or clock_timestamp() - v_begun - seen * interval '5 microseconds' > interval '3 milliseconds') then
        perform gleaner.write_cursor('gleaner.cursor_activities_own', concat_ws(' ', p_owner, p_kinds), v_cursor, p_now, clock_timestamp() - v_begun,
            jsonb_build_object('lanes', coalesce(v_cursor -> 'lanes', '{}') || coalesce(v_lanes, '{}'), 'kinds', to_jsonb(v_kinds)));
    end if;
end
$$;

ALTER FUNCTION gleaner.find_own_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_owner bigint, p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.find_polls(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_begun  timestamptz;
    v_cursor jsonb := gleaner.read_cursor('gleaner.cursor_polls', '', p_now);
    v_at     timestamptz;
begin
    loop
        v_begun := clock_timestamp();
        select coalesce(array_agg(f.id), '{}'), array_agg(f.held_before), count(*), max(f.at)
        into keys, held_before, seen, v_at
        from (
                select q.provider_id as id, q.due_at as at, (case when q.lost = 0 and q.status not in ('running') then 0
                    when q.lost = 0 and q.started <= 0 then 1 - q.started when q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end) >= 1000000 then -2 else -1 end)::smallint as held_before
                from gleaner.polls as q
                where q.status in ('ready', 'running', 'failed') and q.due_at is not null
                  and q.due_at <= p_by and (q.due_at <= p_now or q.status in ('ready', 'failed'))
                  and (q.due_at, q.provider_id) >= (coalesce((v_cursor ->> 'at')::timestamptz, '-infinity'), coalesce((v_cursor ->> 'key')::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                  and q.provider_id <> all (p_passed)
                  and q.provider_id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'polls' and r.tenant = '' and r.until > p_now)
                order by q.due_at, q.provider_id
                limit p_limit
                for no key update skip locked
        ) as f;
        exit when seen > 0 or v_cursor is null;
        v_cursor := null;
    end loop;
    -- Not behind rows that this claim passed over: the next one must find them.
    if cardinality(p_passed) = 0 and (seen > 0) and (v_cursor is not null or seen >= 64 and seen = p_limit or clock_timestamp() - v_begun - seen * interval '5 microseconds' > interval '3 milliseconds') then
        perform gleaner.write_cursor('gleaner.cursor_polls', '', v_cursor, p_now, clock_timestamp() - v_begun,
            jsonb_build_object('at', v_at, 'key', keys[cardinality(keys)]));
    end if;
end
$$;

ALTER FUNCTION gleaner.find_polls(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.find_range_jobs(p_kinds text[], p_now timestamp with time zone, p_by timestamp with time zone, p_passed bigint[]) RETURNS gleaner.bulk_range
    LANGUAGE plpgsql
    AS $$
declare
    v_cursor jsonb := gleaner.read_cursor('gleaner.cursor_jobs_ranges', concat(p_kinds), p_now);
    v_begun  timestamptz;
    v_kinds  text[];
    v_range  gleaner.bulk_range;
begin
    loop
        v_begun := clock_timestamp();
        v_kinds := case when p_kinds is not null then p_kinds
            when v_cursor is not null then array(select jsonb_array_elements_text(v_cursor -> 'kinds'))
            else array(
            with recursive kinds as (
                (select r.kind from gleaner.bulk_range as r where r.queue = 'jobs' order by r.kind limit 1)
                union all
                select next.kind
                from kinds
                cross join lateral (
                    select r.kind from gleaner.bulk_range as r where r.queue = 'jobs' and r.kind > kinds.kind order by r.kind limit 1
                ) as next
            )
            select k.kind from kinds as k) end;
        select r.* into v_range
        from unnest(v_kinds) as k (kind)
        cross join generate_series(0, 3) as c (class)
        cross join lateral (
            select r.* from gleaner.bulk_range as r
            where r.queue = 'jobs' and r.kind = k.kind and r.class = c.class and r.due_at <= p_by
              and (r.due_at, r.first) >= (coalesce((v_cursor #>> array['lanes', k.kind || ' ' || c.class, '0'])::timestamptz, '-infinity'),
                                          coalesce((v_cursor #>> array['lanes', k.kind || ' ' || c.class, '1'])::bigint, (-9223372036854775808)::bigint))
              and r.first <> all (p_passed)
            order by r.due_at, r.first
            limit 1
        ) as r
        order by r.due_at + r.class * interval '10 minutes', r.first
        limit 1;
        exit when v_range.first is not null or v_cursor is null;
        v_cursor := null;
    end loop;
    if v_range.first is not null then
        -- What comes before this range in its lane is taken or dead.
        perform gleaner.write_cursor('gleaner.cursor_jobs_ranges', concat(p_kinds), v_cursor, p_now, 2 * (clock_timestamp() - v_begun),
            jsonb_build_object('kinds', to_jsonb(v_kinds), 'lanes', coalesce(v_cursor -> 'lanes', '{}') || jsonb_build_object(v_range.kind || ' ' || v_range.class, jsonb_build_array(v_range.due_at, v_range.first))));
    end if;
    return v_range;
end
$$;

ALTER FUNCTION gleaner.find_range_jobs(p_kinds text[], p_now timestamp with time zone, p_by timestamp with time zone, p_passed bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.find_runs(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_begun  timestamptz;
    v_cursor jsonb := gleaner.read_cursor('gleaner.cursor_runs', concat_ws(' ', p_kinds), p_now);
    v_lanes  jsonb;
    v_most   integer[];
    v_kinds  text[];
    v_page   bigint := -9223372036854775808; v_turn bigint; v_turned boolean := false; v_more boolean := false;
begin
    loop
        v_begun := clock_timestamp();
        if p_kinds is not null then v_kinds := p_kinds;
        elsif v_cursor is not null then
            v_kinds := array(select jsonb_array_elements_text(v_cursor -> 'kinds'))::text[];
        else
            with recursive waiting as (
            (select (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) as lane, coalesce(q.kind, '') as kind, 1 as n from public.execution_jobs as q
             where q.status in ('queued', 'running', 'failed') and q.due_at is not null and (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) > v_page order by (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) limit 1)
            union all
            select next.lane, next.kind, waiting.n + 1
            from waiting
            cross join lateral (
                select (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) as lane, coalesce(q.kind, '') as kind from public.execution_jobs as q
                where q.status in ('queued', 'running', 'failed') and q.due_at is not null and (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) > (waiting.lane | 15) order by (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) limit 1
            ) as next
            where waiting.n < 200
        )
            select coalesce(array_agg(w.kind), '{}'), coalesce(max(w.lane) | 15, v_page), count(*) = 200 into v_kinds, v_page, v_more from waiting as w;
            if v_more and v_turn is null then
                -- More kinds than one look serves: begin anywhere, so that each has its turn.
                v_turn := ((random() - 0.5) * 1.8e19)::bigint; v_page := v_turn; continue;
            elsif v_turned then
                -- Round again: what comes from here on was seen.
                v_more := v_more and v_page < v_turn;
            elsif v_turn is not null and not v_more then
                v_page := -9223372036854775808; v_more := true; v_turned := true;
            end if;
        end if;
        -- How many rows of each lane the batch will hold, so that no more are locked than are taken. One row is not worth the question.
        v_most := null;
        if p_limit > 1 then
            v_most := array(
                select count(head.n)
                from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                left join (
                    select k.n as kind_n, c.class, 1 as n
                    from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                    cross join lateral (
                        select q.due_at as at, q.id as id
                        from public.execution_jobs as q
                        where q.status in ('queued', 'running', 'failed') and q.due_at is not null and (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and coalesce(q.kind, '') = k.kind
                          and q.due_at <= p_by and (q.due_at <= p_now or q.status in ('queued', 'failed'))
                          and (q.due_at, q.id) >= (coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '0'])::timestamptz, '-infinity'), coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                          and q.id <> all (p_passed)
                          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'runs' and r.tenant = '' and r.until > p_now)
                        order by q.due_at, q.id
                        limit p_limit
                    ) as p
                    order by p.at + c.class * interval '0', p.id
                    limit p_limit
                ) as head on head.kind_n = k.n and head.class = c.class
                group by k.n, c.class
                order by k.n, c.class);
        end if;
        loop
            select coalesce(array_agg(f.id), '{}'), array_agg(f.held_before), coalesce(count(*), 0),
                   (select jsonb_object_agg(last.lane, jsonb_build_array(last.at, last.id))
                    from (select distinct on (u.lane) u.lane, u.at, u.id from unnest(array_agg(f.lane), array_agg(f.at), array_agg(f.id)) as u (lane, at, id)
                          order by u.lane, u.at desc, u.id desc) as last)
            into keys, held_before, seen, v_lanes
            from (
                select p.*, k.kind::text || ' ' || c.class::text as lane
                from unnest(v_kinds) with ordinality as k (kind, n) cross join generate_series(0, 0) as c (class)
                cross join lateral (
                    select q.id as id, q.due_at as at, (case when q.lost = 0 and q.status not in ('running') then 0
                    when q.lost = 0 and q.started <= 0 then 1 - q.started when q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end) >= 3 then -2 else -1 end)::smallint as held_before
                    from public.execution_jobs as q
                where q.status in ('queued', 'running', 'failed') and q.due_at is not null and (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and coalesce(q.kind, '') = k.kind
                  and q.due_at <= p_by and (q.due_at <= p_now or q.status in ('queued', 'failed'))
                  and (q.due_at, q.id) >= (coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '0'])::timestamptz, '-infinity'), coalesce((v_cursor #>> array['lanes', k.kind::text || ' ' || c.class::text, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                  and q.id <> all (p_passed)
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'runs' and r.tenant = '' and r.until > p_now)
                order by q.due_at, q.id
                limit coalesce(v_most[(k.n - 1)::integer * 1 + c.class + 1], p_limit)
                for no key update skip locked
                ) as p
                order by p.at + c.class * interval '0', p.id
                limit p_limit
            ) as f;
            exit when seen > 0 or v_most is null;
            -- What was counted is locked by now. Then the other lanes are due.
            v_most := null;
        end loop;
        exit when seen > 0 or v_cursor is null and not v_more;
        v_cursor := null;
    end loop;
    -- Not behind rows that this claim passed over: the next one must find them.
    if cardinality(p_passed) = 0 and (seen > 0) and (v_cursor is not null or seen >= 64 and seen = p_limit or clock_timestamp() - v_begun - seen * interval '5 microseconds' > interval '3 milliseconds') then
        perform gleaner.write_cursor('gleaner.cursor_runs', concat_ws(' ', p_kinds), v_cursor, p_now, clock_timestamp() - v_begun,
            jsonb_build_object('lanes', coalesce(v_cursor -> 'lanes', '{}') || coalesce(v_lanes, '{}'), 'kinds', to_jsonb(v_kinds)));
    end if;
end
$$;

ALTER FUNCTION gleaner.find_runs(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.find_schedules(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_begun  timestamptz;
    v_cursor jsonb := gleaner.read_cursor('gleaner.cursor_schedules', '', p_now);
    v_at     timestamptz;
begin
    loop
        v_begun := clock_timestamp();
        select coalesce(array_agg(f.id), '{}'), array_agg(f.held_before), count(*), max(f.at)
        into keys, held_before, seen, v_at
        from (
                select q.id as id, q.due_at as at, (case when q.lost = 0 and q.status not in ('working') then 0
                    when q.lost = 0 and q.started <= 0 then 1 - q.started when q.lost + (case when q.status in ('working') and q.started >= 1 then 1 else 0 end) >= 1000000 then -2 else -1 end)::smallint as held_before
                from public.followup_schedules as q
                where q.status in ('active', 'working', 'failed') and q.due_at is not null
                  and q.due_at <= p_by and (q.due_at <= p_now or q.status in ('active', 'failed'))
                  and (q.due_at, q.id) >= (coalesce((v_cursor ->> 'at')::timestamptz, '-infinity'), coalesce((v_cursor ->> 'key')::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                  and q.id <> all (p_passed)
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'schedules' and r.tenant = '' and r.until > p_now)
                order by q.due_at, q.id
                limit p_limit
                for no key update skip locked
        ) as f;
        exit when seen > 0 or v_cursor is null;
        v_cursor := null;
    end loop;
    -- Not behind rows that this claim passed over: the next one must find them.
    if cardinality(p_passed) = 0 and (seen > 0) and (v_cursor is not null or seen >= 64 and seen = p_limit or clock_timestamp() - v_begun - seen * interval '5 microseconds' > interval '3 milliseconds') then
        perform gleaner.write_cursor('gleaner.cursor_schedules', '', v_cursor, p_now, clock_timestamp() - v_begun,
            jsonb_build_object('at', v_at, 'key', keys[cardinality(keys)]));
    end if;
end
$$;

ALTER FUNCTION gleaner.find_schedules(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.find_stale_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_owner bigint, p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_open    integer[];
    v_refused integer[];
    v_open_at timestamptz[];
begin
    select f.* into keys, held_before, seen
    from gleaner.find_open_activities(p_limit, p_now, least(p_by, p_now), p_passed, p_owner, p_kinds) as f;
    select coalesce(array_agg(p.n) filter (where p.open), '{}'), array_agg(p.n) filter (where p.open is not true), array_agg(p.open_at) filter (where p.open is not true)
    into v_open, v_refused, v_open_at
    from (
        select k.n, coalesce(o.allow_remote_processing, false) and q.created_at + coalesce(o.stale_threshold_minutes * interval '1 minute', interval '5 minutes') <= least(p_by, p_now) as open,
               case when coalesce(o.allow_remote_processing, false) then greatest(q.created_at + coalesce(o.stale_threshold_minutes * interval '1 minute', interval '5 minutes'), q.due_at) end as open_at
        from unnest(keys) with ordinality as k (id, n)
        join public.activities as q on q.id = any (array[k.id])
        left join public.sales as o on o.id = q.sales_id
        order by k.n
    ) as p;
    if v_refused is not null then
        perform gleaner.restamp_activities(array(select keys[n] from unnest(v_refused) as n), v_open_at);
        held_before := array(select held_before[n] from unnest(v_open) as n);
        keys := array(select keys[n] from unnest(v_open) as n);
    end if;
end
$$;

ALTER FUNCTION gleaner.find_stale_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_owner bigint, p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.forget_artefacts() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    insert into gleaner.forgotten_artefacts (artefact_id, run_id, sha256)
    select g.id, g.run_id, g.sha256 from gone as g
    on conflict on constraint forgotten_artefacts_pkey do nothing;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.forget_artefacts() IS 'Notes which artefacts were deleted, so that a server deletes their files.';

CREATE FUNCTION gleaner.forget_context_items() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_ids uuid[] := array(select distinct g.context_item_id from gone as g);
begin
    perform from public.context_items as c where c.id = any (v_ids) order by c.id for update;
    delete from public.context_items as c
    where c.id = any (v_ids)
      and not exists (select from public.context_item_sources as s where s.context_item_id = c.id);
    perform gleaner.refresh_context_items(v_ids);
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.forget_context_items() IS 'Deletes entities that no dump mentions any more.';

CREATE FUNCTION gleaner.forget_dump_files() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    insert into gleaner.forgotten_dump_files (dump_id, sha256)
    select g.id, g.file_sha256
    from gone as g
    where g.file_sha256 is not null
    on conflict on constraint forgotten_dump_files_pkey do nothing;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.forget_dump_files() IS 'Notes which deleted dumps had a file, so that a server deletes it.';

CREATE FUNCTION gleaner.forget_files() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    insert into gleaner.forgotten_files (activity_id)
    select g.id
    from gone as g
    where g.raw_data ->> 'source_type' = 'url'
       or coalesce(g.metadata -> 'attachments', '[]') <> '[]'
       or coalesce(g.metadata -> 'media_urls', '[]') <> '[]'
       or coalesce(g.metadata -> 'media', '[]') <> '[]'
    on conflict (activity_id) do nothing;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.forget_files() IS 'Notes which deleted activities had files, so that a server deletes those too.';

CREATE FUNCTION gleaner.forget_relationships() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    delete from public.substrate_relationships as r where r.from_id in (select g.id from gone as g);
    delete from public.substrate_relationships as r where r.to_id in (select g.id from gone as g);
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.forget_relationships() IS 'Deletes connections from and to what was deleted.';

CREATE FUNCTION gleaner.group_items(p_table regclass, p_items jsonb, p_on_duplicate text, p_unwritten text[], OUT items jsonb, OUT names text[], OUT columns text, OUT taken text) RETURNS SETOF record
    LANGUAGE plpgsql STABLE
    AS $$
declare
    v_items jsonb := case jsonb_typeof(p_items) when 'array' then p_items else jsonb_build_array(p_items) end;
    v_wrong jsonb;
    v_same  boolean;
begin
    if p_on_duplicate not in ('skip', 'replace') then
        raise exception 'p_on_duplicate is skip or replace, not %', p_on_duplicate using errcode = 'GL002';
    end if;
    select i.item into v_wrong from jsonb_array_elements(v_items) as i (item) where jsonb_typeof(i.item) <> 'object' limit 1;
    if found then
        raise exception 'an item must be an object whose keys are columns of %, this one is %', p_table, v_wrong using errcode = 'GL002';
    end if;
    names := array(select k from jsonb_object_keys(v_items -> 0) as k);
    v_same := not exists (select from jsonb_array_elements(v_items) as i (item) where not i.item ?& names or i.item - names <> '{}');
    for items, names in
        select v_items, group_items.names where v_same and jsonb_array_length(v_items) > 0
        union all
        (select jsonb_agg(r.item order by r.n), r.names
         from (select i.*, sum(i.begins) over (order by i.n) as run
               from (select i.*, (i.names is distinct from lag(i.names) over (order by i.n))::integer as begins
                     from (select i.item, i.n, array(select k from jsonb_object_keys(i.item) as k order by k) as names
                           from jsonb_array_elements(v_items) with ordinality as i (item, n) where not v_same) as i) as i) as r
         group by r.run, r.names
         order by r.run)
    loop
        perform gleaner.check_columns(p_table, names);
        select coalesce(string_agg(format('%I, ', n), ''), ''), coalesce(string_agg(format('r.%I, ', n), ''), '') into columns, taken
        from unnest(names) as n where n <> all (p_unwritten);
        return next;
    end loop;
end
$$;

COMMENT ON FUNCTION gleaner.group_items(p_table regclass, p_items jsonb, p_on_duplicate text, p_unwritten text[], OUT items jsonb, OUT names text[], OUT columns text, OUT taken text) IS 'Items for a table, in runs that have the same columns.';

CREATE FUNCTION gleaner.hear_linked() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    if to_regprocedure('gleaner.answer_replies(jsonb)') is not null then
        perform gleaner.answer_replies(jsonb_build_array(jsonb_build_object(
            'id', new.id, 'type', new.type, 'contact_id', new.contact_id, 'sender_kind', new.sender_kind,
            'sender_address', new.sender_address, 'automatic', new.metadata -> 'automatic', 'at', new.created_at,
            'text', left(new.raw_data ->> 'content', 1000), 'subject', left(new.raw_data ->> 'subject', 200))));
    end if;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.hear_linked() IS 'Tells other systems whose message it was, when that becomes known later.';

CREATE FUNCTION gleaner.hear_receipts() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if to_regprocedure('gleaner.note_receipt(text, jsonb)') is not null then
        perform gleaner.note_receipt(substr(new.key, 9), new.value);
    end if;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.hear_receipts() IS 'Tells other systems what became of a message we sent.';

CREATE FUNCTION gleaner.hear_replies() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    -- Looked up when it is reached: the system may come later.
    if to_regprocedure('gleaner.answer_replies(jsonb)') is not null then
        perform gleaner.answer_replies((
            select jsonb_agg(jsonb_build_object(
                'id', h.id, 'type', h.type, 'contact_id', h.contact_id, 'sender_kind', h.sender_kind, 'sender_address', h.sender_address,
                'automatic', h.metadata -> 'automatic', 'at', h.created_at, 'text', left(h.raw_data ->> 'content', 1000), 'subject', left(h.raw_data ->> 'subject', 200)))
            from heard as h
            where h.direction = 'inbound' and h.type in ('email', 'call', 'sms', 'whatsapp', 'other')
              and (h.contact_id is not null or h.sender_address is not null)));
    end if;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.hear_replies() IS 'Tells other systems, in the same transaction, that people were heard from.';

CREATE FUNCTION gleaner.hold_batch_jobs(p_keys bigint[], p_agent text, p_session text, p_now timestamp with time zone, p_hold interval, p_started boolean) RETURNS SETOF gleaner.jobs
    LANGUAGE plpgsql
    SET enable_bitmapscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_due      timestamptz := p_now + least(coalesce(p_hold, interval '5 minutes'), interval '1 hour');
    v_deadline timestamptz := p_now + interval '1 hour';
    v_first    bigint := p_keys[1];
    v_last     bigint := p_keys[1] + cardinality(p_keys) - 1;
    -- They mostly follow each other, and then are read in one go along the key.
    v_range    boolean := p_keys[cardinality(p_keys)] = v_last and p_keys = array(select generate_series(v_first, v_last));
    v_keys     int8multirange;
    v_id       bigint;
begin
    v_keys := case when v_range then int8multirange(int8range(v_first, v_last, '[]')) else (select range_agg(int8range(i, i, '[]')) from unnest(p_keys) as i) end;
    update gleaner.batch_lease as b
    set keys = b.keys + v_keys, remaining = b.remaining + cardinality(p_keys), begun = case when p_started then b.begun + v_keys else b.begun end
    where b.queue = 'jobs' and b.xid = pg_current_xact_id() and b.mark = 0 and b.due_at = v_due and b.agent is not distinct from p_agent
    returning b.id into v_id;
    if v_id is null then
        insert into gleaner.batch_lease (queue, keys, mark, remaining, begun, agent, session, due_at, deadline_at)
        values ('jobs', v_keys, 0, cardinality(p_keys), case when p_started then v_keys else '{}' end, p_agent, p_session, v_due, v_deadline)
        returning id into v_id;
    end if;
    if v_range then
        return query
        select q.id, (v_due)::timestamp with time zone, q.created_at, (-v_id)::bigint, (v_deadline)::timestamp with time zone, q.finished_at, q.attempts, q.lost, (case when p_started then 1 else 0 end)::smallint, q.priority, ('running')::text, q.kind, q.unique_key, (p_agent)::text, (p_session)::text, q.payload, q.progress, q.result, q.error
        from gleaner.jobs as q where q.id between v_first and v_last order by q.id;
    else
        return query
        select q.id, (v_due)::timestamp with time zone, q.created_at, (-v_id)::bigint, (v_deadline)::timestamp with time zone, q.finished_at, q.attempts, q.lost, (case when p_started then 1 else 0 end)::smallint, q.priority, ('running')::text, q.kind, q.unique_key, (p_agent)::text, (p_session)::text, q.payload, q.progress, q.result, q.error
        from unnest(p_keys) as k (id) join gleaner.jobs as q on q.id = any (array[k.id]);
    end if;
end
$$;

ALTER FUNCTION gleaner.hold_batch_jobs(p_keys bigint[], p_agent text, p_session text, p_now timestamp with time zone, p_hold interval, p_started boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.hold_mixed_jobs(p_keys bigint[], p_fresh boolean[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) RETURNS SETOF gleaner.jobs
    LANGUAGE plpgsql
    AS $$
declare
    v_lease bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_keys  bigint[] := array(select k.id from unnest(p_keys, p_fresh) with ordinality as k (id, fresh, n) where not k.fresh order by k.n);
begin
    update gleaner.jobs as q
    set status = 'running',
        due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '1 hour'), deadline_at = v_now + interval '1 hour',
        lease = greatest(q.lease + 1, v_lease),
        lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
        started = case when p_started then 1 when q.status in ('running') and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
        agent = p_agent, session = v_session
    from unnest(v_keys) as k (id) where q.id = any (array[k.id]);
    perform gleaner.hold_batch_jobs(array(select k.id from unnest(p_keys, p_fresh) with ordinality as k (id, fresh, n) where k.fresh order by k.n), p_agent, v_session, v_now, p_hold, p_started);
    return query
    select h.*
    from unnest(p_keys) as k (id)
    join gleaner.jobs as q on q.id = any (array[k.id])
    cross join lateral gleaner.as_held_jobs(q) as h;
end
$$;

ALTER FUNCTION gleaner.hold_mixed_jobs(p_keys bigint[], p_fresh boolean[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.hold_range_jobs(p_range gleaner.bulk_range, p_limit integer, p_agent text, p_session text, p_now timestamp with time zone, p_hold interval, p_started boolean) RETURNS SETOF gleaner.jobs
    LANGUAGE plpgsql
    SET enable_bitmapscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_due      timestamptz := p_now + least(coalesce(p_hold, interval '5 minutes'), interval '1 hour');
    v_deadline timestamptz := p_now + interval '1 hour';
    v_last     bigint;
    v_keys     int8multirange;
    v_count    integer;
    v_id       bigint;
begin
    v_last := least(p_range.last, p_range.first + p_limit - 1);
    if v_last = p_range.last then
        delete from gleaner.bulk_range as r
        where r.queue = 'jobs' and r.kind = p_range.kind and r.class = p_range.class and r.due_at = p_range.due_at and r.first = p_range.first;
    else
        update gleaner.bulk_range as r set first = v_last + 1
        where r.queue = 'jobs' and r.kind = p_range.kind and r.class = p_range.class and r.due_at = p_range.due_at and r.first = p_range.first;
    end if;
    v_keys := int8multirange(int8range(p_range.first, v_last, '[]'));
    update gleaner.batch_lease as b
    set keys = b.keys + v_keys, remaining = b.remaining + v_last - p_range.first + 1, begun = case when p_started then b.begun + v_keys else b.begun end
    where b.queue = 'jobs' and b.xid = pg_current_xact_id() and b.mark = -1 and b.due_at = v_due and b.agent is not distinct from p_agent
    returning b.id into v_id;
    if v_id is null then
        insert into gleaner.batch_lease (queue, keys, mark, remaining, begun, agent, session, due_at, deadline_at)
        values ('jobs', v_keys, -1, v_last - p_range.first + 1, case when p_started then v_keys else '{}' end, p_agent, p_session, v_due, v_deadline)
        returning id into v_id;
    end if;
    return query
    select q.id, (v_due)::timestamp with time zone, q.created_at, (-v_id)::bigint, (v_deadline)::timestamp with time zone, q.finished_at, q.attempts, q.lost, (case when p_started then 1 else 0 end)::smallint, q.priority, ('running')::text, q.kind, q.unique_key, (p_agent)::text, (p_session)::text, q.payload, q.progress, q.result, q.error
    from gleaner.jobs as q
    where q.id between p_range.first and v_last and q.lease = -1 and q.status = 'ready'
    order by q.id;
    get diagnostics v_count = row_count;
    if v_count <= v_last - p_range.first then
        update gleaner.batch_lease as b set remaining = b.remaining - (v_last - p_range.first + 1 - v_count) where b.id = v_id;
        delete from gleaner.batch_lease as b where b.id = v_id and b.remaining = 0;
    end if;
end
$$;

ALTER FUNCTION gleaner.hold_range_jobs(p_range gleaner.bulk_range, p_limit integer, p_agent text, p_session text, p_now timestamp with time zone, p_hold interval, p_started boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.in_shape_jobs() RETURNS boolean
    LANGUAGE plpgsql
    AS $$
begin
    return array['id', 'due_at', 'created_at', 'lease', 'deadline_at', 'finished_at', 'attempts', 'lost', 'started', 'priority', 'status', 'kind', 'unique_key', 'agent', 'session', 'payload', 'progress', 'result', 'error'] = array(
        select a.attname::text from pg_attribute as a
        where a.attrelid = 'gleaner.jobs'::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum);
end
$$;

ALTER FUNCTION gleaner.in_shape_jobs() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.ingest_activities(p_patience text, p_channels uuid[], p_raw_ids uuid[], p_methods text[], p_targets text[], p_headers jsonb[], p_bodies bytea[], p_body_files text[], p_requests integer[], p_ids uuid[], p_types text[], p_directions text[], p_raw_data jsonb[], p_metadata jsonb[], p_external_ids text[], p_sender_kinds text[], p_sender_addresses text[], p_recalls text[], p_once jsonb DEFAULT NULL::jsonb, p_remember jsonb DEFAULT NULL::jsonb, p_media jsonb DEFAULT NULL::jsonb) RETURNS TABLE(request integer, event integer, outcome text, id uuid)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION gleaner.ingest_activities(p_patience text, p_channels uuid[], p_raw_ids uuid[], p_methods text[], p_targets text[], p_headers jsonb[], p_bodies bytea[], p_body_files text[], p_requests integer[], p_ids uuid[], p_types text[], p_directions text[], p_raw_data jsonb[], p_metadata jsonb[], p_external_ids text[], p_sender_kinds text[], p_sender_addresses text[], p_recalls text[], p_once jsonb, p_remember jsonb, p_media jsonb) IS 'Stores what many requests brought, together, each event once.';

CREATE FUNCTION gleaner.insert_contact(p_first text, p_last text, p_kind text, p_address text, p_sales_id bigint, p_seen timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
declare
    v_columns text := '';
    v_values  text := '';
    v_more    record;
    v_id      bigint;
begin
    for v_more in
        select a.attname as name,
               case a.attname when 'tags' then '''{auto-created,unqualified}''' else '$7' end as value
        from pg_attribute as a
        where a.attrelid = 'public.contacts'::regclass and not a.attisdropped
          and (a.attname = 'tags' and a.atttypid = 'text[]'::regtype
               or a.attname in ('first_seen', 'last_seen') and a.atttypid in ('timestamptz'::regtype, 'timestamp'::regtype))
    loop
        v_columns := v_columns || format(', %I', v_more.name);
        v_values := v_values || ', ' || v_more.value;
    end loop;
    execute format(
        'insert into public.contacts (first_name, last_name, email, phone_number, email_jsonb, phone_jsonb, sales_id%s)
         values ($1, $2, case $3 when ''email'' then $4 end, case $3 when ''phone'' then $4 end,
                 case $3 when ''email'' then $5 else ''[]'' end, case $3 when ''phone'' then $5 else ''[]'' end, $6%s) returning id',
        v_columns, v_values)
    into v_id
    using p_first, p_last, p_kind, p_address,
          gleaner.with_address('[]', case p_kind when 'email' then 'email' else 'number' end, p_address), p_sales_id, p_seen;
    return v_id;
end
$_$;

COMMENT ON FUNCTION gleaner.insert_contact(p_first text, p_last text, p_kind text, p_address text, p_sales_id bigint, p_seen timestamp with time zone) IS 'One new contact with one address, in either shape of the table.';

CREATE FUNCTION gleaner.is_administrator() RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if gleaner.worker_session() is not null then
        return false;
    end if;
    -- A statement of its own: it is looked up only when it is reached.
    if to_regprocedure('gleaner.is_sales_administrator()') is not null then
        return gleaner.is_sales_administrator();
    end if;
    return false;
end
$$;

COMMENT ON FUNCTION gleaner.is_administrator() IS 'True when the signed-in caller is an administrator of the team.';

CREATE FUNCTION gleaner.is_disabled(p_user uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return exists (select from public.sales as s where s.user_id = p_user and s.disabled);
end
$$;

COMMENT ON FUNCTION gleaner.is_disabled(p_user uuid) IS 'True when the team has disabled this user.';

CREATE FUNCTION gleaner.is_member() RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if gleaner.worker_session() is not null then
        return true;
    end if;
    -- A statement of its own: it is looked up only when it is reached.
    if to_regprocedure('gleaner.is_salesperson()') is not null then
        return gleaner.is_salesperson();
    end if;
    return false;
end
$$;

COMMENT ON FUNCTION gleaner.is_member() IS 'True when the caller belongs to the team: a person who is not disabled, or a worker''s key.';

CREATE FUNCTION gleaner.is_plain(p_table regclass, p_columns text[], p_status text) RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    -- Partitions have triggers and checks of their own.
    return (select c.relkind = 'r' from pg_class as c where c.oid = p_table)
       and not exists (
               select from pg_trigger as t
               where t.tgrelid = p_table and not t.tgisinternal and t.tgtype & 16 <> 0
                 -- A trigger of columns that are not written does not fire.
                 and (cardinality(t.tgattr::int2[]) = 0 or t.tgattr::int2[] && array(
                     select a.attnum from pg_attribute as a where a.attrelid = p_table and a.attname = any (p_columns)))
                 and t.tgname not like 'zz\_gleaner\_%' and t.tgname not like '00\_gleaner\_%')
       and not exists (
               select from pg_constraint as c
               where c.conrelid = p_table
                 and c.contype in ('c', 'f', 'x', 't')
                 -- Ours: what the acts write keeps them.
                 and c.conname not like 'gleaner\_%'
                 and not (c.contype = 'c' and c.convalidated and c.conkey = array(
                     select a.attnum from pg_attribute as a where a.attrelid = p_table and a.attname = p_status))
                 and (not c.convalidated or c.conkey is null or c.conkey && array(
                     select a.attnum from pg_attribute as a where a.attrelid = p_table and a.attname = any (p_columns))))
       and not exists (
               select from pg_index as i
               join pg_class as c on c.oid = i.indexrelid
               where i.indrelid = p_table and (i.indisunique or i.indisexclusion) and not i.indisprimary
                 and c.relname not like 'gleaner\_%\_unique'
                 and exists (
                     select from pg_attribute as a
                     where a.attrelid = p_table and a.attname = any (p_columns)
                       and (a.attnum = any (i.indkey)
                            -- Columns inside an expression or a condition are what the index depends on; a whole row is not noted.
                            or (i.indexprs is not null or i.indpred is not null)
                               and (concat(pg_get_expr(i.indexprs, p_table), pg_get_expr(i.indpred, p_table)) like '%.*%'
                                    or exists (
                                        select from pg_depend as d
                                        where d.classid = 'pg_class'::regclass and d.objid = i.indexrelid
                                          and d.refclassid = 'pg_class'::regclass and d.refobjid = p_table
                                          and d.refobjsubid = a.attnum)))));
end
$$;

CREATE FUNCTION gleaner.is_region_of_one(p_provider uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    return coalesce(
        (select nullif(upper(btrim(p.config ->> 'default_region')), '') from public.ingestion_providers as p where p.id = p_provider),
        gleaner.default_region())
        in ('US', 'CA', 'AG', 'AI', 'AS', 'BB', 'BM', 'BS', 'DM', 'DO', 'GD', 'GU', 'JM', 'KN', 'KY', 'LC', 'MP', 'MS', 'PR',
            'SX', 'TC', 'TT', 'VC', 'VG', 'VI');
end
$$;

COMMENT ON FUNCTION gleaner.is_region_of_one(p_provider uuid) IS 'Whether a channel''s default region is in country code 1.';

CREATE FUNCTION gleaner.is_repeated(p_queue text, p_request uuid) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
begin
    insert into gleaner.request (queue, id, at) values (p_queue, p_request, clock_timestamp()) on conflict do nothing;
    if found then
        return false;
    end if;
    perform from gleaner.request as r where r.queue = p_queue and r.id = p_request and r.keys = '{}' for update;
    return not found;
end
$$;

COMMENT ON FUNCTION gleaner.is_repeated(p_queue text, p_request uuid) IS 'Whether a claim with this request id was answered with rows before.';

CREATE FUNCTION gleaner.is_sales_administrator() RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    return exists (select from public.sales as s where s.user_id = auth.uid() and s.administrator and not s.disabled);
end
$$;

COMMENT ON FUNCTION gleaner.is_sales_administrator() IS 'True when the signed-in caller is a person of the team who administers it.';

CREATE FUNCTION gleaner.is_salesperson() RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    return exists (select from public.sales as s where s.user_id = auth.uid() and not s.disabled);
end
$$;

COMMENT ON FUNCTION gleaner.is_salesperson() IS 'True when the signed-in caller is a person of the team who is not disabled.';

CREATE FUNCTION gleaner.is_trusted() RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return coalesce(nullif(current_setting('role', true), 'none'), session_user) not in ('anon', 'authenticated')
       and coalesce(nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role', 'service_role') = 'service_role';
end
$$;

COMMENT ON FUNCTION gleaner.is_trusted() IS 'True for the service key and direct logins: they may act for any owner.';

CREATE FUNCTION gleaner.issue_token(p_user uuid, p_type text, p_hash text, p_valid interval) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    delete from auth.one_time_tokens as t where t.user_id = p_user and t.expires_at <= clock_timestamp();
    insert into auth.one_time_tokens (user_id, token_type, token_hash, relates_to, expires_at)
    select u.id, p_type, p_hash, u.email, clock_timestamp() + p_valid from auth.users as u where u.id = p_user;
    if p_type = 'invite' then
        update auth.users as u set invited_at = clock_timestamp() where u.id = p_user;
    end if;
end
$$;

COMMENT ON FUNCTION gleaner.issue_token(p_user uuid, p_type text, p_hash text, p_valid interval) IS 'Remembers a one-time link by the hash of its token.';

CREATE FUNCTION gleaner.join_team(p_user uuid, p_administrator boolean, p_link boolean) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if exists (select from public.sales as s where s.user_id = p_user) then
        update public.sales as s set administrator = true where s.user_id = p_user and p_administrator and not s.administrator;
        return;
    end if;
    if p_link then
        update public.sales as s
        set user_id = p_user, administrator = s.administrator or p_administrator
        where s.id = (
            select o.id
            from public.sales as o join auth.users as u on u.id = p_user
            where o.user_id is null and lower(o.email) = u.email
            order by o.id
            limit 1
            for no key update of o);
        if found then
            return;
        end if;
    end if;
    insert into public.sales (first_name, last_name, email, user_id, administrator)
    select coalesce(nullif(u.raw_user_meta_data ->> 'first_name', ''), split_part(u.email, '@', 1)),
           coalesce(u.raw_user_meta_data ->> 'last_name', ''), u.email, u.id, p_administrator
    from auth.users as u
    where u.id = p_user;
end
$$;

COMMENT ON FUNCTION gleaner.join_team(p_user uuid, p_administrator boolean, p_link boolean) IS 'Gives a user its row in sales, an existing one by address where that is asked.';

CREATE FUNCTION gleaner.keep_an_owner() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    -- One at a time: two owners who leave at once must not both find the other.
    perform from public.workspaces as w where w.id in (select g.workspace_id from gone as g) order by w.id for no key update;
    if exists (
        select from gone as g
        join public.workspaces as w on w.id = g.workspace_id
        where g.role = 'owner'
          and exists (select from public.workspace_members as m where m.workspace_id = g.workspace_id)
          and not exists (select from public.workspace_members as m where m.workspace_id = g.workspace_id and m.role = 'owner'))
    then
        raise exception 'the last owner of a workspace cannot leave it while it has members'
            using errcode = 'GL002', hint = 'Invite another owner first, or remove the members.';
    end if;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.keep_an_owner() IS 'Refuses to leave a workspace with members and without an owner.';

CREATE FUNCTION gleaner.keep_late(p_queue text, p_tenant text, p_key text, p_lease bigint, p_result jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_session text := gleaner.caller_session();
begin
    insert into gleaner.late_result (queue, tenant, key, lease, caller, result)
    select p_queue, p_tenant, p_key, p_lease, v_session, p_result
    from (select count(*) as total, count(*) filter (where l.caller = v_session) as own,
                 coalesce(bool_or(l.lease = p_lease and l.caller = v_session), false) as known
          from gleaner.late_result as l
          where l.queue = p_queue and l.tenant = p_tenant and l.key = p_key) as kept
    where p_lease is not null and not kept.known and kept.total < 32 and (gleaner.is_trusted() or kept.own < 4);
end
$$;

COMMENT ON FUNCTION gleaner.keep_late(p_queue text, p_tenant text, p_key text, p_lease bigint, p_result jsonb) IS 'Keeps a result that came too late, as evidence.';

CREATE FUNCTION gleaner.keep_recording_versions() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_problem text;
    v_opened  text;
begin
    if tg_op = 'UPDATE' then
        raise exception 'version % of a recording cannot be changed', old.version
            using errcode = 'GL002', hint = 'Add another version: select public.save_recording(name, content)';
    end if;
    v_problem := gleaner.recording_problem(new.content);
    if v_problem is not null then
        raise exception '%', v_problem
            using errcode = 'GL002', hint = 'The steps and their fields are in docs/reference/systems/runs.md.';
    end if;
    perform from public.recordings as r where r.id = new.recording_id for no key update;
    select coalesce(max(v.version), 0) + 1 into new.version from public.recording_versions as v where v.recording_id = new.recording_id;
    new.created_by := auth.uid();
    new.format := case when exists (select from jsonb_array_elements(new.content -> 'steps') as s where s ? 'do') then 'steps' else 'recorder' end;
    select s.value ->> 'url' into v_opened
    from jsonb_array_elements(new.content -> 'steps') with ordinality as s (value, n)
    where coalesce(s.value ->> 'do', s.value ->> 'type') in ('open', 'navigate') order by s.n limit 1;
    new.site := gleaner.site_of(v_opened);
    return new;
end
$$;

COMMENT ON FUNCTION gleaner.keep_recording_versions() IS 'Checks and numbers versions of recordings, and refuses to change them.';

CREATE FUNCTION gleaner.keep_recordings() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    new.created_by := auth.uid();
    return new;
end
$$;

COMMENT ON FUNCTION gleaner.keep_recordings() IS 'Notes who added a recording.';

CREATE FUNCTION gleaner.leave_batch() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION gleaner.leave_batch() IS 'A deleted row leaves the batch lease that held it.';

CREATE FUNCTION gleaner.link_activity(p_activity uuid, p_contact bigint, p_backfill boolean DEFAULT false, p_remember boolean DEFAULT false) RETURNS TABLE(id uuid, outcome text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_sender record;
    v_others uuid[] := '{}';
    v_written text;
begin
    perform set_config('gleaner.by_hand', 'on', true);
    perform from public.contacts as c where c.id = p_contact;
    if not found then
        raise exception 'there is no contact %', p_contact using errcode = 'GL003', hint = 'Look for it with: select id, first_name, last_name from contacts';
    end if;
    select a.contact_id, a.sender_kind, a.sender_address, a.metadata ->> 'from' as said into v_sender
    from public.activities as a
    where a.id = p_activity
    for no key update;
    if not found then
        return query select p_activity, 'gone';
        return;
    end if;

    if p_backfill and v_sender.sender_address is not null then
        v_others := array(
            select a.id
            from public.activities as a
            where a.contact_id is null and a.sender_kind = v_sender.sender_kind and a.sender_address = v_sender.sender_address
              and a.id <> p_activity
            order by a.id
            for no key update);
    end if;
    if v_sender.contact_id is distinct from p_contact then
        update public.activities as a set contact_id = p_contact where a.id = p_activity;
    end if;
    if v_others <> '{}' then
        update public.activities as a set contact_id = p_contact where a.id = any (v_others);
    end if;
    -- What the server matches because of a new address is its own doing.
    perform set_config('gleaner.by_hand', '', true);

    if p_remember and v_sender.sender_kind in ('email', 'phone') then
        -- What is no possible number is kept as it was said: read again without its plus it would be another one.
        v_written := case when v_sender.sender_kind = 'email' or v_sender.sender_address like '+%' then v_sender.sender_address
                          else coalesce(nullif(v_sender.said, ''), v_sender.sender_address) end;
        if v_sender.sender_kind = 'email' then
            update public.contacts as c
            set email = coalesce(nullif(c.email, ''), v_written),
                email_jsonb = gleaner.with_address(c.email_jsonb, 'email', v_written)
            where c.id = p_contact;
        else
            update public.contacts as c
            set phone_number = coalesce(nullif(c.phone_number, ''), v_written),
                phone_jsonb = gleaner.with_address(c.phone_jsonb, 'number', v_written)
            where c.id = p_contact;
        end if;
        if not found then
            raise exception 'contact % is not yours to change', p_contact using errcode = '42501', hint = 'Link without adding the address.';
        end if;
    end if;

    return query
    select p_activity, case when v_sender.contact_id is distinct from p_contact then 'done' else 'already' end
    union all
    select o, 'done' from unnest(v_others) as o;
end
$$;

COMMENT ON FUNCTION gleaner.link_activity(p_activity uuid, p_contact bigint, p_backfill boolean, p_remember boolean) IS 'Links an activity to a contact, on request with everything unmatched from the same sender, and with the address.';

CREATE FUNCTION gleaner.link_identity() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    if new.kind in ('email', 'phone') then
        perform gleaner.look_again(new.kind, array[new.value]);
    else
        perform gleaner.look_again('other', array[new.kind || ':' || new.value]);
    end if;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.link_identity() IS 'Links messages of a sender who becomes known by an identity.';

CREATE FUNCTION gleaner.list_captures() RETURNS TABLE(relation oid, wanted text, present text)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with wanted as (
        select c.oid as relation,
               concat(case when p.pubinsert then 'I' end, case when p.pubupdate then 'U' end, case when p.pubdelete then 'D' end, ' ',
                      i.indkey::text) as triggers
        from pg_publication as p
        join pg_publication_tables as t on t.pubname = p.pubname
        join pg_namespace as n on n.nspname = t.schemaname
        join pg_class as c on c.relnamespace = n.oid and c.relname = t.tablename
        join pg_index as i on i.indrelid = c.oid and case c.relreplident when 'i' then i.indisreplident else i.indisprimary end
        where p.pubname = 'supabase_realtime' and t.rowfilter is null
    ), present as (
        select t.tgrelid as relation,
               -- One argument, the same for all: what was wanted when they were made.
               case when count(*) = length(replace(split_part(min(a.arguments), ' ', 1), 'U', 'UU')) then min(a.arguments) end as triggers
        from pg_trigger as t
        cross join lateral (select replace(encode(t.tgargs, 'escape'), '\000', '') as arguments) as a
        where t.tgfoid = 'gleaner.note_change()'::regprocedure and t.tgparentid = 0 and t.tgenabled = 'A'
        group by t.tgrelid
    )
    select relation, w.triggers, p.triggers
    from wanted as w
    full join present as p using (relation);
$$;

COMMENT ON FUNCTION gleaner.list_captures() IS 'The tables whose changes are noted by triggers, or should be.';

CREATE FUNCTION gleaner.lock_activities(p_id uuid, p_lease bigint, OUT held public.activities, OUT outcome text, OUT status text) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_own boolean;
begin
    select q.* into held from public.activities as q where q.id = p_id for no key update;
    v_own := gleaner.is_trusted() or held.session = gleaner.caller_session();
    outcome := case
        when held.id is null and gleaner.is_trusted() then 'gone'
        when held.processing_status in ('processing') and held.lease = p_lease and v_own then 'done'
        when held.processing_status not in ('processing') and held.lease = p_lease + 1 then 'already'
        else 'lost'
    end;
    -- A caller who did not hold it last does not learn its status.
    status := case when v_own then held.processing_status::text end;
end
$$;

ALTER FUNCTION gleaner.lock_activities(p_id uuid, p_lease bigint, OUT held public.activities, OUT outcome text, OUT status text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.lock_dumps(p_id uuid, p_lease bigint, OUT held public.agent_processing_queue, OUT outcome text, OUT status text) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_own boolean;
begin
    select q.* into held from public.agent_processing_queue as q where q.id = p_id for no key update;
    v_own := gleaner.is_trusted() or held.session = gleaner.caller_session();
    outcome := case
        when held.id is null and gleaner.is_trusted() then 'gone'
        when held.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and held.lease = p_lease and v_own then 'done'
        when held.processing_state not in ('claimed'::public.processing_state, 'processing'::public.processing_state) and held.lease = p_lease + 1 then 'already'
        else 'lost'
    end;
    -- A caller who did not hold it last does not learn its status.
    status := case when v_own then held.processing_state::text end;
end
$$;

ALTER FUNCTION gleaner.lock_dumps(p_id uuid, p_lease bigint, OUT held public.agent_processing_queue, OUT outcome text, OUT status text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.lock_followups(p_id uuid, p_lease bigint, OUT held public.scheduled_actions, OUT outcome text, OUT status text) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_own boolean;
begin
    select q.* into held from public.scheduled_actions as q where q.id = p_id for no key update;
    v_own := gleaner.is_trusted() or held.session = gleaner.caller_session();
    outcome := case
        when held.id is null and gleaner.is_trusted() then 'gone'
        when held.status in ('processing') and held.lease = p_lease and v_own then 'done'
        when held.status not in ('processing') and held.lease = p_lease + 1 then 'already'
        else 'lost'
    end;
    -- A caller who did not hold it last does not learn its status.
    status := case when v_own then held.status::text end;
end
$$;

ALTER FUNCTION gleaner.lock_followups(p_id uuid, p_lease bigint, OUT held public.scheduled_actions, OUT outcome text, OUT status text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.lock_jobs(p_id bigint, p_lease bigint, OUT held gleaner.jobs, OUT outcome text, OUT status text) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_own boolean;
begin
    select q.* into held from gleaner.jobs as q where q.id = p_id for no key update;
    held := gleaner.as_held_jobs(held);
    v_own := gleaner.is_trusted() or held.session = gleaner.caller_session();
    outcome := case
        when held.id is null and gleaner.is_trusted() then 'gone'
        when held.status in ('running') and held.lease = p_lease and v_own then 'done'
        when held.status not in ('running') and held.lease = p_lease + 1 then 'already'
        else 'lost'
    end;
    -- A caller who did not hold it last does not learn its status.
    status := case when v_own then held.status::text end;
end
$$;

ALTER FUNCTION gleaner.lock_jobs(p_id bigint, p_lease bigint, OUT held gleaner.jobs, OUT outcome text, OUT status text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.lock_polls(p_id uuid, p_lease bigint, OUT held gleaner.polls, OUT outcome text, OUT status text) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_own boolean;
begin
    select q.* into held from gleaner.polls as q where q.provider_id = p_id for no key update;
    v_own := gleaner.is_trusted() or held.session = gleaner.caller_session();
    outcome := case
        when held.provider_id is null and gleaner.is_trusted() then 'gone'
        when held.status in ('running') and held.lease = p_lease and v_own then 'done'
        when held.status not in ('running') and held.lease = p_lease + 1 then 'already'
        else 'lost'
    end;
    -- A caller who did not hold it last does not learn its status.
    status := case when v_own then held.status::text end;
end
$$;

ALTER FUNCTION gleaner.lock_polls(p_id uuid, p_lease bigint, OUT held gleaner.polls, OUT outcome text, OUT status text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.lock_runs(p_id uuid, p_lease bigint, OUT held public.execution_jobs, OUT outcome text, OUT status text) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_own boolean;
begin
    select q.* into held from public.execution_jobs as q where q.id = p_id for no key update;
    v_own := gleaner.is_trusted() or held.session = gleaner.caller_session();
    outcome := case
        when held.id is null and gleaner.is_trusted() then 'gone'
        when held.status in ('running') and held.lease = p_lease and v_own then 'done'
        when held.status not in ('running') and held.lease = p_lease + 1 then 'already'
        else 'lost'
    end;
    -- A caller who did not hold it last does not learn its status.
    status := case when v_own then held.status::text end;
end
$$;

ALTER FUNCTION gleaner.lock_runs(p_id uuid, p_lease bigint, OUT held public.execution_jobs, OUT outcome text, OUT status text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.lock_schedules(p_id uuid, p_lease bigint, OUT held public.followup_schedules, OUT outcome text, OUT status text) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_own boolean;
begin
    select q.* into held from public.followup_schedules as q where q.id = p_id for no key update;
    v_own := gleaner.is_trusted() or held.session = gleaner.caller_session();
    outcome := case
        when held.id is null and gleaner.is_trusted() then 'gone'
        when held.status in ('working') and held.lease = p_lease and v_own then 'done'
        when held.status not in ('working') and held.lease = p_lease + 1 then 'already'
        else 'lost'
    end;
    -- A caller who did not hold it last does not learn its status.
    status := case when v_own then held.status::text end;
end
$$;

ALTER FUNCTION gleaner.lock_schedules(p_id uuid, p_lease bigint, OUT held public.followup_schedules, OUT outcome text, OUT status text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.look_again(p_kind text, p_addresses text[]) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_row    record;
    v_found  record;
    v_linked integer := 0;
begin
    for v_row in
        select a.id, a.sender_kind, a.sender_address, a.provider_id
        from public.activities as a
        where a.contact_id is null and a.sender_address is not null
          and a.sender_kind = p_kind and a.sender_address = any (p_addresses)
          and a.metadata #>> '{match,method}' is distinct from 'unlinked'
        order by a.created_at desc
        limit 200
        for no key update skip locked
    loop
        select m.candidates into v_found from gleaner.match_contact(v_row.sender_kind, v_row.sender_address, v_row.provider_id) as m;
        if cardinality(v_found.candidates) = 1 then
            update public.activities as a set contact_id = v_found.candidates[1] where a.id = v_row.id;
            v_linked := v_linked + 1;
        end if;
    end loop;
    return v_linked;
end
$$;

COMMENT ON FUNCTION gleaner.look_again(p_kind text, p_addresses text[]) IS 'Looks again for the contact of unmatched activities of these senders.';

CREATE FUNCTION gleaner.look_at_batches(p_queue text, p_now timestamp with time zone, OUT keys int8multirange, OUT ran_out boolean) RETURNS record
    LANGUAGE plpgsql
    AS $$
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

COMMENT ON FUNCTION gleaner.look_at_batches(p_queue text, p_now timestamp with time zone, OUT keys int8multirange, OUT ran_out boolean) IS 'The keys that batch leases of a queue hold, and whether one of them ran out.';

CREATE FUNCTION gleaner.loose_email(p_address text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    v_mailbox text := substring(p_address from '^(.*)@');
    v_domain  text := substring(p_address from '@([^@]*)$');
begin
    -- A tag needs a name before it: '+tag@example.com' stays as it is.
    v_mailbox := regexp_replace(v_mailbox, '^([^+]+)\+.*$', '\1');
    if v_domain in ('gmail.com', 'googlemail.com') then
        v_mailbox := replace(v_mailbox, '.', '');
        v_domain := 'gmail.com';
    end if;
    return v_mailbox || '@' || v_domain;
end
$_$;

COMMENT ON FUNCTION gleaner.loose_email(p_address text) IS 'The mailbox behind an address: without tag, and without dots at Google.';

CREATE FUNCTION gleaner.lose_activities(v_row public.activities) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_lost   integer := v_row.lost + case when v_row.processing_status in ('processing') and v_row.started >= 1 then 1 else 0 end;
    v_reason text := case when v_lost >= 3 then format('lost %s leases', v_lost) end;
begin
    perform case when v_reason is null then gleaner.settle_activities(v_row, 'raw', clock_timestamp(), false, v_row.attempts, v_lost)
                 else gleaner.settle_activities(v_row, 'failed', null, false, v_row.attempts, v_lost, 'Poison', v_reason) end;
    if exists (select from public.activities as q where q.id = v_row.id and (q.processing_status in ('processing') or v_reason is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null)) then
        raise exception 'a trigger skipped the change';
    end if;
exception when others then
    perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
    perform gleaner.reject_row('activities', '', v_row.id::text, sqlerrm);
end
$$;

ALTER FUNCTION gleaner.lose_activities(v_row public.activities) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.lose_dumps(v_row public.agent_processing_queue) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_lost   integer := v_row.lost + case when v_row.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and v_row.started >= 1 then 1 else 0 end;
    v_reason text := case when v_lost >= 3 then format('lost %s leases', v_lost) end;
begin
    perform case when v_reason is null then gleaner.settle_dumps(v_row, 'pending'::public.processing_state, clock_timestamp(), false, v_row.attempts, v_lost)
                 else gleaner.settle_dumps(v_row, 'failed'::public.processing_state, null, false, v_row.attempts, v_lost, 'Poison', v_reason) end;
    if exists (select from public.agent_processing_queue as q where q.id = v_row.id and (q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) or v_reason is not null and q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null)) then
        raise exception 'a trigger skipped the change';
    end if;
exception when others then
    perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
    perform gleaner.reject_row('dumps', '', v_row.id::text, sqlerrm);
end
$$;

ALTER FUNCTION gleaner.lose_dumps(v_row public.agent_processing_queue) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.lose_followups(v_row public.scheduled_actions) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_lost   integer := v_row.lost + case when v_row.status in ('processing') and v_row.started >= 1 then 1 else 0 end;
    v_reason text := case when v_row.status in ('processing') and v_row.started = 2 then 'outcome unknown: the lease ran out after the work had begun' when v_lost >= 3 then format('lost %s leases', v_lost) end;
begin
    perform case when v_reason is null then gleaner.settle_followups(v_row, 'pending', clock_timestamp(), false, v_row.attempts, v_lost)
                 else gleaner.settle_followups(v_row, 'failed', null, false, v_row.attempts, v_lost, case when v_row.started = 2 then 'OutcomeUnknown' else 'Poison' end, v_reason) end;
    if exists (select from public.scheduled_actions as q where q.id = v_row.id and (q.status in ('processing') or v_reason is not null and q.status in ('pending', 'processing', 'failed') and q.due_at is not null)) then
        raise exception 'a trigger skipped the change';
    end if;
exception when others then
    perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
    perform gleaner.reject_row('followups', '', v_row.id::text, sqlerrm);
end
$$;

ALTER FUNCTION gleaner.lose_followups(v_row public.scheduled_actions) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.lose_jobs(v_row gleaner.jobs) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_lost   integer := v_row.lost + case when v_row.status in ('running') and v_row.started >= 1 then 1 else 0 end;
    v_reason text := case when v_lost >= 3 then format('lost %s leases', v_lost) end;
begin
    perform case when v_reason is null then gleaner.settle_jobs(v_row, 'ready', clock_timestamp(), false, v_row.attempts, v_lost)
                 else gleaner.settle_jobs(v_row, 'failed', null, false, v_row.attempts, v_lost, 'Poison', v_reason) end;
    if exists (select from gleaner.jobs as q where q.id = v_row.id and (q.status in ('running') or v_reason is not null and q.status in ('ready', 'running', 'failed') and q.due_at is not null)) then
        raise exception 'a trigger skipped the change';
    end if;
exception when others then
    perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
    perform gleaner.reject_row('jobs', '', v_row.id::text, sqlerrm);
end
$$;

ALTER FUNCTION gleaner.lose_jobs(v_row gleaner.jobs) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.lose_polls(v_row gleaner.polls) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_lost   integer := v_row.lost + case when v_row.status in ('running') and v_row.started >= 1 then 1 else 0 end;
    v_reason text := case when v_lost >= 1000000 then format('lost %s leases', v_lost) end;
begin
    perform case when v_reason is null then gleaner.settle_polls(v_row, 'ready', clock_timestamp(), false, v_row.attempts, v_lost)
                 else gleaner.settle_polls(v_row, 'failed', null, false, v_row.attempts, v_lost, 'Poison', v_reason) end;
    if exists (select from gleaner.polls as q where q.provider_id = v_row.provider_id and (q.status in ('running') or v_reason is not null and q.status in ('ready', 'running', 'failed') and q.due_at is not null)) then
        raise exception 'a trigger skipped the change';
    end if;
exception when others then
    perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
    perform gleaner.reject_row('polls', '', v_row.provider_id::text, sqlerrm);
end
$$;

ALTER FUNCTION gleaner.lose_polls(v_row gleaner.polls) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.lose_runs(v_row public.execution_jobs) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_lost   integer := v_row.lost + case when v_row.status in ('running') and v_row.started >= 1 then 1 else 0 end;
    v_reason text := case when v_lost >= 3 then format('lost %s leases', v_lost) end;
begin
    perform case when v_reason is null then gleaner.settle_runs(v_row, 'queued', clock_timestamp(), false, v_row.attempts, v_lost)
                 else gleaner.settle_runs(v_row, 'failed', null, false, v_row.attempts, v_lost, 'Poison', v_reason) end;
    if exists (select from public.execution_jobs as q where q.id = v_row.id and (q.status in ('running') or v_reason is not null and q.status in ('queued', 'running', 'failed') and q.due_at is not null)) then
        raise exception 'a trigger skipped the change';
    end if;
exception when others then
    perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
    perform gleaner.reject_row('runs', '', v_row.id::text, sqlerrm);
end
$$;

ALTER FUNCTION gleaner.lose_runs(v_row public.execution_jobs) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.lose_schedules(v_row public.followup_schedules) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_lost   integer := v_row.lost + case when v_row.status in ('working') and v_row.started >= 1 then 1 else 0 end;
    v_reason text := case when v_lost >= 1000000 then format('lost %s leases', v_lost) end;
begin
    perform case when v_reason is null then gleaner.settle_schedules(v_row, 'active', clock_timestamp(), false, v_row.attempts, v_lost)
                 else gleaner.settle_schedules(v_row, 'failed', null, false, v_row.attempts, v_lost, 'Poison', v_reason) end;
    if exists (select from public.followup_schedules as q where q.id = v_row.id and (q.status in ('working') or v_reason is not null and q.status in ('active', 'working', 'failed') and q.due_at is not null)) then
        raise exception 'a trigger skipped the change';
    end if;
exception when others then
    perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
    perform gleaner.reject_row('schedules', '', v_row.id::text, sqlerrm);
end
$$;

ALTER FUNCTION gleaner.lose_schedules(v_row public.followup_schedules) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.match_contact(p_kind text, p_address text, p_provider uuid, OUT method text, OUT candidates bigint[]) RETURNS record
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
begin
    method := p_kind;
    candidates := array(
        select distinct a.contact_id
        from public.contact_addresses as a
        where a.kind = p_kind and a.address = p_address
        order by a.contact_id limit 20);
    if candidates <> '{}' then
        return;
    end if;

    -- At most one: an identity names one contact.
    candidates := array(
        select i.contact_id
        from public.contact_identities as i
        where i.kind = case p_kind when 'other' then split_part(p_address, ':', 1) else p_kind end
          and i.value = case p_kind when 'other' then substr(p_address, strpos(p_address, ':') + 1) else p_address end);
    if candidates <> '{}' then
        method := 'identity';
        return;
    end if;

    if p_kind = 'email' then
        method := 'email_loose';
        candidates := array(
            select distinct a.contact_id
            from public.contact_addresses as a
            where a.kind = 'email' and a.loose = gleaner.loose_email(p_address)
            order by a.contact_id limit 20);
        return;
    end if;

    if p_kind = 'phone' then
        method := 'phone_alias';
        candidates := array(
            select distinct a.contact_id
            from public.contact_addresses as a
            where a.kind = 'phone' and a.address = any (gleaner.phone_aliases(p_address))
            order by a.contact_id limit 20);
        if candidates <> '{}' or p_address !~ '^\+1[0-9]{10}$' then
            return;
        end if;
        method := 'phone_loose';
        candidates := array(
            select distinct a.contact_id
            from public.contact_addresses as a
            where a.kind = 'phone' and a.loose = substr(p_address, 3)
              and (a.address like '+1%' or gleaner.is_region_of_one(p_provider))
            order by a.contact_id limit 20);
    end if;
end
$_$;

COMMENT ON FUNCTION gleaner.match_contact(p_kind text, p_address text, p_provider uuid, OUT method text, OUT candidates bigint[]) IS 'The contacts an address belongs to, and by which rule.';

CREATE FUNCTION gleaner.match_context_items(p_basket_id uuid, p_items jsonb) RETURNS TABLE(id uuid, metadata jsonb)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select distinct on (c.id) c.id, case when jsonb_typeof(given.item -> 'metadata') = 'object' then given.item -> 'metadata' else '{}' end
    from jsonb_array_elements(p_items) with ordinality as given (item, n)
    join public.context_items as c
      on c.basket_id = p_basket_id
     and c.kind = given.item ->> 'kind'
     and md5(lower(btrim(regexp_replace(c.label, '\s+', ' ', 'g')))) = md5(gleaner.same_label(given.item ->> 'label'))
    order by c.id, given.n desc
$$;

COMMENT ON FUNCTION gleaner.match_context_items(p_basket_id uuid, p_items jsonb) IS 'The stored entities that a list names, and what it says of them.';

CREATE FUNCTION gleaner.match_words(p_text text, p_status text, p_type text, p_owner bigint, p_unowned boolean, p_channel uuid, p_contact bigint, p_before timestamp with time zone, p_id uuid) RETURNS SETOF uuid
    LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 60
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
declare
    v_words tsquery;
    v_found uuid[];
    v_seen  bigint;
begin
    select to_tsquery('pg_catalog.simple', string_agg(w || ':*', ' & ')) into v_words
    from regexp_split_to_table(lower(p_text), '[^[:alnum:]]+') as w
    where w <> '';
    select count(*), array_agg(a.id order by a.created_at desc, a.id desc) filter (where w.words @@ v_words)
    into v_seen, v_found
    from (
        select a.id, a.created_at
        from public.activities as a
        where (p_status is null or a.processing_status = p_status)
          and (p_type is null or a.type = p_type)
          and (p_owner is null or a.sales_id = p_owner)
          and (p_unowned is not true or a.sales_id is null)
          and (p_channel is null or a.provider_id = p_channel)
          and (p_contact is null or a.contact_id = p_contact)
          and (p_before is null or a.created_at <= p_before)
          and (p_before is null or a.created_at < p_before or a.id < p_id)
        order by a.created_at desc, a.id desc
        limit 2000
    ) as a
    left join gleaner.activity_words as w on w.activity_id = a.id;
    if v_seen = 2000 and coalesce(cardinality(v_found), 0) < 60 then
        v_found := array(
            select a.id
            from (
                select w.activity_id
                from gleaner.activity_words as w
                where w.words @@ v_words
                  and (p_before is null or w.created_at <= p_before)
                order by w.created_at desc, w.activity_id desc
                limit 2000
            ) as w
            join public.activities as a on a.id = w.activity_id
            where (p_status is null or a.processing_status = p_status)
              and (p_type is null or a.type = p_type)
              and (p_owner is null or a.sales_id = p_owner)
              and (p_unowned is not true or a.sales_id is null)
              and (p_channel is null or a.provider_id = p_channel)
              and (p_contact is null or a.contact_id = p_contact)
              and (p_before is null or a.created_at <= p_before)
              and (p_before is null or a.created_at < p_before or a.id < p_id)
            order by a.created_at desc, a.id desc
            limit 60);
    end if;
    return query select unnest(v_found[1:60]);
end
$$;

COMMENT ON FUNCTION gleaner.match_words(p_text text, p_status text, p_type text, p_owner bigint, p_unowned boolean, p_channel uuid, p_contact bigint, p_before timestamp with time zone, p_id uuid) IS 'The newest activities with all these words.';

CREATE FUNCTION gleaner.me() RETURNS jsonb
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    v_claims  jsonb := nullif(current_setting('request.jwt.claims', true), '')::jsonb;
    v_trusted boolean := gleaner.is_trusted();
    v_worker  boolean := gleaner.worker_session() is not null;
    v_administrator boolean := v_trusted or gleaner.is_administrator();
    v_member  boolean := v_administrator or not v_worker and gleaner.is_member();
    v_person  jsonb;
    v_queues  jsonb;
begin
    if not v_trusted and not v_worker and to_regclass('public.sales') is not null then
        execute 'select to_jsonb(p) from (
                     select s.id, s.first_name, s.last_name, s.email, s.stale_threshold_minutes, s.allow_remote_processing
                     from public.sales as s where s.user_id = $1 and not s.disabled) as p'
        into v_person using (v_claims ->> 'sub')::uuid;
    end if;
    select coalesce(jsonb_object_agg(q.name, case
               when v_administrator or q.declaration #> '{grant,operate}' ? gleaner.caller_role() then 'all'
               when v_member and q.declaration #> '{grant,own}' ? gleaner.caller_role() then 'own'
               else 'none' end), '{}')
    into v_queues
    from gleaner.queue as q;
    return jsonb_build_object(
        'role', case when v_trusted then 'service' when v_worker then 'worker' when v_administrator then 'administrator'
                     when v_member then 'member' else 'stranger' end,
        'user_id', case when not v_worker then v_claims ->> 'sub' end,
        'email', v_claims ->> 'email',
        'person', v_person,
        'administrator', v_administrator,
        'member', v_member,
        'queues', v_queues,
        'server_time', clock_timestamp());
end
$_$;

COMMENT ON FUNCTION gleaner.me() IS 'Who the caller is, and what it may do.';

CREATE FUNCTION gleaner.merge_metadata(p_old jsonb, p_new jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if p_new is null or jsonb_typeof(p_new) = 'null' then
        return p_old;
    end if;
    return (p_old || p_new) - coalesce((select array_agg(m.key) from jsonb_each(p_new) as m where jsonb_typeof(m.value) = 'null'), '{}');
end
$$;

COMMENT ON FUNCTION gleaner.merge_metadata(p_old jsonb, p_new jsonb) IS 'The first object with the members of the second; null members are taken out.';

CREATE FUNCTION gleaner.my_workspaces() RETURNS uuid[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if gleaner.worker_session() is not null
       or to_regprocedure('gleaner.is_salesperson()') is not null and not gleaner.is_member() then
        return '{}';
    end if;
    return array(select m.workspace_id from public.workspace_members as m where m.user_id = auth.uid());
end
$$;

COMMENT ON FUNCTION gleaner.my_workspaces() IS 'The workspaces of the signed-in caller.';

CREATE FUNCTION gleaner.next_due_activities(p_owner bigint DEFAULT NULL::bigint, p_kinds text[] DEFAULT NULL::text[]) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_at timestamptz;
begin
    p_owner := gleaner.own_activities(p_owner);
    v_at := least(v_at,
        -- A rejected row is tried again when its time is over.
        (select min(r.until) from gleaner.rejected_row as r where r.queue = 'activities' and r.tenant = '' and r.until > v_now),
        (
            with recursive waiting as (
                (select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind, 1 as n from public.activities as q
                 where p_kinds is null and q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null order by (hashtextextended(q.type collate "C", 0) & -16) limit 1)
                union all
                select next.lane, next.kind, waiting.n + 1
                from waiting
                cross join lateral (
                    select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                    where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > (waiting.lane | 15) order by (hashtextextended(q.type collate "C", 0) & -16) limit 1
                ) as next
                where waiting.n < 1000
            )
            select min(p.at)
            from (select k::text as kind from unnest(p_kinds) as k union all select w.kind from waiting as w) as k cross join generate_series(0, 0) as c (class)
            cross join lateral (
                select q.due_at as at from public.activities as q
                where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and q.type = k.kind
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'activities' and r.tenant = '' and r.until > v_now)
                order by q.due_at, q.id limit 1
            ) as p),
        (
            with recursive waiting as (
                (select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind, 1 as n from public.activities as q
                 where p_kinds is null and q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null order by (hashtextextended(q.type collate "C", 0) & -16) limit 1)
                union all
                select next.lane, next.kind, waiting.n + 1
                from waiting
                cross join lateral (
                    select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                    where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > (waiting.lane | 15) order by (hashtextextended(q.type collate "C", 0) & -16) limit 1
                ) as next
                where waiting.n < 1000
            )
            select min(p.at)
            from (select k::text as kind from unnest(p_kinds) as k union all select w.kind from waiting as w) as k cross join generate_series(0, 0) as c (class)
            cross join lateral (
                select q.due_at as at from public.activities as q
                where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and q.type = k.kind
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'activities' and r.tenant = '' and r.until > v_now)
                order by q.due_at, q.id limit 1
            ) as p),
        (
            with recursive waiting as (
                (select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind, 1 as n from public.activities as q
                 where p_kinds is null and q.sales_id is not null and q.open_at is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null order by (hashtextextended(q.type collate "C", 0) & -16) limit 1)
                union all
                select next.lane, next.kind, waiting.n + 1
                from waiting
                cross join lateral (
                    select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                    where q.sales_id is not null and q.open_at is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > (waiting.lane | 15) order by (hashtextextended(q.type collate "C", 0) & -16) limit 1
                ) as next
                where waiting.n < 1000
            )
            select min(p.at)
            from (select k::text as kind from unnest(p_kinds) as k union all select w.kind from waiting as w) as k cross join generate_series(0, 0) as c (class)
            cross join lateral (
                select q.open_at as at from public.activities as q
                where q.sales_id is not null and q.open_at is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and q.type = k.kind
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'activities' and r.tenant = '' and r.until > v_now)
                order by q.open_at, q.id limit 1
            ) as p));
    -- Not by greatest alone, which passes over a null. Nothing while the queue is paused: whoever resumes it notifies those who wait.
    return case when v_at is not null and not exists (select from gleaner.pause as p where p.queue = 'activities') then greatest(v_at - v_now, interval '0') end;
end
$$;

ALTER FUNCTION gleaner.next_due_activities(p_owner bigint, p_kinds text[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.next_due_activities(p_owner bigint, p_kinds text[]) IS 'How long until a claim with the same arguments could find a row: zero when one is due, null when nothing waits.';

CREATE FUNCTION gleaner.next_due_dumps() RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_at timestamptz;
begin
    v_at := least(v_at,
        -- A rejected row is tried again when its time is over.
        (select min(r.until) from gleaner.rejected_row as r where r.queue = 'dumps' and r.tenant = '' and r.until > v_now),
        (select q.due_at as at from public.agent_processing_queue as q
        where q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null
          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'dumps' and r.tenant = '' and r.until > v_now)
        order by q.due_at, q.id limit 1));
    -- Not by greatest alone, which passes over a null. Nothing while the queue is paused: whoever resumes it notifies those who wait.
    return case when v_at is not null and not exists (select from gleaner.pause as p where p.queue = 'dumps') then greatest(v_at - v_now, interval '0') end;
end
$$;

ALTER FUNCTION gleaner.next_due_dumps() OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.next_due_dumps() IS 'How long until a claim with the same arguments could find a row: zero when one is due, null when nothing waits.';

CREATE FUNCTION gleaner.next_due_followups(p_kinds text[] DEFAULT NULL::text[]) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_at timestamptz;
begin
    v_at := least(v_at,
        -- A rejected row is tried again when its time is over.
        (select min(r.until) from gleaner.rejected_row as r where r.queue = 'followups' and r.tenant = '' and r.until > v_now),
        (
            with recursive waiting as (
                (select (hashtextextended(q.action_type collate "C", 0) & -16) as lane, q.action_type as kind, 1 as n from public.scheduled_actions as q
                 where p_kinds is null and q.status in ('pending', 'processing', 'failed') and q.due_at is not null order by (hashtextextended(q.action_type collate "C", 0) & -16) limit 1)
                union all
                select next.lane, next.kind, waiting.n + 1
                from waiting
                cross join lateral (
                    select (hashtextextended(q.action_type collate "C", 0) & -16) as lane, q.action_type as kind from public.scheduled_actions as q
                    where q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) > (waiting.lane | 15) order by (hashtextextended(q.action_type collate "C", 0) & -16) limit 1
                ) as next
                where waiting.n < 1000
            )
            select min(p.at)
            from (select k::text as kind from unnest(p_kinds) as k union all select w.kind from waiting as w) as k cross join generate_series(0, 0) as c (class)
            cross join lateral (
                select q.due_at as at from public.scheduled_actions as q
                where q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and q.action_type = k.kind
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'followups' and r.tenant = '' and r.until > v_now)
                order by q.due_at, q.id limit 1
            ) as p));
    -- Not by greatest alone, which passes over a null. Nothing while the queue is paused: whoever resumes it notifies those who wait.
    return case when v_at is not null and not exists (select from gleaner.pause as p where p.queue = 'followups') then greatest(v_at - v_now, interval '0') end;
end
$$;

ALTER FUNCTION gleaner.next_due_followups(p_kinds text[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.next_due_followups(p_kinds text[]) IS 'How long until a claim with the same arguments could find a row: zero when one is due, null when nothing waits.';

CREATE FUNCTION gleaner.next_due_jobs(p_kinds text[] DEFAULT NULL::text[]) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_at timestamptz;
    v_batches int8multirange;
begin
    select coalesce(range_agg(b.keys) filter (where b.mark = 0), '{}'), min(b.due_at) into v_batches, v_at from gleaner.batch_lease as b where b.queue = 'jobs';
    v_at := least(v_at, gleaner.next_range_jobs(p_kinds));
    v_at := least(v_at,
        -- A rejected row is tried again when its time is over.
        (select min(r.until) from gleaner.rejected_row as r where r.queue = 'jobs' and r.tenant = '' and r.until > v_now),
        (
            with recursive waiting as (
                (select ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) as lane, q.kind as kind, 1 as n from gleaner.jobs as q
                 where p_kinds is null and q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null order by ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) limit 1)
                union all
                select next.lane, next.kind, waiting.n + 1
                from waiting
                cross join lateral (
                    select ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) as lane, q.kind as kind from gleaner.jobs as q
                    where q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) > (waiting.lane | 15) order by ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) limit 1
                ) as next
                where waiting.n < 1000
            )
            select min(p.at)
            from (select k::text as kind from unnest(p_kinds) as k union all select w.kind from waiting as w) as k cross join generate_series(0, 3) as c (class)
            cross join lateral (
                select q.due_at as at from gleaner.jobs as q
                where q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) = ((hashtextextended(k.kind collate "C", 0) & -16) + c.class) and q.kind = k.kind
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'jobs' and r.tenant = '' and r.until > v_now)
                  and (q.lease <> 0 or not v_batches @> q.id)
                order by q.due_at, q.id limit 1
            ) as p));
    -- Not by greatest alone, which passes over a null. Nothing while the queue is paused: whoever resumes it notifies those who wait.
    return case when v_at is not null and not exists (select from gleaner.pause as p where p.queue = 'jobs') then greatest(v_at - v_now, interval '0') end;
end
$$;

ALTER FUNCTION gleaner.next_due_jobs(p_kinds text[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.next_due_jobs(p_kinds text[]) IS 'How long until a claim with the same arguments could find a row: zero when one is due, null when nothing waits.';

CREATE FUNCTION gleaner.next_due_polls() RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_at timestamptz;
begin
    v_at := least(v_at,
        -- A rejected row is tried again when its time is over.
        (select min(r.until) from gleaner.rejected_row as r where r.queue = 'polls' and r.tenant = '' and r.until > v_now),
        (select q.due_at as at from gleaner.polls as q
        where q.status in ('ready', 'running', 'failed') and q.due_at is not null
          and q.provider_id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'polls' and r.tenant = '' and r.until > v_now)
        order by q.due_at, q.provider_id limit 1));
    -- Not by greatest alone, which passes over a null. Nothing while the queue is paused: whoever resumes it notifies those who wait.
    return case when v_at is not null and not exists (select from gleaner.pause as p where p.queue = 'polls') then greatest(v_at - v_now, interval '0') end;
end
$$;

ALTER FUNCTION gleaner.next_due_polls() OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.next_due_polls() IS 'How long until a claim with the same arguments could find a row: zero when one is due, null when nothing waits.';

CREATE FUNCTION gleaner.next_due_runs(p_kinds text[] DEFAULT NULL::text[]) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_at timestamptz;
begin
    v_at := least(v_at,
        -- A rejected row is tried again when its time is over.
        (select min(r.until) from gleaner.rejected_row as r where r.queue = 'runs' and r.tenant = '' and r.until > v_now),
        (
            with recursive waiting as (
                (select (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) as lane, coalesce(q.kind, '') as kind, 1 as n from public.execution_jobs as q
                 where p_kinds is null and q.status in ('queued', 'running', 'failed') and q.due_at is not null order by (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) limit 1)
                union all
                select next.lane, next.kind, waiting.n + 1
                from waiting
                cross join lateral (
                    select (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) as lane, coalesce(q.kind, '') as kind from public.execution_jobs as q
                    where q.status in ('queued', 'running', 'failed') and q.due_at is not null and (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) > (waiting.lane | 15) order by (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) limit 1
                ) as next
                where waiting.n < 1000
            )
            select min(p.at)
            from (select k::text as kind from unnest(p_kinds) as k union all select w.kind from waiting as w) as k cross join generate_series(0, 0) as c (class)
            cross join lateral (
                select q.due_at as at from public.execution_jobs as q
                where q.status in ('queued', 'running', 'failed') and q.due_at is not null and (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) = (hashtextextended(k.kind collate "C", 0) & -16) and coalesce(q.kind, '') = k.kind
                  and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'runs' and r.tenant = '' and r.until > v_now)
                order by q.due_at, q.id limit 1
            ) as p));
    -- Not by greatest alone, which passes over a null. Nothing while the queue is paused: whoever resumes it notifies those who wait.
    return case when v_at is not null and not exists (select from gleaner.pause as p where p.queue = 'runs') then greatest(v_at - v_now, interval '0') end;
end
$$;

ALTER FUNCTION gleaner.next_due_runs(p_kinds text[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.next_due_runs(p_kinds text[]) IS 'How long until a claim with the same arguments could find a row: zero when one is due, null when nothing waits.';

CREATE FUNCTION gleaner.next_due_schedules() RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_at timestamptz;
begin
    v_at := least(v_at,
        -- A rejected row is tried again when its time is over.
        (select min(r.until) from gleaner.rejected_row as r where r.queue = 'schedules' and r.tenant = '' and r.until > v_now),
        (select q.due_at as at from public.followup_schedules as q
        where q.status in ('active', 'working', 'failed') and q.due_at is not null
          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'schedules' and r.tenant = '' and r.until > v_now)
        order by q.due_at, q.id limit 1));
    -- Not by greatest alone, which passes over a null. Nothing while the queue is paused: whoever resumes it notifies those who wait.
    return case when v_at is not null and not exists (select from gleaner.pause as p where p.queue = 'schedules') then greatest(v_at - v_now, interval '0') end;
end
$$;

ALTER FUNCTION gleaner.next_due_schedules() OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.next_due_schedules() IS 'How long until a claim with the same arguments could find a row: zero when one is due, null when nothing waits.';

CREATE FUNCTION gleaner.next_range_jobs(p_kinds text[]) RETURNS timestamp with time zone
    LANGUAGE plpgsql
    AS $$
begin
    return (
        select min(head.due_at)
        from unnest(coalesce(p_kinds, array(
            with recursive kinds as (
                (select r.kind from gleaner.bulk_range as r where r.queue = 'jobs' order by r.kind limit 1)
                union all
                select next.kind
                from kinds
                cross join lateral (
                    select r.kind from gleaner.bulk_range as r where r.queue = 'jobs' and r.kind > kinds.kind order by r.kind limit 1
                ) as next
            )
            select k.kind from kinds as k))) as k (kind)
        cross join generate_series(0, 3) as c (class)
        cross join lateral (
            select r.due_at from gleaner.bulk_range as r
            where r.queue = 'jobs' and r.kind = k.kind and r.class = c.class order by r.due_at, r.first limit 1
        ) as head);
end
$$;

ALTER FUNCTION gleaner.next_range_jobs(p_kinds text[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.note_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    SET "DateStyle" TO 'ISO'
    SET "IntervalStyle" TO 'postgres'
    SET extra_float_digits TO '1'
    SET bytea_output TO 'hex'
    AS $$
begin
    -- Read from a sequence, which is current for old snapshots too: a serializable writer must not miss a new subscriber.
    if (select s.last_value from gleaner.changes_wanted_until as s) < extract(epoch from clock_timestamp()) * 1000 then
        return null;
    end if;
    -- Of an old row only the key is ever reported, and that is among its first columns; who reads it checks.
    if tg_op = 'DELETE' then
        insert into gleaner.change (relation, kind, old_row) values (tg_relid, 'D', left(old::text, 4096));
    elsif tg_name = '00_gleaner_rekey' then
        insert into gleaner.change (relation, kind, new_row, old_row) values (tg_relid, 'U', new::text, left(old::text, 4096));
    else
        insert into gleaner.change (relation, kind, new_row) values (tg_relid, left(tg_op, 1)::"char", new::text);
    end if;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.note_change() IS 'Notes a changed row while a server follows without the log.';

CREATE FUNCTION gleaner.note_deleted_user() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_op = 'INSERT' then
        delete from gleaner.deleted_user as d where d.id = new.id;
        return null;
    end if;
    insert into gleaner.deleted_user (id) values (old.id) on conflict (id) do nothing;
    perform pg_notify('gleaner', 'auth.users');
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.note_deleted_user() IS 'Notes that a user was deleted, so that its tokens end.';

CREATE FUNCTION gleaner.note_prune(p_queue text, p_count integer, p_older_than interval) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if p_count > 0 and not gleaner.is_trusted() then
        insert into gleaner.audit (queue, key, act, caller, detail)
        values (p_queue, '', 'prune', gleaner.caller_session(), jsonb_build_object('count', p_count, 'older_than', p_older_than));
    end if;
end
$$;

COMMENT ON FUNCTION gleaner.note_prune(p_queue text, p_count integer, p_older_than interval) IS 'Records that a person pruned, and how much.';

CREATE FUNCTION gleaner.note_receipt(p_message_id text, p_receipt jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_row   public.scheduled_actions;
    v_final boolean;
begin
    select a.* into v_row from public.scheduled_actions as a where a.result ->> 'receipt_id' = p_message_id for no key update;
    if not found then
        return;
    end if;
    v_final := v_row.result #>> '{receipt,final}' is not distinct from 'true';
    if v_row.result -> 'receipt' is distinct from p_receipt and not v_final then
        update public.scheduled_actions as a set result = a.result || jsonb_build_object('receipt', p_receipt) where a.id = v_row.id;
        if to_regclass('public.activities') is not null then
            update public.activities as a set metadata = a.metadata || jsonb_build_object('delivery', p_receipt)
            where a.contact_id is not distinct from v_row.contact_id and a.direction = 'outbound'
              and a.metadata ->> 'followup_id' = v_row.id::text and a.created_at >= v_row.sending_at;
        end if;
    end if;
    if p_receipt ->> 'unwanted' = 'true' then
        insert into public.do_not_contact as d (address, contact_id, reason)
        values (v_row.message ->> 'to', v_row.contact_id, coalesce(p_receipt ->> 'detail', p_receipt ->> 'status'))
        on conflict (address) do nothing;
    end if;
end
$$;

COMMENT ON FUNCTION gleaner.note_receipt(p_message_id text, p_receipt jsonb) IS 'Keeps what a provider reports about a message we sent.';

CREATE FUNCTION gleaner.notify_rows() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform pg_notify('gleaner', tg_argv[0]);
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.notify_rows() IS 'Wakes the workers that listen for a queue, when the writer''s transaction commits.';

CREATE FUNCTION gleaner.open_activities(p_owner bigint, p_since timestamp with time zone, p_due timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return (
        select case when coalesce(o.allow_remote_processing, false) then greatest(p_since + coalesce(o.stale_threshold_minutes * interval '1 minute', interval '5 minutes'), p_due) end
        from (select p_owner as id) as asked
        left join public.sales as o on o.id = asked.id);
end
$$;

ALTER FUNCTION gleaner.open_activities(p_owner bigint, p_since timestamp with time zone, p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.open_session(p_user uuid, p_password text, p_token text, p_method text, p_user_agent text, p_ip inet) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    v_user    record;
    v_session uuid;
begin
    -- Locked, so that a ban or a new password, which ends all sessions, cannot miss the one about to be made.
    select u.encrypted_password as password, u.email_confirmed_at as confirmed_at into v_user
    from auth.users as u where u.id = p_user for no key update;
    if not found or p_password is not null and v_user.password is distinct from p_password then
        return jsonb_build_object('outcome', 'refused');
    elsif gleaner.find_ban(p_user) is not null then
        return jsonb_build_object('outcome', 'user_banned');
    elsif v_user.confirmed_at is null then
        return jsonb_build_object('outcome', 'email_not_confirmed');
    end if;
    update auth.users as u set last_sign_in_at = v_now, updated_at = v_now where u.id = p_user;
    update auth.identities as i set last_sign_in_at = v_now, updated_at = v_now where i.user_id = p_user and i.provider = 'email';
    -- Sessions that were not used for so long cannot be refreshed any more.
    delete from auth.sessions as s where s.user_id = p_user and coalesce(s.refreshed_at, s.created_at) < v_now - interval '90 days';
    insert into auth.sessions (user_id, method, user_agent, ip, created_at) values (p_user, p_method, p_user_agent, p_ip, v_now) returning id into v_session;
    insert into auth.refresh_tokens (token, user_id, session_id) values (p_token, p_user, v_session);
    return jsonb_build_object('outcome', 'opened', 'session_id', v_session, 'method', p_method,
                              'signed_in_at', floor(extract(epoch from v_now)), 'user', gleaner.show_user(p_user));
end
$$;

COMMENT ON FUNCTION gleaner.open_session(p_user uuid, p_password text, p_token text, p_method text, p_user_agent text, p_ip inet) IS 'Signs a user in: a session and its first refresh token.';

CREATE FUNCTION gleaner.operate_activities(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_caller text := gleaner.caller_session();
    v_row public.activities;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.admit_activities(p_ids);
    if p_act = 'reschedule' then perform gleaner.check_time(p_act, p_due); end if;
    -- Waits for an act that is about to move a row: what is moving must not be missed.
    for v_row in select q.* from public.activities as q where q.id = any (p_ids) order by q.id for no key update loop
        id := v_row.id;
        outcome := case when (case when p_act = 'requeue' then v_row.processing_status = 'raw' and v_row.due_at <= v_now else not (v_row.processing_status in ('raw', 'processing', 'failed') and v_row.due_at is not null) or v_row.due_at = p_due end) then 'already'
                        when p_act = 'reschedule' and v_row.processing_status in ('processing') then 'lost' else 'done' end;
        status := v_row.processing_status;
        if outcome = 'done' then
            insert into gleaner.audit (queue, tenant, key, act, caller, detail)
            values ('activities', '', id::text, p_act, v_caller,
                    case when p_act = 'reschedule' then jsonb_build_object('from', v_row.due_at, 'to', p_due)
                         else jsonb_build_object('from', v_row.processing_status, 'reason', p_reason) end);
            status := case p_act
                when 'reschedule' then gleaner.settle_activities(v_row, v_row.processing_status, p_due, false, v_row.attempts, v_row.lost)
                when 'requeue' then gleaner.settle_activities(v_row, 'raw', v_now, false, 0, 0)
                when 'cancel' then gleaner.settle_activities(v_row, 'cancelled', null, false, v_row.attempts, v_row.lost, 'Cancelled', p_reason)
                else gleaner.settle_activities(v_row, 'failed', null, false, v_row.attempts, v_row.lost, 'Buried', coalesce(p_reason, 'buried by hand'))
            end;
        end if;
        return next;
    end loop;
    return query
    select u.id, 'gone', null::text from unnest(p_ids) as u (id) where not exists (select from public.activities as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.operate_activities(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.operate_dumps(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_caller text := gleaner.caller_session();
    v_row public.agent_processing_queue;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.admit_dumps(p_ids);
    if p_act = 'reschedule' then perform gleaner.check_time(p_act, p_due); end if;
    -- Waits for an act that is about to move a row: what is moving must not be missed.
    for v_row in select q.* from public.agent_processing_queue as q where q.id = any (p_ids) order by q.id for no key update loop
        id := v_row.id;
        outcome := case when (case when p_act = 'requeue' then v_row.processing_state = 'pending'::public.processing_state and v_row.due_at <= v_now else not (v_row.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and v_row.due_at is not null) or v_row.due_at = p_due end) then 'already'
                        when p_act = 'reschedule' and v_row.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) then 'lost' else 'done' end;
        status := v_row.processing_state;
        if outcome = 'done' then
            insert into gleaner.audit (queue, tenant, key, act, caller, detail)
            values ('dumps', '', id::text, p_act, v_caller,
                    case when p_act = 'reschedule' then jsonb_build_object('from', v_row.due_at, 'to', p_due)
                         else jsonb_build_object('from', v_row.processing_state, 'reason', p_reason) end);
            status := case p_act
                when 'reschedule' then gleaner.settle_dumps(v_row, v_row.processing_state, p_due, false, v_row.attempts, v_row.lost)
                when 'requeue' then gleaner.settle_dumps(v_row, 'pending'::public.processing_state, v_now, false, 0, 0)
                when 'cancel' then gleaner.settle_dumps(v_row, 'cancelled'::public.processing_state, null, false, v_row.attempts, v_row.lost, 'Cancelled', p_reason)
                else gleaner.settle_dumps(v_row, 'failed'::public.processing_state, null, false, v_row.attempts, v_row.lost, 'Buried', coalesce(p_reason, 'buried by hand'))
            end;
        end if;
        return next;
    end loop;
    return query
    select u.id, 'gone', null::text from unnest(p_ids) as u (id) where not exists (select from public.agent_processing_queue as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.operate_dumps(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.operate_followups(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_caller text := gleaner.caller_session();
    v_row public.scheduled_actions;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.admit_followups(p_ids);
    if p_act = 'reschedule' then perform gleaner.check_time(p_act, p_due); end if;
    -- Waits for an act that is about to move a row: what is moving must not be missed.
    for v_row in select q.* from public.scheduled_actions as q where q.id = any (p_ids) order by q.id for no key update loop
        id := v_row.id;
        outcome := case when (case when p_act = 'requeue' then v_row.status = 'pending' and v_row.due_at <= v_now else not (v_row.status in ('pending', 'processing', 'failed') and v_row.due_at is not null) or v_row.due_at = p_due end) then 'already'
                        when p_act = 'reschedule' and v_row.status in ('processing') then 'lost' else 'done' end;
        status := v_row.status;
        if outcome = 'done' then
            insert into gleaner.audit (queue, tenant, key, act, caller, detail)
            values ('followups', '', id::text, p_act, v_caller,
                    case when p_act = 'reschedule' then jsonb_build_object('from', v_row.due_at, 'to', p_due)
                         else jsonb_build_object('from', v_row.status, 'reason', p_reason) end);
            if p_act = 'reschedule' then
                v_row.scheduled_for := p_due;
                update public.scheduled_actions as q set scheduled_for = v_row.scheduled_for where q.id = v_row.id;
            end if;
            status := case p_act
                when 'reschedule' then gleaner.settle_followups(v_row, v_row.status, p_due, false, v_row.attempts, v_row.lost)
                when 'requeue' then gleaner.settle_followups(v_row, 'pending', v_now, false, 0, 0)
                when 'cancel' then gleaner.settle_followups(v_row, 'cancelled', null, false, v_row.attempts, v_row.lost, 'Cancelled', p_reason)
                else gleaner.settle_followups(v_row, 'failed', null, false, v_row.attempts, v_row.lost, 'Buried', coalesce(p_reason, 'buried by hand'))
            end;
        end if;
        return next;
    end loop;
    return query
    select u.id, 'gone', null::text from unnest(p_ids) as u (id) where not exists (select from public.scheduled_actions as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.operate_followups(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.operate_jobs(p_act text, p_ids bigint[], p_reason text, p_due timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_caller text := gleaner.caller_session();
    v_row gleaner.jobs;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.operates('jobs', array['service_role'], '{}');
    perform gleaner.unbatch_jobs(p_ids);
    if p_act = 'reschedule' then perform gleaner.check_time(p_act, p_due); end if;
    -- Waits for an act that is about to move a row: what is moving must not be missed.
    for v_row in select q.* from gleaner.jobs as q where q.id = any (p_ids) order by q.id for no key update loop
        id := v_row.id;
        outcome := case when (case when p_act = 'requeue' then v_row.status = 'ready' and v_row.due_at <= v_now
            -- A row whose bulk range is lost waits where no claim looks; it goes back in the line by itself.
            and (v_row.lease <> -1 or (gleaner.range_keys('jobs') + gleaner.batch_keys('jobs')) @> v_row.id) else not (v_row.status in ('ready', 'running', 'failed') and v_row.due_at is not null) or v_row.due_at = p_due end) then 'already'
                        when p_act = 'reschedule' and v_row.status in ('running') then 'lost' else 'done' end;
        status := v_row.status;
        if outcome = 'done' then
            insert into gleaner.audit (queue, tenant, key, act, caller, detail)
            values ('jobs', '', id::text, p_act, v_caller,
                    case when p_act = 'reschedule' then jsonb_build_object('from', v_row.due_at, 'to', p_due)
                         else jsonb_build_object('from', v_row.status, 'reason', p_reason) end);
            status := case p_act
                when 'reschedule' then gleaner.settle_jobs(v_row, v_row.status, p_due, false, v_row.attempts, v_row.lost)
                when 'requeue' then gleaner.settle_jobs(v_row, 'ready', v_now, false, 0, 0)
                when 'cancel' then gleaner.settle_jobs(v_row, 'cancelled', null, false, v_row.attempts, v_row.lost, 'Cancelled', p_reason)
                else gleaner.settle_jobs(v_row, 'failed', null, false, v_row.attempts, v_row.lost, 'Buried', coalesce(p_reason, 'buried by hand'))
            end;
        end if;
        return next;
    end loop;
    return query
    select u.id, 'gone', null::text from unnest(p_ids) as u (id) where not exists (select from gleaner.jobs as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.operate_jobs(p_act text, p_ids bigint[], p_reason text, p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.operate_polls(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_caller text := gleaner.caller_session();
    v_row gleaner.polls;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.operates('polls', array['service_role'], '{}');
    if p_act = 'reschedule' then perform gleaner.check_time(p_act, p_due); end if;
    -- Waits for an act that is about to move a row: what is moving must not be missed.
    for v_row in select q.* from gleaner.polls as q where q.provider_id = any (p_ids) order by q.provider_id for no key update loop
        id := v_row.provider_id;
        outcome := case when (case when p_act = 'requeue' then v_row.status = 'ready' and v_row.due_at <= v_now else not (v_row.status in ('ready', 'running', 'failed') and v_row.due_at is not null) or v_row.due_at = p_due end) then 'already'
                        when p_act = 'reschedule' and v_row.status in ('running') then 'lost' else 'done' end;
        status := v_row.status;
        if outcome = 'done' then
            insert into gleaner.audit (queue, tenant, key, act, caller, detail)
            values ('polls', '', id::text, p_act, v_caller,
                    case when p_act = 'reschedule' then jsonb_build_object('from', v_row.due_at, 'to', p_due)
                         else jsonb_build_object('from', v_row.status, 'reason', p_reason) end);
            if p_act = 'reschedule' then
                v_row.wanted_at := p_due;
                update gleaner.polls as q set wanted_at = v_row.wanted_at where q.provider_id = v_row.provider_id;
            end if;
            status := case p_act
                when 'reschedule' then gleaner.settle_polls(v_row, v_row.status, p_due, false, v_row.attempts, v_row.lost)
                when 'requeue' then gleaner.settle_polls(v_row, 'ready', v_now, false, 0, 0)
                when 'cancel' then gleaner.settle_polls(v_row, 'failed', null, false, v_row.attempts, v_row.lost, 'Cancelled', p_reason)
                else gleaner.settle_polls(v_row, 'failed', null, false, v_row.attempts, v_row.lost, 'Buried', coalesce(p_reason, 'buried by hand'))
            end;
        end if;
        return next;
    end loop;
    return query
    select u.id, 'gone', null::text from unnest(p_ids) as u (id) where not exists (select from gleaner.polls as q where q.provider_id = u.id);
end
$$;

ALTER FUNCTION gleaner.operate_polls(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.operate_runs(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_caller text := gleaner.caller_session();
    v_row public.execution_jobs;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.operates('runs', array['service_role'], array['authenticated']);
    if p_act = 'reschedule' then perform gleaner.check_time(p_act, p_due); end if;
    -- Waits for an act that is about to move a row: what is moving must not be missed.
    for v_row in select q.* from public.execution_jobs as q where q.id = any (p_ids) order by q.id for no key update loop
        id := v_row.id;
        outcome := case when (case when p_act = 'requeue' then v_row.status = 'queued' and v_row.due_at <= v_now else not (v_row.status in ('queued', 'running', 'failed') and v_row.due_at is not null) or v_row.due_at = p_due end) then 'already'
                        when p_act = 'reschedule' and v_row.status in ('running') then 'lost' else 'done' end;
        status := v_row.status;
        if outcome = 'done' then
            insert into gleaner.audit (queue, tenant, key, act, caller, detail)
            values ('runs', '', id::text, p_act, v_caller,
                    case when p_act = 'reschedule' then jsonb_build_object('from', v_row.due_at, 'to', p_due)
                         else jsonb_build_object('from', v_row.status, 'reason', p_reason) end);
            status := case p_act
                when 'reschedule' then gleaner.settle_runs(v_row, v_row.status, p_due, false, v_row.attempts, v_row.lost)
                when 'requeue' then gleaner.settle_runs(v_row, 'queued', v_now, false, 0, 0)
                when 'cancel' then gleaner.settle_runs(v_row, 'cancelled', null, false, v_row.attempts, v_row.lost, 'Cancelled', p_reason)
                else gleaner.settle_runs(v_row, 'failed', null, false, v_row.attempts, v_row.lost, 'Buried', coalesce(p_reason, 'buried by hand'))
            end;
        end if;
        return next;
    end loop;
    return query
    select u.id, 'gone', null::text from unnest(p_ids) as u (id) where not exists (select from public.execution_jobs as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.operate_runs(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.operate_schedules(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_caller text := gleaner.caller_session();
    v_row public.followup_schedules;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.admit_schedules(p_ids);
    if p_act = 'reschedule' then perform gleaner.check_time(p_act, p_due); end if;
    -- Waits for an act that is about to move a row: what is moving must not be missed.
    for v_row in select q.* from public.followup_schedules as q where q.id = any (p_ids) order by q.id for no key update loop
        id := v_row.id;
        outcome := case when (case when p_act = 'requeue' then v_row.status = 'active' and v_row.due_at <= v_now else not (v_row.status in ('active', 'working', 'failed') and v_row.due_at is not null) or v_row.due_at = p_due end) then 'already'
                        when p_act = 'reschedule' and v_row.status in ('working') then 'lost' else 'done' end;
        status := v_row.status;
        if outcome = 'done' then
            insert into gleaner.audit (queue, tenant, key, act, caller, detail)
            values ('schedules', '', id::text, p_act, v_caller,
                    case when p_act = 'reschedule' then jsonb_build_object('from', v_row.due_at, 'to', p_due)
                         else jsonb_build_object('from', v_row.status, 'reason', p_reason) end);
            if p_act = 'reschedule' then
                v_row.next_at := p_due;
                update public.followup_schedules as q set next_at = v_row.next_at where q.id = v_row.id;
            end if;
            status := case p_act
                when 'reschedule' then gleaner.settle_schedules(v_row, v_row.status, p_due, false, v_row.attempts, v_row.lost)
                when 'requeue' then gleaner.settle_schedules(v_row, 'active', v_now, false, 0, 0)
                when 'cancel' then gleaner.settle_schedules(v_row, 'paused', null, false, v_row.attempts, v_row.lost, 'Cancelled', p_reason)
                else gleaner.settle_schedules(v_row, 'failed', null, false, v_row.attempts, v_row.lost, 'Buried', coalesce(p_reason, 'buried by hand'))
            end;
        end if;
        return next;
    end loop;
    return query
    select u.id, 'gone', null::text from unnest(p_ids) as u (id) where not exists (select from public.followup_schedules as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.operate_schedules(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.operates(p_queue text, p_all text[], p_own text[]) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if gleaner.is_trusted() or gleaner.caller_role() = any (p_all) or gleaner.is_administrator() then
        return 'all';
    end if;
    if gleaner.caller_role() = any (p_own) and gleaner.worker_session() is null and gleaner.is_member() then
        return 'own';
    end if;
    raise exception 'only administrators may do this in the queue %', p_queue
        using errcode = '42501', hint = 'Ask an administrator of the team, or use the service key.';
end
$$;

COMMENT ON FUNCTION gleaner.operates(p_queue text, p_all text[], p_own text[]) IS 'Whether the caller operates all rows of a queue, or its own.';

CREATE FUNCTION gleaner.opt_out_word(p_text text, p_type text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    v_said text := regexp_replace(left(coalesce(p_text, ''), 1000), '(\n\s*>|\n-- ?\n|\n[^\n]*(wrote|schrieb|a écrit|escribió|пише|пишет)[^\n]*:\s*\n).*$', '', 'i');
begin
    v_said := translate(lower(v_said), 'áàâäéèêëíìîïóòôöúùûüñç', 'aaaaeeeeiiiioooouuuunc');
    v_said := regexp_replace(v_said, '[^[:alnum:]]+', '', 'g');
    return case
        when v_said in ('stop', 'unsubscribe', 'stopall', 'revoke', 'optout', 'remove', 'td', 'arret', 'arrete', 'arrett',
                        'stopp', 'abmelden', 'abbestellen', 'desabonner', 'desinscrire', 'baja', 'alto', 'parar',
                        'стоп', 'відписатися', 'скасувати', 'отписаться', 'отписка') then 'stop'
        when p_type in ('sms', 'whatsapp') and v_said in ('end', 'quit', 'cancel', 'cancelar') then 'stop'
        when v_said in ('start', 'unstop') or p_type in ('sms', 'whatsapp') and v_said = 'yes' then 'start'
    end;
end
$_$;

COMMENT ON FUNCTION gleaner.opt_out_word(p_text text, p_type text) IS 'stop or start, when a message says nothing else.';

CREATE FUNCTION gleaner.own_activities(p_owner bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $$
declare
    v_owner bigint;
begin
    if gleaner.is_trusted() then
        return p_owner;
    end if;
    select o.id into v_owner from public.sales as o where o.user_id = gleaner.caller_uid() and o.disabled is not true;
    if p_owner is not null and p_owner is distinct from v_owner then
        raise exception '% is not the caller''s own id in public.sales', p_owner
            using errcode = '42501', hint = 'Leave the owner out to act as yourself, or use the service key.';
    end if;
    if v_owner is null and gleaner.worker_session() is null then
        raise exception 'the caller is no owner in public.sales, or a disabled one'
            using errcode = '42501', hint = 'Work is for owners, for keys made by `gleaner keys add`, and for the service key.';
    end if;
    return v_owner;
end
$$;

ALTER FUNCTION gleaner.own_activities(p_owner bigint) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.owns_contact(p_contact bigint) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    if to_regclass('public.contacts') is null then
        return true;
    end if;
    return exists (
        select from public.contacts as c
        left join public.sales as s on s.id = c.sales_id
        where c.id = p_contact and (c.sales_id is null or s.user_id = gleaner.caller_uid()));
end
$$;

COMMENT ON FUNCTION gleaner.owns_contact(p_contact bigint) IS 'Whether a contact is the signed-in caller''s own, or has no owner.';

CREATE FUNCTION gleaner.owns_workspace(p_workspace_id uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return gleaner.is_trusted() or gleaner.is_administrator()
        or p_workspace_id = any (gleaner.my_workspaces())
           and exists (select from public.workspace_members as m
                       where m.workspace_id = p_workspace_id and m.user_id = auth.uid() and m.role = 'owner');
end
$$;

COMMENT ON FUNCTION gleaner.owns_workspace(p_workspace_id uuid) IS 'Whether the caller may invite to a workspace and remove from it.';

CREATE FUNCTION gleaner.parse_addresses(p_parsed jsonb) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
declare
    v_read integer;
    v_new  record;
begin
    for v_new in
        with item as materialized (
            select a.contact_id, a.kind, a.address as guess, a.written, a.written_at, p.address, p.loose,
                   p.address is not null and (a.address = p.address
                       or a.kind = 'email'
                       or ltrim(a.address, '+') = ltrim(p.address, '+')
                       or a.address ~ '^[0-9]{7,}$') as stays
            from jsonb_to_recordset(p_parsed) as p (contact_id bigint, kind text, guess text, written text, address text, loose text)
            join public.contact_addresses as a
                on a.kind = p.kind and a.address = p.guess and a.contact_id = p.contact_id and a.written = p.written
            join public.contacts as c on c.id = a.contact_id
            where not a.parsed
            for update of a skip locked
            for key share of c skip locked
        ),
        kept as (
            update public.contact_addresses as a
            set parsed = true, loose = case when i.guess = i.address then i.loose when a.kind = 'email' then a.loose end
            from item as i
            where i.stays and a.kind = i.kind and a.address = i.guess and a.contact_id = i.contact_id and a.written = i.written
        ),
        dropped as (
            delete from public.contact_addresses as a
            using item as i
            where not i.stays and a.kind = i.kind and a.address = i.guess and a.contact_id = i.contact_id and a.written = i.written
        ),
        added as (
            insert into public.contact_addresses (contact_id, kind, address, written, loose, parsed, written_at)
            select i.contact_id, i.kind, i.address, i.written, i.loose, true, i.written_at
            from item as i
            where i.address is distinct from i.guess and i.address is not null
            on conflict do nothing
        )
        select i.kind, i.address, i.loose, i.address is distinct from i.guess as is_new, count(*) over ()::integer as total
        from item as i
    loop
        v_read := v_new.total;
        if v_new.is_new and v_new.address is not null then
            perform gleaner.look_again(
                v_new.kind,
                array[v_new.address] || case v_new.kind
                    when 'phone' then gleaner.phone_aliases(v_new.address) || array_remove(array['+1' || v_new.loose], null) else '{}' end);
        end if;
    end loop;
    return coalesce(v_read, 0);
end
$_$;

COMMENT ON FUNCTION gleaner.parse_addresses(p_parsed jsonb) IS 'Puts what a server read of contacts'' addresses in the place of what SQL had guessed.';

CREATE FUNCTION gleaner.pause_queue(p_queue text, p_paused boolean DEFAULT true, p_reason text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_operate text[];
begin
    select array(select jsonb_array_elements_text(q.declaration #> '{grant,operate}')) into v_operate from gleaner.queue as q where q.name = p_queue;
    if not found then
        raise exception 'there is no queue %', p_queue using errcode = 'P0002', hint = 'gleaner queues lists them.';
    end if;
    perform gleaner.operates(p_queue, v_operate, '{}');
    if p_paused then
        insert into gleaner.pause (queue, caller, reason) values (p_queue, gleaner.caller_session(), p_reason) on conflict do nothing;
    else
        delete from gleaner.pause as p where p.queue = p_queue;
    end if;
    if not found then
        return 'already';
    end if;
    insert into gleaner.audit (queue, key, act, caller, detail)
    values (p_queue, '', case when p_paused then 'pause' else 'resume' end, gleaner.caller_session(), jsonb_build_object('reason', p_reason));
    if not p_paused then
        -- What waited is due now, and workers may have been told that nothing is.
        perform pg_notify('gleaner', p_queue);
    end if;
    return 'done';
end
$$;

COMMENT ON FUNCTION gleaner.pause_queue(p_queue text, p_paused boolean, p_reason text) IS 'Pauses or resumes a queue: claims find nothing in a paused one.';

CREATE FUNCTION gleaner.pending_addresses(p_limit integer DEFAULT 200) RETURNS TABLE(contact_id bigint, kind text, guess text, written text, region text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    return query
    select a.contact_id, a.kind, a.address, a.written, gleaner.default_region()
    from public.contact_addresses as a
    where not a.parsed
    order by a.contact_id desc
    limit p_limit;
end
$$;

COMMENT ON FUNCTION gleaner.pending_addresses(p_limit integer) IS 'Addresses of contacts that a server has not read yet.';

CREATE FUNCTION gleaner.phone_aliases(p_address text) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
begin
    return case
        when p_address ~ '^\+521[0-9]{10}$' then array['+52' || substr(p_address, 5)]
        when p_address ~ '^\+52[0-9]{10}$' then array['+521' || substr(p_address, 4)]
        when p_address ~ '^\+55[1-9][0-9]9[6-9][0-9]{7}$' then array[left(p_address, 5) || substr(p_address, 7)]
        when p_address ~ '^\+55[1-9][0-9][6-9][0-9]{7}$' then array[left(p_address, 5) || '9' || substr(p_address, 6)]
        when p_address ~ '^\+549[0-9]{10}$' then array['+54' || substr(p_address, 5)]
        when p_address ~ '^\+54[0-9]{10}$' then array['+549' || substr(p_address, 4)]
        else '{}'
    end;
end
$_$;

COMMENT ON FUNCTION gleaner.phone_aliases(p_address text) IS 'Other spellings of a mobile number in Mexico, Brazil and Argentina.';

CREATE FUNCTION gleaner.prepare_api_login(p_name text, p_verifier text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_role text;
begin
    perform pg_advisory_xact_lock(hashtextextended('gleaner api login', 0));
    -- Another database of the same server may make the role at this moment: existing is success.
    begin
        if not exists (select from pg_roles as r where r.rolname = 'gleaner_api') then
            create role gleaner_api nologin noinherit;
        end if;
    exception when duplicate_object or unique_violation then
        null;
    end;
    foreach v_role in array array['anon', 'authenticated', 'service_role'] loop
        begin
            if not pg_has_role('gleaner_api', v_role, 'member') then
                execute format('grant %I to gleaner_api', v_role);
            end if;
        exception when unique_violation then
            null;
        end;
    end loop;
    if not exists (select from pg_roles as r where r.rolname = p_name) then
        execute format('create role %I login inherit', p_name);
    end if;
    execute format('alter role %I password %L', p_name, p_verifier);
    if not pg_has_role(p_name, 'gleaner_api', 'usage') then
        execute format('grant gleaner_api to %I', p_name);
    end if;
    grant usage on schema gleaner to gleaner_api;
    grant execute on function gleaner.refuse_banned(uuid) to gleaner_api;
    grant execute on function gleaner.run_request(uuid, text[], text, text[], integer) to gleaner_api;
end
$$;

COMMENT ON FUNCTION gleaner.prepare_api_login(p_name text, p_verifier text) IS 'Makes the login with which a server runs the statements of API requests.';

CREATE FUNCTION gleaner.prepare_followup(p_request jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_row     public.scheduled_actions;
    v_contact jsonb;
    v_heard   jsonb;
    v_said    jsonb := '[]';
    v_reached jsonb := '{}';
    v_names   text[];
begin
    select a.* into v_row from public.scheduled_actions as a
    where a.id = (p_request ->> 'id')::uuid and a.lease = (p_request ->> 'lease')::bigint and a.status = 'processing';
    if not found then
        return '{"outcome": "lost"}';
    end if;
    if v_row.contact_id is null then
        v_row.contact_id := gleaner.contact_of_prospect(v_row.prospect_id);
        if v_row.contact_id is not null then
            update public.scheduled_actions as a set contact_id = v_row.contact_id where a.id = v_row.id;
        end if;
    end if;
    if to_regclass('public.activities') is not null then
        if v_row.contact_id is not null then
            select jsonb_build_object('id', c.id, 'first_name', c.first_name, 'last_name', c.last_name, 'sales_id', c.sales_id) into v_contact
            from public.contacts as c where c.id = v_row.contact_id;
            -- Of several addresses the one that was read for certain, then the first.
            select coalesce(jsonb_object_agg(k.kind, k.address), '{}') into v_reached
            from (
                select distinct on (n.kind) n.kind, n.address
                from (select a.kind, a.address, a.parsed, 1 as rank from public.contact_addresses as a where a.contact_id = v_row.contact_id
                      union all
                      select i.kind, i.value, true, 2 from public.contact_identities as i where i.contact_id = v_row.contact_id) as n
                order by n.kind, n.rank, n.parsed desc, n.address
            ) as k;
        end if;
        v_names := array[v_row.prospect_id, 'telegram:' || v_row.prospect_id];
        select jsonb_agg(to_jsonb(s) order by s.at) into v_said
        from (
            select a.created_at as at, a.direction, a.type, left(a.raw_data ->> 'content', 2000) as text, a.raw_data ->> 'subject' as subject,
                   a.provider_id, p.provider_code, a.sender_kind, a.sender_address, a.metadata ->> 'rfc_message_id' as rfc_message_id, a.metadata ->> 'to' as received_at
            from public.activities as a
            left join public.ingestion_providers as p on p.id = a.provider_id
            where a.type in ('email', 'call', 'sms', 'whatsapp', 'other')
              and (a.contact_id = v_row.contact_id
                   or v_row.contact_id is null and a.contact_id is null and a.sender_kind in ('email', 'phone', 'other') and a.sender_address = any (v_names))
            order by a.created_at desc limit 20
        ) as s;
        select h.value into v_heard from jsonb_array_elements(v_said) with ordinality as h (value, n)
        where h.value ->> 'direction' = 'inbound' order by h.n desc limit 1;
    end if;
    return jsonb_build_object(
        'outcome', 'ready',
        'wait_seconds', greatest(extract(epoch from v_row.scheduled_for - clock_timestamp()), 0),
        'action', jsonb_build_object(
            'id', v_row.id, 'prospect_id', v_row.prospect_id, 'action_type', v_row.action_type, 'scheduled_for', v_row.scheduled_for,
            'payload', v_row.payload, 'message', v_row.message, 'attempts', v_row.attempts),
        'contact', v_contact, 'reached_by', v_reached, 'last_heard', v_heard, 'conversation', coalesce(v_said, '[]'));
end
$$;

COMMENT ON FUNCTION gleaner.prepare_followup(p_request jsonb) IS 'What is needed to compose and send an action that the caller holds.';

CREATE FUNCTION gleaner.prepare_run() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    v_version record;
    v_label   text := new.config ->> 'label';
begin
    new.submitted_by := auth.uid();
    new.begun_lease := null;
    if new.recording_version_id is null and new.recording_id is null then
        return new;
    end if;
    select v.id, v.recording_id, v.site into v_version
    from public.recording_versions as v
    where case when new.recording_version_id is not null then v.id = new.recording_version_id
          else v.recording_id = case when new.recording_id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then new.recording_id::uuid end end
    order by v.version desc limit 1;
    if not found then
        return new;
    elsif new.recording_id is not null and new.recording_id is distinct from v_version.recording_id::text then
        raise exception 'version % is not of recording %', new.recording_version_id, new.recording_id using errcode = 'GL002', hint = 'Leave one of them out.';
    elsif v_label !~ '^[a-z0-9][a-z0-9_.-]{0,39}$' then
        raise exception 'the label % is none', quote_literal(v_label) using errcode = 'GL002', hint = 'A label has up to 40 lower-case letters, digits, dots, dashes.';
    elsif octet_length(new.csv_data) > 10000000 then
        raise exception 'the data of a run has at most 10 MB' using errcode = 'GL002', hint = 'Queue it as several runs.';
    end if;
    new.recording_id := v_version.recording_id;
    new.recording_version_id := v_version.id;
    new.site := v_version.site;
    new.kind := 'browser' || coalesce(':' || v_label, '');
    return new;
end
$_$;

COMMENT ON FUNCTION gleaner.prepare_run() IS 'Gives a run of a recording its version, kind and site.';

CREATE FUNCTION gleaner.prepare_schedule(p_request jsonb) RETURNS jsonb
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select coalesce((
        select jsonb_build_object(
            'outcome', 'ready', 'now', clock_timestamp(), 'cron', s.cron, 'time_zone', s.time_zone, 'missed', s.missed,
            'missed_limit', s.missed_limit, 'tolerance_seconds', extract(epoch from s.tolerance), 'seen_until', s.seen_until,
            'ends_at', s.ends_at)
        from public.followup_schedules as s
        where s.id = (p_request ->> 'id')::uuid and s.lease = (p_request ->> 'lease')::bigint and s.status = 'working'
    ), '{"outcome": "lost"}')
$$;

COMMENT ON FUNCTION gleaner.prepare_schedule(p_request jsonb) IS 'What is needed to compute the occurrences of a schedule that the caller holds.';

CREATE FUNCTION gleaner.progress_activities(p_id uuid, p_lease bigint, p_stage text DEFAULT NULL::text, p_percent numeric DEFAULT NULL::numeric, p_partial jsonb DEFAULT NULL::jsonb, p_hold interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text, due_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_it      record; v_row public.activities; v_hold interval; v_due timestamptz; v_result jsonb;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    v_it := gleaner.lock_activities(p_id, p_lease);
    if v_it.outcome <> 'done' then
        return query select p_id, case v_it.outcome when 'already' then 'lost' else v_it.outcome end, v_it.status, null::timestamptz;
        return;
    end if;
    v_row := v_it.held; v_hold := coalesce(p_hold, interval '5 minutes');
    -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
    v_due := case when v_row.due_at - v_now < v_hold / 2 then greatest(v_row.due_at, least(v_now + v_hold, v_row.deadline_at))
                  else v_row.due_at end;
    v_result := case when p_partial is null then v_row.processed_data
                     when jsonb_typeof(v_row.processed_data) = 'object' and jsonb_typeof(p_partial) = 'object' then v_row.processed_data || p_partial
                     else p_partial end;
    -- What is written already is not written again: people's triggers and subscribers would all hear of it.
    if v_due is distinct from v_row.due_at or v_row.started < v_started
       or (p_stage is not null and p_stage is distinct from v_row.progress ->> 'stage'
        or p_percent is not null and to_jsonb(p_percent) is distinct from v_row.progress -> 'percent')
       or v_result is distinct from v_row.processed_data then
        update public.activities as q
        set started = greatest(q.started, v_started), due_at = v_due,
            open_at = case when q.open_at is null then null else greatest(q.open_at, v_due) end,
            -- Programs that watch the lock's age by themselves must see that its holder lives.
            locked_at = case when v_due is distinct from q.due_at then v_now else q.locked_at end,
            progress = coalesce(q.progress, '{}') || jsonb_strip_nulls(jsonb_build_object('stage', p_stage, 'percent', p_percent, 'at', v_now)),
            processed_data = v_result
        where q.id = v_row.id;
    end if;
    return query select p_id, 'done', ('processing')::text, v_due;
end
$$;

ALTER FUNCTION gleaner.progress_activities(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.progress_activities(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) IS 'Shows life: stage, percent and partial results, for people to see and for the next agent to resume from. Extends the lease by p_hold or
the declared hold, up to the deadline that the claim set, when less than half of it is left: each extension writes every index.';

CREATE FUNCTION gleaner.progress_dumps(p_id uuid, p_lease bigint, p_stage text DEFAULT NULL::text, p_percent numeric DEFAULT NULL::numeric, p_partial jsonb DEFAULT NULL::jsonb, p_hold interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text, due_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_it      record; v_row public.agent_processing_queue; v_hold interval; v_due timestamptz; v_result jsonb;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    v_it := gleaner.lock_dumps(p_id, p_lease);
    if v_it.outcome <> 'done' then
        return query select p_id, case v_it.outcome when 'already' then 'lost' else v_it.outcome end, v_it.status, null::timestamptz;
        return;
    end if;
    v_row := v_it.held; v_hold := coalesce(p_hold, interval '5 minutes');
    -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
    v_due := case when v_row.due_at - v_now < v_hold / 2 then greatest(v_row.due_at, least(v_now + v_hold, v_row.deadline_at))
                  else v_row.due_at end;
    v_result := case when p_partial is null then v_row.result
                     when jsonb_typeof(v_row.result) = 'object' and jsonb_typeof(p_partial) = 'object' then v_row.result || p_partial
                     else p_partial end;
    -- What is written already is not written again: people's triggers and subscribers would all hear of it.
    if v_due is distinct from v_row.due_at or v_row.started < v_started or v_row.processing_state <> 'processing'::public.processing_state
       or (p_stage is not null and p_stage is distinct from v_row.progress ->> 'stage'
        or p_percent is not null and to_jsonb(p_percent) is distinct from v_row.progress -> 'percent')
       or v_result is distinct from v_row.result then
        update public.agent_processing_queue as q
        set started = greatest(q.started, v_started), due_at = v_due,
            processing_state = 'processing'::public.processing_state,
            progress = coalesce(q.progress, '{}') || jsonb_strip_nulls(jsonb_build_object('stage', p_stage, 'percent', p_percent, 'at', v_now)),
            result = v_result
        where q.id = v_row.id;
    end if;
    return query select p_id, 'done', ('processing'::public.processing_state)::text, v_due;
end
$$;

ALTER FUNCTION gleaner.progress_dumps(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.progress_dumps(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) IS 'Shows life: stage, percent and partial results, for people to see and for the next agent to resume from. Extends the lease by p_hold or
the declared hold, up to the deadline that the claim set, when less than half of it is left: each extension writes every index.';

CREATE FUNCTION gleaner.progress_followups(p_id uuid, p_lease bigint, p_stage text DEFAULT NULL::text, p_percent numeric DEFAULT NULL::numeric, p_partial jsonb DEFAULT NULL::jsonb, p_hold interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text, due_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_it      record; v_row public.scheduled_actions; v_hold interval; v_due timestamptz; v_result jsonb;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    v_it := gleaner.lock_followups(p_id, p_lease);
    if v_it.outcome <> 'done' then
        return query select p_id, case v_it.outcome when 'already' then 'lost' else v_it.outcome end, v_it.status, null::timestamptz;
        return;
    end if;
    v_row := v_it.held; v_hold := coalesce(p_hold, interval '5 minutes');
    -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
    v_due := case when v_row.due_at - v_now < v_hold / 2 then greatest(v_row.due_at, least(v_now + v_hold, v_row.deadline_at))
                  else v_row.due_at end;
    v_result := case when p_partial is null then v_row.result
                     when jsonb_typeof(v_row.result) = 'object' and jsonb_typeof(p_partial) = 'object' then v_row.result || p_partial
                     else p_partial end;
    -- What is written already is not written again: people's triggers and subscribers would all hear of it.
    if v_due is distinct from v_row.due_at or v_row.started < v_started
       or v_result is distinct from v_row.result then
        update public.scheduled_actions as q
        set started = greatest(q.started, v_started), due_at = v_due,
            result = v_result
        where q.id = v_row.id;
    end if;
    return query select p_id, 'done', ('processing')::text, v_due;
end
$$;

ALTER FUNCTION gleaner.progress_followups(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.progress_followups(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) IS 'Shows life: stage, percent and partial results, for people to see and for the next agent to resume from. Extends the lease by p_hold or
the declared hold, up to the deadline that the claim set, when less than half of it is left: each extension writes every index.';

CREATE FUNCTION gleaner.progress_jobs(p_id bigint, p_lease bigint, p_stage text DEFAULT NULL::text, p_percent numeric DEFAULT NULL::numeric, p_partial jsonb DEFAULT NULL::jsonb, p_hold interval DEFAULT NULL::interval) RETURNS TABLE(id bigint, outcome text, status text, due_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_it      record; v_row gleaner.jobs; v_hold interval; v_due timestamptz; v_result jsonb;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    if p_lease < 0 then
        perform gleaner.unbatch_jobs(array[p_id], array[-p_lease]);
    end if;
    v_it := gleaner.lock_jobs(p_id, p_lease);
    if v_it.outcome <> 'done' then
        return query select p_id, case v_it.outcome when 'already' then 'lost' else v_it.outcome end, v_it.status, null::timestamptz;
        return;
    end if;
    v_row := v_it.held; v_hold := coalesce(p_hold, interval '5 minutes');
    -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
    v_due := case when v_row.due_at - v_now < v_hold / 2 then greatest(v_row.due_at, least(v_now + v_hold, v_row.deadline_at))
                  else v_row.due_at end;
    v_result := case when p_partial is null then v_row.result
                     when jsonb_typeof(v_row.result) = 'object' and jsonb_typeof(p_partial) = 'object' then v_row.result || p_partial
                     else p_partial end;
    -- What is written already is not written again: people's triggers and subscribers would all hear of it.
    if v_due is distinct from v_row.due_at or v_row.started < v_started
       or (p_stage is not null and p_stage is distinct from v_row.progress ->> 'stage'
        or p_percent is not null and to_jsonb(p_percent) is distinct from v_row.progress -> 'percent')
       or v_result is distinct from v_row.result then
        update gleaner.jobs as q
        set started = greatest(q.started, v_started), due_at = v_due,
            progress = coalesce(q.progress, '{}') || jsonb_strip_nulls(jsonb_build_object('stage', p_stage, 'percent', p_percent, 'at', v_now)),
            result = v_result
        where q.id = v_row.id;
    end if;
    return query select p_id, 'done', ('running')::text, v_due;
end
$$;

ALTER FUNCTION gleaner.progress_jobs(p_id bigint, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.progress_jobs(p_id bigint, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) IS 'Shows life: stage, percent and partial results, for people to see and for the next agent to resume from. Extends the lease by p_hold or
the declared hold, up to the deadline that the claim set, when less than half of it is left: each extension writes every index.';

CREATE FUNCTION gleaner.progress_polls(p_id uuid, p_lease bigint, p_stage text DEFAULT NULL::text, p_percent numeric DEFAULT NULL::numeric, p_partial jsonb DEFAULT NULL::jsonb, p_hold interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text, due_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_it      record; v_row gleaner.polls; v_hold interval; v_due timestamptz;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    v_it := gleaner.lock_polls(p_id, p_lease);
    if v_it.outcome <> 'done' then
        return query select p_id, case v_it.outcome when 'already' then 'lost' else v_it.outcome end, v_it.status, null::timestamptz;
        return;
    end if;
    v_row := v_it.held; v_hold := coalesce(p_hold, interval '2 minutes');
    -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
    v_due := case when v_row.due_at - v_now < v_hold / 2 then greatest(v_row.due_at, least(v_now + v_hold, v_row.deadline_at))
                  else v_row.due_at end;
    -- What is written already is not written again: people's triggers and subscribers would all hear of it.
    if v_due is distinct from v_row.due_at or v_row.started < v_started then
        update gleaner.polls as q
        set started = greatest(q.started, v_started), due_at = v_due
        where q.provider_id = v_row.provider_id;
    end if;
    return query select p_id, 'done', ('running')::text, v_due;
end
$$;

ALTER FUNCTION gleaner.progress_polls(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.progress_polls(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) IS 'Shows life: stage, percent and partial results, for people to see and for the next agent to resume from. Extends the lease by p_hold or
the declared hold, up to the deadline that the claim set, when less than half of it is left: each extension writes every index.';

CREATE FUNCTION gleaner.progress_runs(p_id uuid, p_lease bigint, p_stage text DEFAULT NULL::text, p_percent numeric DEFAULT NULL::numeric, p_partial jsonb DEFAULT NULL::jsonb, p_hold interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text, due_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_it      record; v_row public.execution_jobs; v_hold interval; v_due timestamptz; v_result jsonb;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    v_it := gleaner.lock_runs(p_id, p_lease);
    if v_it.outcome <> 'done' then
        return query select p_id, case v_it.outcome when 'already' then 'lost' else v_it.outcome end, v_it.status, null::timestamptz;
        return;
    end if;
    v_row := v_it.held; v_hold := coalesce(p_hold, interval '30 minutes');
    -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
    v_due := case when v_row.due_at - v_now < v_hold / 2 then greatest(v_row.due_at, least(v_now + v_hold, v_row.deadline_at))
                  else v_row.due_at end;
    v_result := case when p_partial is null then v_row.result
                     when jsonb_typeof(v_row.result) = 'object' and jsonb_typeof(p_partial) = 'object' then v_row.result || p_partial
                     else p_partial end;
    -- What is written already is not written again: people's triggers and subscribers would all hear of it.
    if v_due is distinct from v_row.due_at or v_row.started < v_started
       or (p_stage is not null and p_stage is distinct from v_row.progress ->> 'stage'
        or p_percent is not null and to_jsonb(p_percent) is distinct from v_row.progress -> 'percent')
       or v_result is distinct from v_row.result then
        update public.execution_jobs as q
        set started = greatest(q.started, v_started), due_at = v_due,
            progress = coalesce(q.progress, '{}') || jsonb_strip_nulls(jsonb_build_object('stage', p_stage, 'percent', p_percent, 'at', v_now)),
            result = v_result
        where q.id = v_row.id;
    end if;
    return query select p_id, 'done', ('running')::text, v_due;
end
$$;

ALTER FUNCTION gleaner.progress_runs(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.progress_runs(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) IS 'Shows life: stage, percent and partial results, for people to see and for the next agent to resume from. Extends the lease by p_hold or
the declared hold, up to the deadline that the claim set, when less than half of it is left: each extension writes every index.';

CREATE FUNCTION gleaner.progress_schedules(p_id uuid, p_lease bigint, p_stage text DEFAULT NULL::text, p_percent numeric DEFAULT NULL::numeric, p_partial jsonb DEFAULT NULL::jsonb, p_hold interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text, due_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now     timestamptz := clock_timestamp();
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_it      record; v_row public.followup_schedules; v_hold interval; v_due timestamptz;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    v_it := gleaner.lock_schedules(p_id, p_lease);
    if v_it.outcome <> 'done' then
        return query select p_id, case v_it.outcome when 'already' then 'lost' else v_it.outcome end, v_it.status, null::timestamptz;
        return;
    end if;
    v_row := v_it.held; v_hold := coalesce(p_hold, interval '1 minute');
    -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
    v_due := case when v_row.due_at - v_now < v_hold / 2 then greatest(v_row.due_at, least(v_now + v_hold, v_row.deadline_at))
                  else v_row.due_at end;
    -- What is written already is not written again: people's triggers and subscribers would all hear of it.
    if v_due is distinct from v_row.due_at or v_row.started < v_started then
        update public.followup_schedules as q
        set started = greatest(q.started, v_started), due_at = v_due
        where q.id = v_row.id;
    end if;
    return query select p_id, 'done', ('working')::text, v_due;
end
$$;

ALTER FUNCTION gleaner.progress_schedules(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.progress_schedules(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) IS 'Shows life: stage, percent and partial results, for people to see and for the next agent to resume from. Extends the lease by p_hold or
the declared hold, up to the deadline that the claim set, when less than half of it is left: each extension writes every index.';

CREATE FUNCTION gleaner.prune_changes(p_before xid8, p_limit integer DEFAULT 5000) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION gleaner.prune_changes(p_before xid8, p_limit integer) IS 'Removes noted changes of transactions before this one, a bounded step at a time.';

CREATE FUNCTION gleaner.prune_dumps(p_limit integer DEFAULT 1000, p_older_than interval DEFAULT NULL::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    -- Read once: a clock that may move from row to row is nothing an index can be asked about.
    v_now        timestamptz := clock_timestamp();
    v_older_than interval := coalesce(p_older_than, null);
    v_before     timestamp with time zone := v_now - v_older_than;
    v_count      integer;
begin
    perform gleaner.operates('dumps', array['service_role'], '{}');
    perform gleaner.prune_notes('dumps', v_now);
    if v_older_than is null then
        return 0;
    end if;
    with old as (
        select q.id
        from public.agent_processing_queue as q
        where q.completed_at < v_before
          and (q.processing_state in ('completed'::public.processing_state, 'cancelled'::public.processing_state) or q.processing_state = 'failed'::public.processing_state and q.due_at is null)
        limit p_limit
        for update skip locked
    )
    delete from public.agent_processing_queue as q using old where q.id = old.id;
    get diagnostics v_count = row_count;
    perform gleaner.note_prune('dumps', v_count, v_older_than);
    return v_count;
end
$$;

ALTER FUNCTION gleaner.prune_dumps(p_limit integer, p_older_than interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.prune_dumps(p_limit integer, p_older_than interval) IS 'Deletes finished rows older than p_older_than; nothing without it, for no retention is declared and the row is the record.
At most p_limit rows per call, so that no call holds locks for long: repeat until it answers fewer.';

CREATE FUNCTION gleaner.prune_followups(p_limit integer DEFAULT 1000, p_older_than interval DEFAULT NULL::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    -- Read once: a clock that may move from row to row is nothing an index can be asked about.
    v_now        timestamptz := clock_timestamp();
    v_older_than interval := coalesce(p_older_than, null);
    v_before     timestamp with time zone := v_now - v_older_than;
    v_count      integer;
begin
    perform gleaner.operates('followups', array['service_role'], '{}');
    perform gleaner.prune_notes('followups', v_now);
    if v_older_than is null then
        return 0;
    end if;
    with old as (
        select q.id
        from public.scheduled_actions as q
        where q.finished_at < v_before
          and (q.status in ('executed', 'cancelled') or q.status = 'failed' and q.due_at is null)
        limit p_limit
        for update skip locked
    )
    delete from public.scheduled_actions as q using old where q.id = old.id;
    get diagnostics v_count = row_count;
    perform gleaner.note_prune('followups', v_count, v_older_than);
    return v_count;
end
$$;

ALTER FUNCTION gleaner.prune_followups(p_limit integer, p_older_than interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.prune_followups(p_limit integer, p_older_than interval) IS 'Deletes finished rows older than p_older_than; nothing without it, for no retention is declared and the row is the record.
At most p_limit rows per call, so that no call holds locks for long: repeat until it answers fewer.';

CREATE FUNCTION gleaner.prune_ingestion(p_raw_age interval DEFAULT '7 days'::interval, p_raw_rows bigint DEFAULT 200000, p_refusal_age interval DEFAULT '30 days'::interval, p_limit integer DEFAULT 1000) RETURNS TABLE(what text, removed bigint, files text[])
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION gleaner.prune_ingestion(p_raw_age interval, p_raw_rows bigint, p_refusal_age interval, p_limit integer) IS 'Removes old raw requests, expired memories and old counts of refusals, a bounded step at a time.';

CREATE FUNCTION gleaner.prune_jobs(p_limit integer DEFAULT 1000, p_older_than interval DEFAULT NULL::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET enable_sort TO 'off'
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    -- Read once: a clock that may move from row to row is nothing an index can be asked about.
    v_now        timestamptz := clock_timestamp();
    v_older_than interval := coalesce(p_older_than, interval '7 days');
    v_before     timestamptz := v_now - v_older_than;
    v_until      timestamptz := statement_timestamp() + nullif(current_setting('statement_timeout')::interval, '0') / 2;
    v_count      integer := 0;
    v_begins     bigint;
    v_mark    gleaner.prune_mark;
    v_upto       bigint;
    v_from       bigint;
    v_size       integer;
    v_slice      record;
    -- Why the walk ends here: with the limit or the time, or with rows that are all too young.
    v_enough     boolean;
    v_too_young  boolean;
    -- What becomes one note: slices read one after the other, how many rows stayed of them, and the earliest end of those.
    v_part       bigint;
    v_stayed     integer;
    v_ended      timestamptz;
begin
    perform gleaner.operates('jobs', array['service_role'], '{}');
    perform gleaner.prune_notes('jobs', v_now);
    if v_older_than is null then
        return 0;
    end if;
    -- Asked first, for an insert would wait for a call that is about to write the same note.
    if not exists (select from gleaner.prune_mark as s where s.queue = 'jobs' and s.begins = -9223372036854775808) then
        insert into gleaner.prune_mark (queue, begins, oldest, unread_since) values ('jobs', -9223372036854775808, '-infinity', v_now)
        on conflict do nothing;
    end if;
    <<walk>>
    for v_begins in
        select s.begins from gleaner.prune_mark as s where s.queue = 'jobs' and s.oldest < v_before order by s.oldest
    loop
        exit when v_count >= p_limit;
        select s.* into v_mark
        from gleaner.prune_mark as s
        where s.queue = 'jobs' and s.begins = v_begins and s.oldest < v_before
        for update skip locked;
        continue when not found;
        delete from gleaner.prune_mark as s where s.queue = 'jobs' and s.begins = v_begins;
        v_upto := coalesce((select min(s.begins) - 1 from gleaner.prune_mark as s where s.queue = 'jobs' and s.begins > v_begins), 9223372036854775807);
        v_from := v_begins;
        v_part := v_begins;
        v_stayed := 0;
        v_ended := v_now;
        -- As many rows as may go: more would be read for nothing where all are old.
        v_size := greatest(least(p_limit - v_count, 10000), 100);
        loop
            v_slice := gleaner.prune_slice_jobs(v_from, v_upto, v_size, p_limit - v_count, v_before);
            v_count := v_count + v_slice.gone;
            v_stayed := v_stayed + v_slice.stayed;
            v_ended := least(v_ended, v_slice.ended);
            v_enough := v_count >= p_limit or coalesce(clock_timestamp() > v_until, false);
            v_too_young := coalesce(v_slice.created >= v_before and v_now < v_mark.unread_since + 2 * v_older_than, false);
            -- A part of which nothing stayed needs no note of its own: what may yet come there belongs to the part before.
            if v_slice.whole or v_enough or v_too_young or v_stayed >= 10000 then
                if v_slice.next > v_part and (v_stayed > 0 or v_part = -9223372036854775808) then
                    insert into gleaner.prune_mark (queue, begins, oldest, unread_since) values ('jobs', v_part, v_ended, null);
                end if;
                v_part := v_slice.next;
                v_stayed := 0;
                v_ended := v_now;
            end if;
            if v_slice.whole then
                if v_upto = 9223372036854775807 then
                    insert into gleaner.prune_mark (queue, begins, oldest, unread_since) values ('jobs', v_slice.next, v_now, v_now);
                end if;
                exit;
            elsif v_enough then
                insert into gleaner.prune_mark (queue, begins, oldest, unread_since) values ('jobs', v_slice.next, v_mark.oldest, v_mark.unread_since);
                exit walk;
            elsif v_too_young then
                -- Due by then, however young those are who come before.
                insert into gleaner.prune_mark (queue, begins, oldest, unread_since) values ('jobs', v_slice.next, least(v_slice.created, v_mark.unread_since + v_older_than), v_mark.unread_since);
                exit;
            end if;
            v_from := v_slice.next;
            v_size := case when v_slice.old > 0 then greatest(least(p_limit - v_count, 10000), 100) else least(2 * v_size, 10000) end;
        end loop;
    end loop;
    perform gleaner.note_prune('jobs', v_count, v_older_than);
    return v_count;
end
$$;

ALTER FUNCTION gleaner.prune_jobs(p_limit integer, p_older_than interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.prune_jobs(p_limit integer, p_older_than interval) IS 'Deletes finished rows older than the declared retention, or than p_older_than.
At most p_limit rows per call, so that no call holds locks for long: repeat until it answers fewer.

Walks    the keys, slice by slice. An index on the end of the work would cost every completion more than this costs in all.
         Of what it has read it notes the earliest end that stayed (gleaner.prune_mark), and does not look there again before
         that is too old: neither at rows that wait for ever, nor at the dead entries of rows that are gone.
Infers   that keys ascend with time: behind a slice of rows that are all too young it does not read, and looks at the rest
         once they have come of age. After twice the retention it reads to the end all the same: a row whose key is out of
         order, or whose end was written in the past, goes late and is not forgotten.
Mends    rows whose bulk range is lost, where it comes by.
Races    skip locked, rows and marks: two calls share the work, and what one is at is that one''s to end.
Ends     with a short answer before its time when half of the caller''s statement_timeout is over; the next call goes on there.';

CREATE FUNCTION gleaner.prune_notes(p_queue text, p_now timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    delete from gleaner.request as r where r.at < p_now - interval '1 day';
    delete from gleaner.late_result as l where l.queue = p_queue and l.at < p_now - interval '7 days';
    delete from gleaner.rejected_row as r where r.queue = p_queue and r.until < p_now - interval '1 day';
end
$$;

COMMENT ON FUNCTION gleaner.prune_notes(p_queue text, p_now timestamp with time zone) IS 'Forgets the engine''s own notes about a queue once they are old.';

CREATE FUNCTION gleaner.prune_runs(p_limit integer DEFAULT 1000, p_older_than interval DEFAULT NULL::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    -- Read once: a clock that may move from row to row is nothing an index can be asked about.
    v_now        timestamptz := clock_timestamp();
    v_older_than interval := coalesce(p_older_than, null);
    v_before     timestamp with time zone := v_now - v_older_than;
    v_count      integer;
begin
    perform gleaner.operates('runs', array['service_role'], '{}');
    perform gleaner.prune_notes('runs', v_now);
    if v_older_than is null then
        return 0;
    end if;
    with old as (
        select q.id
        from public.execution_jobs as q
        where q.completed_at < v_before
          and (q.status in ('completed', 'cancelled') or q.status = 'failed' and q.due_at is null)
        limit p_limit
        for update skip locked
    )
    delete from public.execution_jobs as q using old where q.id = old.id;
    get diagnostics v_count = row_count;
    perform gleaner.note_prune('runs', v_count, v_older_than);
    return v_count;
end
$$;

ALTER FUNCTION gleaner.prune_runs(p_limit integer, p_older_than interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.prune_runs(p_limit integer, p_older_than interval) IS 'Deletes finished rows older than p_older_than; nothing without it, for no retention is declared and the row is the record.
At most p_limit rows per call, so that no call holds locks for long: repeat until it answers fewer.';

CREATE FUNCTION gleaner.prune_schedules(p_limit integer DEFAULT 1000, p_older_than interval DEFAULT NULL::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    -- Read once: a clock that may move from row to row is nothing an index can be asked about.
    v_now        timestamptz := clock_timestamp();
    v_older_than interval := coalesce(p_older_than, null);
    v_before     timestamp with time zone := v_now - v_older_than;
    v_count      integer;
begin
    perform gleaner.operates('schedules', array['service_role'], '{}');
    perform gleaner.prune_notes('schedules', v_now);
    if v_older_than is null then
        return 0;
    end if;
    with old as (
        select q.id
        from public.followup_schedules as q
        where q.finished_at < v_before
          and (q.status in ('ended', 'paused') or q.status = 'failed' and q.due_at is null)
        limit p_limit
        for update skip locked
    )
    delete from public.followup_schedules as q using old where q.id = old.id;
    get diagnostics v_count = row_count;
    perform gleaner.note_prune('schedules', v_count, v_older_than);
    return v_count;
end
$$;

ALTER FUNCTION gleaner.prune_schedules(p_limit integer, p_older_than interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.prune_schedules(p_limit integer, p_older_than interval) IS 'Deletes finished rows older than p_older_than; nothing without it, for no retention is declared and the row is the record.
At most p_limit rows per call, so that no call holds locks for long: repeat until it answers fewer.';

CREATE FUNCTION gleaner.prune_slice_jobs(p_from bigint, p_upto bigint, p_size integer, p_most integer, p_before timestamp with time zone, OUT old integer, OUT gone integer, OUT stayed integer, OUT ended timestamp with time zone, OUT created timestamp with time zone, OUT next bigint, OUT whole boolean) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    v_read    integer;
    v_last    bigint;
    v_young   timestamptz;
    v_oldest  timestamptz;
    v_old     bigint[];
    v_in_range bigint[];
begin
    select count(*), max(s.id), min(s.ended) filter (where s.ended >= p_before), min(s.ended), min(s.created),
           coalesce(array_agg(s.id) filter (where s.ended < p_before), '{}'), array_agg(s.id) filter (where s.in_range)
    into v_read, v_last, v_young, v_oldest, created, v_old, v_in_range
    from (select q.id as id,
                 case when (q.status in ('done', 'cancelled') or q.status = 'failed' and q.due_at is null) then q.finished_at end as ended,
                 q.lease = -1 and q.status = 'ready' as in_range,
                 q.created_at as created
          from gleaner.jobs as q
          where q.id between p_from and p_upto
          order by q.id
          limit p_size) as s;
    whole := v_read < p_size or v_last = p_upto;
    next := case when whole and p_upto < 9223372036854775807 then p_upto + 1 else coalesce(v_last + (v_last < 9223372036854775807)::integer, p_from) end;
    stayed := v_read - cardinality(v_old);
    if cardinality(v_old) > p_most then
        whole := false;
        next := v_old[p_most + 1];
        v_old := v_old[:p_most];
    end if;
    if v_in_range is not null then
        update gleaner.jobs as q set lease = 0
        where q.id = any (array(
            select q.id
            from gleaner.jobs as q
            where q.id = any (v_in_range) and q.lease = -1 and q.status = 'ready'
              and not q.id <@ ((select gleaner.range_keys('jobs')) + (select gleaner.batch_keys('jobs')))
            for no key update skip locked));
    end if;
    old := cardinality(v_old);
    gone := 0;
    if old > 0 then
        delete from gleaner.jobs as q
        where q.id = any (array(
            select q.id
            from gleaner.jobs as q
            where q.id = any (v_old) and (q.status in ('done', 'cancelled') or q.status = 'failed' and q.due_at is null) and q.finished_at < p_before
            for update skip locked));
        get diagnostics gone = row_count;
    end if;
    -- A row that is locked stays for the next call.
    stayed := stayed + old - gone;
    ended := case when gone < old then v_oldest else v_young end;
end
$$;

ALTER FUNCTION gleaner.prune_slice_jobs(p_from bigint, p_upto bigint, p_size integer, p_most integer, p_before timestamp with time zone, OUT old integer, OUT gone integer, OUT stayed integer, OUT ended timestamp with time zone, OUT created timestamp with time zone, OUT next bigint, OUT whole boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.put_back_activities(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_item record; v_it record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_time('snooze', p_due);
    perform gleaner.check_leases(p_ids, p_leases);
    for v_item in select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id loop
        v_it := gleaner.lock_activities(v_item.id, v_item.lease);
        id := v_item.id; outcome := v_it.outcome; status := v_it.status;
        if outcome = 'done' then
            status := gleaner.settle_activities(v_it.held, 'raw', p_due, true, (v_it.held).attempts, (v_it.held).lost);
        end if;
        return next;
    end loop;
end
$$;

ALTER FUNCTION gleaner.put_back_activities(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.put_back_dumps(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_item record; v_it record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_time('snooze', p_due);
    perform gleaner.check_leases(p_ids, p_leases);
    for v_item in select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id loop
        v_it := gleaner.lock_dumps(v_item.id, v_item.lease);
        id := v_item.id; outcome := v_it.outcome; status := v_it.status;
        if outcome = 'done' then
            status := gleaner.settle_dumps(v_it.held, 'pending'::public.processing_state, p_due, true, (v_it.held).attempts, (v_it.held).lost);
        end if;
        return next;
    end loop;
end
$$;

ALTER FUNCTION gleaner.put_back_dumps(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.put_back_followups(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_item record; v_it record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_time('snooze', p_due);
    perform gleaner.check_leases(p_ids, p_leases);
    for v_item in select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id loop
        v_it := gleaner.lock_followups(v_item.id, v_item.lease);
        id := v_item.id; outcome := v_it.outcome; status := v_it.status;
        if outcome = 'done' then
            status := gleaner.settle_followups(v_it.held, 'pending', p_due, true, (v_it.held).attempts, (v_it.held).lost);
        end if;
        return next;
    end loop;
end
$$;

ALTER FUNCTION gleaner.put_back_followups(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.put_back_jobs(p_ids bigint[], p_leases bigint[], p_due timestamp with time zone) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_item record; v_it record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_time('snooze', p_due);
    perform gleaner.check_leases(p_ids, p_leases);
    perform gleaner.unbatch_jobs(p_ids, array(select distinct -l from unnest(p_leases) as l where l < 0));
    for v_item in select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id loop
        v_it := gleaner.lock_jobs(v_item.id, v_item.lease);
        id := v_item.id; outcome := v_it.outcome; status := v_it.status;
        if outcome = 'done' then
            status := gleaner.settle_jobs(v_it.held, 'ready', p_due, true, (v_it.held).attempts, (v_it.held).lost);
        end if;
        return next;
    end loop;
end
$$;

ALTER FUNCTION gleaner.put_back_jobs(p_ids bigint[], p_leases bigint[], p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.put_back_polls(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_item record; v_it record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_time('snooze', p_due);
    perform gleaner.check_leases(p_ids, p_leases);
    for v_item in select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id loop
        v_it := gleaner.lock_polls(v_item.id, v_item.lease);
        id := v_item.id; outcome := v_it.outcome; status := v_it.status;
        if outcome = 'done' then
            status := gleaner.settle_polls(v_it.held, 'ready', p_due, true, (v_it.held).attempts, (v_it.held).lost);
        end if;
        return next;
    end loop;
end
$$;

ALTER FUNCTION gleaner.put_back_polls(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.put_back_runs(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_item record; v_it record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_time('snooze', p_due);
    perform gleaner.check_leases(p_ids, p_leases);
    for v_item in select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id loop
        v_it := gleaner.lock_runs(v_item.id, v_item.lease);
        id := v_item.id; outcome := v_it.outcome; status := v_it.status;
        if outcome = 'done' then
            status := gleaner.settle_runs(v_it.held, 'queued', p_due, true, (v_it.held).attempts, (v_it.held).lost);
        end if;
        return next;
    end loop;
end
$$;

ALTER FUNCTION gleaner.put_back_runs(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.put_back_schedules(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_item record; v_it record;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_time('snooze', p_due);
    perform gleaner.check_leases(p_ids, p_leases);
    for v_item in select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id loop
        v_it := gleaner.lock_schedules(v_item.id, v_item.lease);
        id := v_item.id; outcome := v_it.outcome; status := v_it.status;
        if outcome = 'done' then
            status := gleaner.settle_schedules(v_it.held, 'active', p_due, true, (v_it.held).attempts, (v_it.held).lost);
        end if;
        return next;
    end loop;
end
$$;

ALTER FUNCTION gleaner.put_back_schedules(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.raise_if_momentary(p_state text, p_message text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if p_state ~ '^(40|53|57|58|XX|55P03)' then
        raise exception '%', p_message using errcode = p_state;
    end if;
end
$$;

COMMENT ON FUNCTION gleaner.raise_if_momentary(p_state text, p_message text) IS 'Raises trouble of the moment again, for the caller to retry.';

CREATE FUNCTION gleaner.range_keys(p_queue text) RETURNS int8multirange
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return (select coalesce(range_agg(int8range(s.first, s.last, '[]')), '{}') from gleaner.bulk_range as s where s.queue = p_queue);
end
$$;

COMMENT ON FUNCTION gleaner.range_keys(p_queue text) IS 'Keys of the rows that lie in bulk ranges of a queue.';

CREATE FUNCTION gleaner.read_cursor(p_setting text, p_asked text, p_now timestamp with time zone) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
declare
    v_cursor jsonb := nullif(current_setting(p_setting, true), '')::jsonb;
begin
    if (v_cursor ->> 'until')::double precision <= extract(epoch from p_now) then
        -- Forgotten, so that claims of one row need not ask what it says.
        perform set_config(p_setting, '', false);
        return null;
    end if;
    return case when v_cursor ->> 'asked' = p_asked then v_cursor end;
end
$$;

COMMENT ON FUNCTION gleaner.read_cursor(p_setting text, p_asked text, p_now timestamp with time zone) IS 'Where the last large or slow look of this session ended; null: from the start.';

CREATE FUNCTION gleaner.reason_not_to_send(p_row public.scheduled_actions, p_to text) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_names text[] := array[p_row.prospect_id, 'telegram:' || p_row.prospect_id];
begin
    if exists (select from public.do_not_contact as d
               where d.address = any (v_names || p_to || ('telegram:' || p_to)) or d.contact_id = p_row.contact_id) then
        return 'the prospect is not to be written to';
    end if;
    if p_row.payload ->> 'keep_on_reply' is not distinct from 'true' or to_regclass('public.activities') is null then
        return null;
    end if;
    if exists (
        select from public.activities as a
        where a.contact_id = p_row.contact_id and a.created_at >= p_row.armed_at
          and a.direction = 'inbound' and a.type in ('email', 'call', 'sms', 'whatsapp', 'other')
          and a.metadata ->> 'automatic' is distinct from 'true')
       or p_row.contact_id is null and exists (
        select from public.activities as a
        where a.contact_id is null and a.sender_kind in ('email', 'phone', 'other') and a.sender_address = any (v_names)
          and a.created_at >= p_row.armed_at and a.direction = 'inbound' and a.metadata ->> 'automatic' is distinct from 'true')
    then
        return 'the prospect replied';
    end if;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.reason_not_to_send(p_row public.scheduled_actions, p_to text) IS 'Why an action is no longer wanted; null when it is.';

CREATE FUNCTION gleaner.reason_to_wait(p_row public.scheduled_actions, OUT until timestamp with time zone, OUT reason text) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now   timestamptz := clock_timestamp();
    v_rules public.contact_preferences;
    v_local timestamp;
    v_day   timestamptz;
    v_sent  bigint;
begin
    select p.* into v_rules from public.contact_preferences as p
    where p.contact_id is null or p.contact_id = p_row.contact_id order by p.contact_id nulls last limit 1;
    if p_row.approved_at is null and (v_rules.approval or p_row.payload ->> 'approval' = 'true') then
        -- Approving makes it due; until then no daemon looks at it again.
        until := v_now + interval '100 years';
        reason := 'waits for approval';
        return;
    end if;
    if v_rules is null then
        return;
    end if;
    v_local := v_now at time zone v_rules.time_zone;
    if v_rules.quiet_from <> v_rules.quiet_until and p_row.payload ->> 'ignore_quiet_hours' is distinct from 'true' then
        if v_rules.quiet_from < v_rules.quiet_until then
            if v_local::time >= v_rules.quiet_from and v_local::time < v_rules.quiet_until then
                until := (v_local::date + v_rules.quiet_until) at time zone v_rules.time_zone;
            end if;
        elsif v_local::time >= v_rules.quiet_from then
            until := (v_local::date + 1 + v_rules.quiet_until) at time zone v_rules.time_zone;
        elsif v_local::time < v_rules.quiet_until then
            until := (v_local::date + v_rules.quiet_until) at time zone v_rules.time_zone;
        end if;
        if until is not null then
            -- What waited for the morning does not all go out in its first second.
            until := greatest(until, v_now + interval '1 second') + random() * interval '2 minutes';
            reason := format('quiet hours until %s %s', to_char(until at time zone v_rules.time_zone, 'YYYY-MM-DD HH24:MI'), v_rules.time_zone);
            return;
        end if;
    end if;
    if v_rules.daily_limit is not null and p_row.payload ->> 'ignore_daily_limit' is distinct from 'true' then
        -- Two actions for one contact at the same moment: the second counts the first.
        perform pg_advisory_xact_lock(hashtextextended('gleaner daily limit ' || coalesce(p_row.contact_id::text, p_row.prospect_id), 0));
        v_day := date_trunc('day', v_local) at time zone v_rules.time_zone;
        select count(*) into v_sent from public.scheduled_actions as a
        where (a.contact_id = p_row.contact_id or p_row.contact_id is null and a.prospect_id = p_row.prospect_id)
          and a.id <> p_row.id and a.sending_at >= v_day
          and (a.status = 'executed' or a.status = 'processing' and a.sending_lease = a.lease);
        if v_sent >= v_rules.daily_limit then
            until := (v_local::date + 1)::timestamp at time zone v_rules.time_zone + random() * interval '2 minutes';
            reason := format('daily limit of %s reached', v_rules.daily_limit);
        end if;
    end if;
end
$$;

COMMENT ON FUNCTION gleaner.reason_to_wait(p_row public.scheduled_actions, OUT until timestamp with time zone, OUT reason text) IS 'Until when a due action must wait, and why.';

CREATE FUNCTION gleaner.record_nodes(p_nodes jsonb) RETURNS double precision
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION gleaner.record_nodes(p_nodes jsonb) IS 'Writes down which devices work, and which have been silent for two minutes.';

CREATE FUNCTION gleaner.record_outbound() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_channel uuid := (new.message ->> 'channel')::uuid;
begin
    if to_regclass('public.activities') is null then
        return null;
    end if;
    begin
        insert into public.activities (type, direction, contact_id, sales_id, processing_status, raw_data, metadata, provider_id, external_id)
        values (
            case new.message ->> 'sink' when 'email' then 'email' when 'sms' then 'sms' when 'whatsapp' then 'whatsapp' else 'other' end,
            'outbound', new.contact_id, (select c.sales_id from public.contacts as c where c.id = new.contact_id), 'completed',
            jsonb_strip_nulls(jsonb_build_object('source_type', 'text', 'content', new.message -> 'text', 'subject', new.message -> 'subject')),
            jsonb_strip_nulls(jsonb_build_object(
                'to', new.message -> 'to', 'sink', new.message -> 'sink', 'followup_id', new.id, 'message_id', new.result -> 'message_id')),
            v_channel, case when v_channel is not null then 'outbound:' || new.idempotency_key end)
        on conflict do nothing;
    exception when others then
        raise warning 'the message of follow-up % is not in the timeline: %', new.id, sqlerrm;
    end;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.record_outbound() IS 'Keeps what was sent as an outbound activity of the contact.';

CREATE FUNCTION gleaner.record_refusals(p_refusals jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION gleaner.record_refusals(p_refusals jsonb) IS 'Adds to the count of rejected requests, per channel, minute and reason.';

CREATE FUNCTION gleaner.record_row(p_request jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_id      uuid := (p_request ->> 'id')::uuid;
    v_row     integer := (p_request ->> 'row')::integer;
    v_of      integer := (p_request ->> 'of')::integer;
    v_outcome text;
begin
    select a.outcome into v_outcome
    from gleaner.progress_runs(v_id, (p_request ->> 'lease')::bigint, format('row %s of %s', v_row, v_of),
        p_percent => round(100.0 * v_row / v_of, 1), p_hold => make_interval(secs => (p_request ->> 'hold_seconds')::double precision)) as a;
    if v_outcome is distinct from 'done' then
        return jsonb_build_object('outcome', 'lost');
    end if;
    insert into public.run_rows (run_id, row_number, status, error, failed_step, steps, duration_ms, worker_id)
    select v_id, v_row, p_request ->> 'status', p_request ->> 'error', (p_request ->> 'failed_step')::integer, p_request -> 'steps',
           (p_request ->> 'duration_ms')::integer, r.worker_id
    from public.execution_jobs as r where r.id = v_id
    on conflict (run_id, row_number) do nothing;
    return jsonb_build_object('outcome', 'done');
end
$$;

COMMENT ON FUNCTION gleaner.record_row(p_request jsonb) IS 'Stores how one line of the data of a run went.';

CREATE FUNCTION gleaner.recording_problem(p_content jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    c_recorder constant jsonb := '{"setViewport": ["width", "height"], "navigate": ["url"], "click": ["selectors"], "doubleClick": ["selectors"],
        "hover": ["selectors"], "change": ["selectors", "value"], "keyDown": ["key"], "keyUp": ["key"], "scroll": [], "waitForElement": ["selectors"],
        "waitForExpression": ["expression"], "emulateNetworkConditions": ["download", "upload", "latency"], "close": [], "customStep": []}';
    c_own constant jsonb := '{"open": ["url"], "click": ["selector"], "type": ["selector", "text"], "select": ["selector", "value"], "wait": [],
        "assert": ["text"], "screenshot": []}';
    v_step  jsonb;
    v_n     bigint;
    v_known jsonb;
    v_verb  text;
    v_field text;
    v_where text;
begin
    if jsonb_typeof(p_content) is distinct from 'object' or jsonb_typeof(p_content -> 'steps') is distinct from 'array' then
        return 'a recording is an object with a list "steps"';
    elsif p_content -> 'steps' = '[]' then
        return 'the recording has no steps';
    elsif jsonb_array_length(p_content -> 'steps') > 1000 then
        return 'the recording has more than 1000 steps';
    end if;
    foreach v_field in array array['secrets', 'sites'] loop
        if p_content ? v_field and (jsonb_typeof(p_content -> v_field) <> 'array'
                or exists (select from jsonb_array_elements(p_content -> v_field) as e where jsonb_typeof(e) <> 'string')) then
            return format('"%s" is a list of names', v_field);
        end if;
    end loop;
    for v_step, v_n in select s.value, s.n from jsonb_array_elements(p_content -> 'steps') with ordinality as s (value, n) loop
        v_where := 'step ' || v_n;
        if jsonb_typeof(v_step) <> 'object' then
            return v_where || ' is no object';
        elsif jsonb_typeof(v_step -> 'do') = 'string' then
            v_verb := v_step ->> 'do';
            v_known := c_own;
        elsif jsonb_typeof(v_step -> 'type') = 'string' then
            v_verb := v_step ->> 'type';
            v_known := c_recorder;
        else
            return v_where || ' says neither "do" (our own steps) nor "type" (Chrome''s Recorder)';
        end if;
        v_where := format('%s (%s)', v_where, left(v_verb, 40));
        if not v_known ? v_verb then
            return format('%s: there is no such step; there are: %s', v_where,
                (select string_agg(k, ', ' order by k) from jsonb_object_keys(v_known) as k));
        end if;
        for v_field in select jsonb_array_elements_text(v_known -> v_verb) loop
            if not v_step ? v_field or v_step -> v_field in ('null', '[]') then
                return format('%s needs "%s"', v_where, v_field);
            end if;
        end loop;
        if v_verb in ('open', 'navigate') and v_step ->> 'url' !~* '^(https?://|\{\{)' then
            return format('%s: the address begins with http:// or https://', v_where);
        elsif v_verb = 'wait' and not v_step ?| array['selector', 'text', 'ms'] then
            return format('%s needs "selector", "text" or "ms"', v_where);
        elsif v_step ? 'retries' and (jsonb_typeof(v_step -> 'retries') <> 'number' or (v_step ->> 'retries')::numeric not between 0 and 10) then
            return format('%s: "retries" is a number from 0 to 10', v_where);
        elsif v_step ? 'timeout' and (jsonb_typeof(v_step -> 'timeout') <> 'number' or (v_step ->> 'timeout')::numeric not between 1 and 300000) then
            return format('%s: "timeout" is a number of milliseconds, at most 300000', v_where);
        end if;
    end loop;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.recording_problem(p_content jsonb) IS 'What is wrong with the content of a recording; null if nothing is.';

CREATE FUNCTION gleaner.recover_activities(p_older_than interval DEFAULT '00:00:00'::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_count integer;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.lose_activities(q) from (
        select q.* from public.activities as q
        where q.processing_status in ('processing') and q.due_at <= v_now - p_older_than
          -- Through the indexes of owned rows and of the others.
          and q.id = any (array(select q.id from (select q.* from public.activities as q where q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and q.sales_id is not null union all select q.* from public.activities as q where q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and q.sales_id is null) as q where q.processing_status in ('processing') and q.due_at <= v_now - p_older_than order by q.id limit 1000))
        order by q.id limit 1000 for no key update skip locked) as q;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.recover_activities(p_older_than interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.recover_activities(p_older_than interval) IS 'For display: up to a thousand rows whose lease ran out p_older_than ago wait again. Claims take such rows without it.';

CREATE FUNCTION gleaner.recover_dumps(p_older_than interval DEFAULT '00:00:00'::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_count integer;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.lose_dumps(q) from (
        select q.* from public.agent_processing_queue as q
        where q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and q.due_at <= v_now - p_older_than
        order by q.id limit 1000 for no key update skip locked) as q;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.recover_dumps(p_older_than interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.recover_dumps(p_older_than interval) IS 'For display: up to a thousand rows whose lease ran out p_older_than ago wait again. Claims take such rows without it.';

CREATE FUNCTION gleaner.recover_followups(p_older_than interval DEFAULT '00:00:00'::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_count integer;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.lose_followups(q) from (
        select q.* from public.scheduled_actions as q
        where q.status in ('processing') and q.due_at <= v_now - p_older_than
        order by q.id limit 1000 for no key update skip locked) as q;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.recover_followups(p_older_than interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.recover_followups(p_older_than interval) IS 'For display: up to a thousand rows whose lease ran out p_older_than ago wait again. Claims take such rows without it.';

CREATE FUNCTION gleaner.recover_jobs(p_older_than interval DEFAULT '00:00:00'::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_count integer;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.unbatch_jobs(null, array(select b.id from gleaner.batch_lease as b where b.queue = 'jobs' and b.due_at <= v_now - p_older_than));
    perform gleaner.lose_jobs(q) from (
        select q.* from gleaner.jobs as q
        where q.status in ('running') and q.due_at <= v_now - p_older_than and q.lease <> -1
        order by q.id limit 1000 for no key update skip locked) as q;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.recover_jobs(p_older_than interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.recover_jobs(p_older_than interval) IS 'For display: up to a thousand rows whose lease ran out p_older_than ago wait again. Claims take such rows without it.';

CREATE FUNCTION gleaner.recover_polls(p_older_than interval DEFAULT '00:00:00'::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_count integer;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.lose_polls(q) from (
        select q.* from gleaner.polls as q
        where q.status in ('running') and q.due_at <= v_now - p_older_than
        order by q.provider_id limit 1000 for no key update skip locked) as q;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.recover_polls(p_older_than interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.recover_polls(p_older_than interval) IS 'For display: up to a thousand rows whose lease ran out p_older_than ago wait again. Claims take such rows without it.';

CREATE FUNCTION gleaner.recover_runs(p_older_than interval DEFAULT '00:00:00'::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_count integer;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.lose_runs(q) from (
        select q.* from public.execution_jobs as q
        where q.status in ('running') and q.due_at <= v_now - p_older_than
        order by q.id limit 1000 for no key update skip locked) as q;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.recover_runs(p_older_than interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.recover_runs(p_older_than interval) IS 'For display: up to a thousand rows whose lease ran out p_older_than ago wait again. Claims take such rows without it.';

CREATE FUNCTION gleaner.recover_schedules(p_older_than interval DEFAULT '00:00:00'::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now timestamptz := clock_timestamp(); v_count integer;
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.lose_schedules(q) from (
        select q.* from public.followup_schedules as q
        where q.status in ('working') and q.due_at <= v_now - p_older_than
        order by q.id limit 1000 for no key update skip locked) as q;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.recover_schedules(p_older_than interval) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.recover_schedules(p_older_than interval) IS 'For display: up to a thousand rows whose lease ran out p_older_than ago wait again. Claims take such rows without it.';

CREATE FUNCTION gleaner.redeem_token(p_hash text, p_types text[], p_password text) RETURNS uuid
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_user uuid;
begin
    delete from auth.one_time_tokens as t
    using auth.users as u
    where t.token_hash = p_hash and t.token_type = any (p_types) and t.expires_at > clock_timestamp()
      and u.id = t.user_id and u.email = t.relates_to
    returning t.user_id into v_user;
    if v_user is not null then
        perform gleaner.change_user(
            v_user, jsonb_strip_nulls(jsonb_build_object('email_confirm', true, 'password', p_password)), null);
    end if;
    return v_user;
end
$$;

COMMENT ON FUNCTION gleaner.redeem_token(p_hash text, p_types text[], p_password text) IS 'Uses up a one-time link; gives its user, or null.';

CREATE FUNCTION gleaner.refresh_context_items(p_ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform from public.context_items as c where c.id = any (p_ids) order by c.id for no key update;
    update public.context_items as c
    set metadata = said.metadata, updated_at = now()
    from (
        select i.id, coalesce((
            select jsonb_object_agg(fact.key, fact.value order by s.created_at, s.dump_id nulls first)
            from public.context_item_sources as s
            cross join lateral jsonb_each(s.metadata) as fact
            where s.context_item_id = i.id), '{}') as metadata
        from unnest(p_ids) as i (id)
    ) as said
    where c.id = said.id
      and c.metadata is distinct from said.metadata;
end
$$;

COMMENT ON FUNCTION gleaner.refresh_context_items(p_ids uuid[]) IS 'Makes the metadata of entities what their sources say.';

CREATE FUNCTION gleaner.refresh_session(p_token text, p_next text, p_grace interval) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_now     timestamptz;
    v_session record;
    v_token   record;
    v_active  record;
begin
    select s.id, s.user_id, s.not_after, coalesce(s.refreshed_at, s.created_at) as last_at, s.method, floor(extract(epoch from s.created_at)) as signed_in_at into v_session
    from auth.refresh_tokens as t join auth.sessions as s on s.id = t.session_id
    where t.token = p_token
    for no key update of s;
    if not found then
        return jsonb_build_object('outcome', 'not_found');
    end if;
    -- After the lock: waiting for it took time.
    v_now := clock_timestamp();
    -- A device that was put away long enough signs in again.
    if v_session.not_after <= v_now or v_session.last_at < v_now - interval '90 days' then
        return jsonb_build_object('outcome', 'expired');
    elsif gleaner.find_ban(v_session.user_id) is not null then
        delete from auth.sessions as s where s.user_id = v_session.user_id;
        return jsonb_build_object('outcome', 'user_banned');
    end if;
    -- A statement of its own: it sees what was committed while we waited.
    select t.id, t.revoked, t.updated_at, t.reused_at into v_token from auth.refresh_tokens as t where t.token = p_token;
    if not found then
        return jsonb_build_object('outcome', 'not_found');
    end if;
    if not v_token.revoked then
        update auth.refresh_tokens as t set revoked = true, updated_at = v_now where t.id = v_token.id;
        insert into auth.refresh_tokens (token, user_id, session_id, parent, created_at, updated_at)
        values (p_next, v_session.user_id, v_session.id, p_token, v_now, v_now);
        update auth.sessions as s set refreshed_at = v_now, updated_at = v_now where s.id = v_session.id;
        -- Long past any grace, and so only evidence of reuse; the last hundred are evidence enough.
        delete from auth.refresh_tokens as t
        where t.id in (select o.id from auth.refresh_tokens as o where o.session_id = v_session.id order by o.id desc offset 100);
        return jsonb_build_object('outcome', 'refreshed', 'token', p_next, 'session_id', v_session.id, 'method', v_session.method,
                                  'signed_in_at', v_session.signed_in_at, 'user', gleaner.show_user(v_session.user_id));
    end if;
    select t.token, t.parent into v_active from auth.refresh_tokens as t where t.session_id = v_session.id and not t.revoked;
    if v_now - v_token.updated_at > p_grace and v_now - coalesce(v_token.reused_at, v_now) > p_grace
       or v_now - v_token.updated_at > p_grace and v_active.parent is distinct from p_token then
        delete from auth.sessions as s where s.id = v_session.id;
        return jsonb_build_object('outcome', 'already_used');
    end if;
    if v_now - v_token.updated_at > p_grace then
        update auth.refresh_tokens as t set reused_at = coalesce(t.reused_at, v_now) where t.id = v_token.id;
    end if;
    return jsonb_build_object('outcome', 'refreshed', 'token', v_active.token, 'session_id', v_session.id, 'method', v_session.method,
                              'signed_in_at', v_session.signed_in_at, 'user', gleaner.show_user(v_session.user_id));
end
$$;

COMMENT ON FUNCTION gleaner.refresh_session(p_token text, p_next text, p_grace interval) IS 'Trades a refresh token for the next one; reuse ends the session.';

CREATE FUNCTION gleaner.refuse_banned(p_user uuid) RETURNS void
    LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_ban text;
begin
    if not has_table_privilege('auth.users', 'select') then
        return;
    end if;
    v_ban := gleaner.find_ban(p_user);
    if v_ban is not null then
        raise insufficient_privilege using
            message = case v_ban when 'deleted' then 'User was deleted' else 'User is banned' end,
            hint = case v_ban when 'deleted' then 'Sign in as another user.' else 'An administrator can let the user in again: gleaner users enable.' end;
    end if;
end
$$;

COMMENT ON FUNCTION gleaner.refuse_banned(p_user uuid) IS 'Raises when the user of a token is banned, deleted or disabled.';

CREATE FUNCTION gleaner.refuse_contact(p_request jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_row public.scheduled_actions;
begin
    select a.* into v_row from public.scheduled_actions as a where a.id = (p_request ->> 'id')::uuid for no key update;
    if not found or v_row.status <> 'processing' or v_row.lease <> (p_request ->> 'lease')::bigint then
        return '{"outcome": "lost"}';
    end if;
    insert into public.do_not_contact as d (address, contact_id, reason)
    values (coalesce(v_row.message ->> 'to', v_row.prospect_id), v_row.contact_id, p_request ->> 'reason')
    on conflict (address) do update set contact_id = coalesce(excluded.contact_id, d.contact_id);
    perform from gleaner.cancel_followups(array[v_row.id], p_request ->> 'reason');
    update public.scheduled_actions as a set cancelled_reason = p_request ->> 'reason' where a.id = v_row.id;
    return '{"outcome": "done"}';
end
$$;

COMMENT ON FUNCTION gleaner.refuse_contact(p_request jsonb) IS 'Puts the recipient of an action on the list of people who are not written to.';

CREATE FUNCTION gleaner.refuse_update() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
begin
    raise insufficient_privilege using
        message = format('key, status, times, lease and what decides the place in the line of %s are changed by acts alone', tg_relid::regclass),
        hint = format('Call gleaner.cancel_%1$s, gleaner.requeue_%1$s or gleaner.bury_%1$s, or use `gleaner items`. Other columns are yours to update.', tg_argv[0]);
end
$_$;

COMMENT ON FUNCTION gleaner.refuse_update() IS 'Refuses a plain update of what a queue with batch leases changes by acts alone.';

CREATE FUNCTION gleaner.register_range_jobs(p_first bigint[], p_last bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_reserved int8multirange := coalesce(nullif(current_setting('gleaner.reserved_jobs', true), ''), '{}')::int8multirange;
    v_piece    record;
    v_count    integer;
begin
    for v_piece in select u.first, u.last from unnest(p_first, p_last) as u (first, last) loop
        if (v_piece.first <= v_piece.last and v_reserved @> int8range(v_piece.first, v_piece.last, '[]')) is not true then
            raise exception 'the keys % to % of gleaner.jobs cannot be registered', v_piece.first, v_piece.last using errcode = 'GL002',
                hint = 'Ask gleaner.reserve_keys_jobs for keys in the same transaction, and register each once.';
        end if;
        v_reserved := v_reserved - int8multirange(int8range(v_piece.first, v_piece.last, '[]'));
    end loop;
    insert into gleaner.bulk_range (queue, kind, class, due_at, first, last)
    select 'jobs', q.kind::text, (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end), q.due_at, u.first, u.last
    from unnest(p_first, p_last) as u (first, last)
    join gleaner.jobs as q on q.id = u.first
    where q.lease = -1 and q.status = 'ready';
    get diagnostics v_count = row_count;
    if v_count <> cardinality(p_first) then
        raise exception 'rows of gleaner.jobs in a bulk range wait with the lease -1' using errcode = 'GL002';
    end if;
    perform set_config('gleaner.reserved_jobs', v_reserved::text, true);
end
$$;

ALTER FUNCTION gleaner.register_range_jobs(p_first bigint[], p_last bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.register_range_jobs(p_first bigint[], p_last bigint[]) IS 'Lets rows that this transaction inserted wait as bulk ranges: from p_first[i] to p_last[i] all of one kind and one class, with the
lease -1. The first row of each says when it is due.
Refuses  keys that this transaction did not reserve, and those it has registered: a key in two ranges would be handed out twice. A
         guard against mistakes: comparing with all ranges would cost every batch more than registering it.';

CREATE FUNCTION gleaner.reject_row(p_queue text, p_tenant text, p_key text, p_reason text) RETURNS interval
    LANGUAGE plpgsql
    AS $$
declare
    v_now   timestamptz := clock_timestamp();
    v_until timestamptz;
begin
    insert into gleaner.rejected_row as r (queue, tenant, key, until, tries, reason)
    values (p_queue, p_tenant, p_key, v_now + interval '1 minute', 1, p_reason)
    on conflict (queue, tenant, key) do update
    set until = v_now + least(interval '1 minute' * power(2, least(r.tries, 6)), interval '1 hour'), tries = r.tries + 1, reason = excluded.reason
    returning r.until into v_until;
    return v_until - v_now;
end
$$;

COMMENT ON FUNCTION gleaner.reject_row(p_queue text, p_tenant text, p_key text, p_reason text) IS 'Notes a row that rejected a change; claims leave it out for a while.';

CREATE FUNCTION gleaner.release_activities(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_activities(p_ids, p_leases, clock_timestamp());
$$;

ALTER FUNCTION gleaner.release_activities(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.release_activities(p_ids uuid[], p_leases bigint[]) IS 'Gives work back without burning an attempt: an agent that shuts down, or took more than it can do.';

CREATE FUNCTION gleaner.release_dumps(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_dumps(p_ids, p_leases, clock_timestamp());
$$;

ALTER FUNCTION gleaner.release_dumps(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.release_dumps(p_ids uuid[], p_leases bigint[]) IS 'Gives work back without burning an attempt: an agent that shuts down, or took more than it can do.';

CREATE FUNCTION gleaner.release_followups(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_followups(p_ids, p_leases, clock_timestamp());
$$;

ALTER FUNCTION gleaner.release_followups(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.release_followups(p_ids uuid[], p_leases bigint[]) IS 'Gives work back without burning an attempt: an agent that shuts down, or took more than it can do.';

CREATE FUNCTION gleaner.release_jobs(p_ids bigint[], p_leases bigint[]) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_jobs(p_ids, p_leases, clock_timestamp());
$$;

ALTER FUNCTION gleaner.release_jobs(p_ids bigint[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.release_jobs(p_ids bigint[], p_leases bigint[]) IS 'Gives work back without burning an attempt: an agent that shuts down, or took more than it can do.';

CREATE FUNCTION gleaner.release_polls(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_polls(p_ids, p_leases, clock_timestamp());
$$;

ALTER FUNCTION gleaner.release_polls(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.release_polls(p_ids uuid[], p_leases bigint[]) IS 'Gives work back without burning an attempt: an agent that shuts down, or took more than it can do.';

CREATE FUNCTION gleaner.release_runs(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_runs(p_ids, p_leases, clock_timestamp());
$$;

ALTER FUNCTION gleaner.release_runs(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.release_runs(p_ids uuid[], p_leases bigint[]) IS 'Gives work back without burning an attempt: an agent that shuts down, or took more than it can do.';

CREATE FUNCTION gleaner.release_schedules(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_schedules(p_ids, p_leases, clock_timestamp());
$$;

ALTER FUNCTION gleaner.release_schedules(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.release_schedules(p_ids uuid[], p_leases bigint[]) IS 'Gives work back without burning an attempt: an agent that shuts down, or took more than it can do.';

CREATE FUNCTION gleaner.remember_activities(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_keys text[]; v_leases bigint[];
begin
    select array_agg(q.id::text order by k.n), array_agg(q.lease order by k.n) into v_keys, v_leases
    from (select distinct on (id) * from unnest(p_keys) with ordinality as k (id, n)) as k
    join public.activities as q on q.id = any (array[k.id])
    where q.lease >= p_lease and q.session = p_session and q.processing_status in ('processing');
    update gleaner.request as r set keys = v_keys, leases = v_leases where r.queue = 'activities' and r.id = p_request;
end
$$;

ALTER FUNCTION gleaner.remember_activities(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.remember_dumps(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_keys text[]; v_leases bigint[];
begin
    select array_agg(q.id::text order by k.n), array_agg(q.lease order by k.n) into v_keys, v_leases
    from (select distinct on (id) * from unnest(p_keys) with ordinality as k (id, n)) as k
    join public.agent_processing_queue as q on q.id = any (array[k.id])
    where q.lease >= p_lease and q.session = p_session and q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state);
    update gleaner.request as r set keys = v_keys, leases = v_leases where r.queue = 'dumps' and r.id = p_request;
end
$$;

ALTER FUNCTION gleaner.remember_dumps(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.remember_followups(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_keys text[]; v_leases bigint[];
begin
    select array_agg(q.id::text order by k.n), array_agg(q.lease order by k.n) into v_keys, v_leases
    from (select distinct on (id) * from unnest(p_keys) with ordinality as k (id, n)) as k
    join public.scheduled_actions as q on q.id = any (array[k.id])
    where q.lease >= p_lease and q.session = p_session and q.status in ('processing');
    update gleaner.request as r set keys = v_keys, leases = v_leases where r.queue = 'followups' and r.id = p_request;
end
$$;

ALTER FUNCTION gleaner.remember_followups(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.remember_jobs(p_request uuid, p_keys bigint[], p_session text, p_now timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_keys   text[];
    v_leases bigint[];
begin
    select array_agg(h.id::text order by h.n), array_agg(h.lease order by h.n)
    into v_keys, v_leases
    from (
        select k.id, k.n, coalesce(-b.id, q.lease) as lease
        from unnest(p_keys) with ordinality as k (id, n)
        join gleaner.jobs as q on q.id = any (array[k.id])
        left join gleaner.batch_lease as b on b.queue = 'jobs' and b.xid = pg_current_xact_id() and b.keys @> k.id and q.lease = b.mark
    ) as h;
    update gleaner.request as r set keys = v_keys, leases = v_leases where r.queue = 'jobs' and r.id = p_request;
end
$$;

ALTER FUNCTION gleaner.remember_jobs(p_request uuid, p_keys bigint[], p_session text, p_now timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.remember_polls(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_keys text[]; v_leases bigint[];
begin
    select array_agg(q.provider_id::text order by k.n), array_agg(q.lease order by k.n) into v_keys, v_leases
    from (select distinct on (id) * from unnest(p_keys) with ordinality as k (id, n)) as k
    join gleaner.polls as q on q.provider_id = any (array[k.id])
    where q.lease >= p_lease and q.session = p_session and q.status in ('running');
    update gleaner.request as r set keys = v_keys, leases = v_leases where r.queue = 'polls' and r.id = p_request;
end
$$;

ALTER FUNCTION gleaner.remember_polls(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.remember_runs(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_keys text[]; v_leases bigint[];
begin
    select array_agg(q.id::text order by k.n), array_agg(q.lease order by k.n) into v_keys, v_leases
    from (select distinct on (id) * from unnest(p_keys) with ordinality as k (id, n)) as k
    join public.execution_jobs as q on q.id = any (array[k.id])
    where q.lease >= p_lease and q.session = p_session and q.status in ('running');
    update gleaner.request as r set keys = v_keys, leases = v_leases where r.queue = 'runs' and r.id = p_request;
end
$$;

ALTER FUNCTION gleaner.remember_runs(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.remember_schedules(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    v_keys text[]; v_leases bigint[];
begin
    select array_agg(q.id::text order by k.n), array_agg(q.lease order by k.n) into v_keys, v_leases
    from (select distinct on (id) * from unnest(p_keys) with ordinality as k (id, n)) as k
    join public.followup_schedules as q on q.id = any (array[k.id])
    where q.lease >= p_lease and q.session = p_session and q.status in ('working');
    update gleaner.request as r set keys = v_keys, leases = v_leases where r.queue = 'schedules' and r.id = p_request;
end
$$;

ALTER FUNCTION gleaner.remember_schedules(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.repeat_activities(p_request uuid, v_session text) RETURNS SETOF public.activities
    LANGUAGE plpgsql
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_keys    text[]; v_leases bigint[];
begin
    select r.keys, r.leases into v_keys, v_leases from gleaner.request as r where r.queue = 'activities' and r.id = p_request;
    return query
    select q.* from unnest(v_keys, v_leases) with ordinality as k (id, lease, n)
    join public.activities as q on q.id = any (array[k.id::uuid])
    where q.lease = k.lease and q.processing_status in ('processing') and (v_trusted or q.session = v_session)
    order by k.n;
end
$$;

ALTER FUNCTION gleaner.repeat_activities(p_request uuid, v_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.repeat_dumps(p_request uuid, v_session text) RETURNS SETOF public.agent_processing_queue
    LANGUAGE plpgsql
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_keys    text[]; v_leases bigint[];
begin
    select r.keys, r.leases into v_keys, v_leases from gleaner.request as r where r.queue = 'dumps' and r.id = p_request;
    return query
    select q.* from unnest(v_keys, v_leases) with ordinality as k (id, lease, n)
    join public.agent_processing_queue as q on q.id = any (array[k.id::uuid])
    where q.lease = k.lease and q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and (v_trusted or q.session = v_session)
    order by k.n;
end
$$;

ALTER FUNCTION gleaner.repeat_dumps(p_request uuid, v_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.repeat_followups(p_request uuid, v_session text) RETURNS SETOF public.scheduled_actions
    LANGUAGE plpgsql
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_keys    text[]; v_leases bigint[];
begin
    select r.keys, r.leases into v_keys, v_leases from gleaner.request as r where r.queue = 'followups' and r.id = p_request;
    return query
    select q.* from unnest(v_keys, v_leases) with ordinality as k (id, lease, n)
    join public.scheduled_actions as q on q.id = any (array[k.id::uuid])
    where q.lease = k.lease and q.status in ('processing') and (v_trusted or q.session = v_session)
    order by k.n;
end
$$;

ALTER FUNCTION gleaner.repeat_followups(p_request uuid, v_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.repeat_jobs(p_request uuid, v_session text) RETURNS SETOF gleaner.jobs
    LANGUAGE plpgsql
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_keys    text[];
    v_leases  bigint[];
begin
    select r.keys, r.leases into v_keys, v_leases from gleaner.request as r where r.queue = 'jobs' and r.id = p_request;
    if gleaner.in_shape_jobs() then
        return query
        select q.id, case when b.id is not null then (b.due_at)::timestamp with time zone else q.due_at end, q.created_at, case when b.id is not null then (-b.id)::bigint else q.lease end, case when b.id is not null then (b.deadline_at)::timestamp with time zone else q.deadline_at end, q.finished_at, q.attempts, q.lost, case when b.id is not null then (case when b.begun @> q.id then 1 else 0 end)::smallint else q.started end, q.priority, case when b.id is not null then ('running')::text else q.status end, q.kind, q.unique_key, case when b.id is not null then (b.agent)::text else q.agent end, case when b.id is not null then (b.session)::text else q.session end, q.payload, q.progress, q.result, q.error
        from unnest(v_keys, v_leases) with ordinality as k (id, lease, n)
        join gleaner.jobs as q on q.id = any (array[k.id::bigint])
        left join gleaner.batch_lease as b on b.id = -k.lease and b.queue = 'jobs' and b.keys @> q.id
            and q.lease = b.mark and q.status = 'ready' and (v_trusted or b.session = v_session)
        where b.id is not null or q.lease = k.lease and q.status in ('running') and (v_trusted or q.session = v_session)
        order by k.n;
        return;
    end if;
    return query
    select q.*
    from unnest(v_keys, v_leases) as k (id, lease)
    join gleaner.jobs as q on q.id = any (array[k.id::bigint])
    where q.lease = k.lease and q.status in ('running') and (v_trusted or q.session = v_session);
end
$$;

ALTER FUNCTION gleaner.repeat_jobs(p_request uuid, v_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.repeat_polls(p_request uuid, v_session text) RETURNS SETOF gleaner.polls
    LANGUAGE plpgsql
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_keys    text[]; v_leases bigint[];
begin
    select r.keys, r.leases into v_keys, v_leases from gleaner.request as r where r.queue = 'polls' and r.id = p_request;
    return query
    select q.* from unnest(v_keys, v_leases) with ordinality as k (id, lease, n)
    join gleaner.polls as q on q.provider_id = any (array[k.id::uuid])
    where q.lease = k.lease and q.status in ('running') and (v_trusted or q.session = v_session)
    order by k.n;
end
$$;

ALTER FUNCTION gleaner.repeat_polls(p_request uuid, v_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.repeat_runs(p_request uuid, v_session text) RETURNS SETOF public.execution_jobs
    LANGUAGE plpgsql
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_keys    text[]; v_leases bigint[];
begin
    select r.keys, r.leases into v_keys, v_leases from gleaner.request as r where r.queue = 'runs' and r.id = p_request;
    return query
    select q.* from unnest(v_keys, v_leases) with ordinality as k (id, lease, n)
    join public.execution_jobs as q on q.id = any (array[k.id::uuid])
    where q.lease = k.lease and q.status in ('running') and (v_trusted or q.session = v_session)
    order by k.n;
end
$$;

ALTER FUNCTION gleaner.repeat_runs(p_request uuid, v_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.repeat_schedules(p_request uuid, v_session text) RETURNS SETOF public.followup_schedules
    LANGUAGE plpgsql
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_keys    text[]; v_leases bigint[];
begin
    select r.keys, r.leases into v_keys, v_leases from gleaner.request as r where r.queue = 'schedules' and r.id = p_request;
    return query
    select q.* from unnest(v_keys, v_leases) with ordinality as k (id, lease, n)
    join public.followup_schedules as q on q.id = any (array[k.id::uuid])
    where q.lease = k.lease and q.status in ('working') and (v_trusted or q.session = v_session)
    order by k.n;
end
$$;

ALTER FUNCTION gleaner.repeat_schedules(p_request uuid, v_session text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.request_poll(p_provider_id uuid) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    insert into gleaner.polls (provider_id, wanted_at)
    values (p_provider_id, clock_timestamp())
    on conflict (provider_id) do update set wanted_at = clock_timestamp();
end
$$;

COMMENT ON FUNCTION gleaner.request_poll(p_provider_id uuid) IS 'Asks for a look into the mailbox of a channel, now.';

CREATE FUNCTION gleaner.requeue_activities(p_ids uuid[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_activities('requeue', p_ids, null);
$$;

ALTER FUNCTION gleaner.requeue_activities(p_ids uuid[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.requeue_activities(p_ids uuid[]) IS 'An operator''s retry: rows wait again, due now, with counts at zero; also finished rows, and held ones.';

CREATE FUNCTION gleaner.requeue_dumps(p_ids uuid[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_dumps('requeue', p_ids, null);
$$;

ALTER FUNCTION gleaner.requeue_dumps(p_ids uuid[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.requeue_dumps(p_ids uuid[]) IS 'An operator''s retry: rows wait again, due now, with counts at zero; also finished rows, and held ones.';

CREATE FUNCTION gleaner.requeue_followups(p_ids uuid[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_followups('requeue', p_ids, null);
$$;

ALTER FUNCTION gleaner.requeue_followups(p_ids uuid[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.requeue_followups(p_ids uuid[]) IS 'An operator''s retry: rows wait again, due now, with counts at zero; also finished rows, and held ones.';

CREATE FUNCTION gleaner.requeue_jobs(p_ids bigint[]) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_jobs('requeue', p_ids, null);
$$;

ALTER FUNCTION gleaner.requeue_jobs(p_ids bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.requeue_jobs(p_ids bigint[]) IS 'An operator''s retry: rows wait again, due now, with counts at zero; also finished rows, and held ones.';

CREATE FUNCTION gleaner.requeue_polls(p_ids uuid[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_polls('requeue', p_ids, null);
$$;

ALTER FUNCTION gleaner.requeue_polls(p_ids uuid[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.requeue_polls(p_ids uuid[]) IS 'An operator''s retry: rows wait again, due now, with counts at zero; also finished rows, and held ones.';

CREATE FUNCTION gleaner.requeue_runs(p_ids uuid[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_runs('requeue', p_ids, null);
$$;

ALTER FUNCTION gleaner.requeue_runs(p_ids uuid[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.requeue_runs(p_ids uuid[]) IS 'An operator''s retry: rows wait again, due now, with counts at zero; also finished rows, and held ones.';

CREATE FUNCTION gleaner.requeue_schedules(p_ids uuid[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_schedules('requeue', p_ids, null);
$$;

ALTER FUNCTION gleaner.requeue_schedules(p_ids uuid[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.requeue_schedules(p_ids uuid[]) IS 'An operator''s retry: rows wait again, due now, with counts at zero; also finished rows, and held ones.';

CREATE FUNCTION gleaner.require_own_contact(p_prospect text) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_contact bigint := gleaner.contact_of_prospect(p_prospect);
begin
    if gleaner.operates('followups', '{service_role}', '{authenticated}') = 'own' then
        if v_contact is null then
            raise exception 'no contact is known as %', p_prospect
                using errcode = 'GL002', hint = 'Add the contact, or give it this identity; contact:ID names one by its id.';
        end if;
        if not gleaner.owns_contact(v_contact) then
            raise exception 'contact % belongs to another member', v_contact
                using errcode = '42501', hint = 'Its owner or an administrator may plan a message.';
        end if;
    end if;
    return v_contact;
end
$$;

COMMENT ON FUNCTION gleaner.require_own_contact(p_prospect text) IS 'The contact that a prospect names, if the caller may plan something for it.';

CREATE FUNCTION gleaner.reschedule_activities(p_ids uuid[], p_due timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_activities('reschedule', p_ids, null, p_due);
$$;

ALTER FUNCTION gleaner.reschedule_activities(p_ids uuid[], p_due timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.reschedule_activities(p_ids uuid[], p_due timestamp with time zone) IS 'An operator''s change of the due time of rows that wait. A held row answers lost, a finished one already.';

CREATE FUNCTION gleaner.reschedule_dumps(p_ids uuid[], p_due timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_dumps('reschedule', p_ids, null, p_due);
$$;

ALTER FUNCTION gleaner.reschedule_dumps(p_ids uuid[], p_due timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.reschedule_dumps(p_ids uuid[], p_due timestamp with time zone) IS 'An operator''s change of the due time of rows that wait. A held row answers lost, a finished one already.';

CREATE FUNCTION gleaner.reschedule_followups(p_ids uuid[], p_due timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_followups('reschedule', p_ids, null, p_due);
$$;

ALTER FUNCTION gleaner.reschedule_followups(p_ids uuid[], p_due timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.reschedule_followups(p_ids uuid[], p_due timestamp with time zone) IS 'An operator''s change of the due time of rows that wait. A held row answers lost, a finished one already.';

CREATE FUNCTION gleaner.reschedule_jobs(p_ids bigint[], p_due timestamp with time zone) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_jobs('reschedule', p_ids, null, p_due);
$$;

ALTER FUNCTION gleaner.reschedule_jobs(p_ids bigint[], p_due timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.reschedule_jobs(p_ids bigint[], p_due timestamp with time zone) IS 'An operator''s change of the due time of rows that wait. A held row answers lost, a finished one already.';

CREATE FUNCTION gleaner.reschedule_polls(p_ids uuid[], p_due timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_polls('reschedule', p_ids, null, p_due);
$$;

ALTER FUNCTION gleaner.reschedule_polls(p_ids uuid[], p_due timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.reschedule_polls(p_ids uuid[], p_due timestamp with time zone) IS 'An operator''s change of the due time of rows that wait. A held row answers lost, a finished one already.';

CREATE FUNCTION gleaner.reschedule_runs(p_ids uuid[], p_due timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_runs('reschedule', p_ids, null, p_due);
$$;

ALTER FUNCTION gleaner.reschedule_runs(p_ids uuid[], p_due timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.reschedule_runs(p_ids uuid[], p_due timestamp with time zone) IS 'An operator''s change of the due time of rows that wait. A held row answers lost, a finished one already.';

CREATE FUNCTION gleaner.reschedule_schedules(p_ids uuid[], p_due timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.operate_schedules('reschedule', p_ids, null, p_due);
$$;

ALTER FUNCTION gleaner.reschedule_schedules(p_ids uuid[], p_due timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.reschedule_schedules(p_ids uuid[], p_due timestamp with time zone) IS 'An operator''s change of the due time of rows that wait. A held row answers lost, a finished one already.';

CREATE FUNCTION gleaner.reserve_keys_jobs(p_count integer) RETURNS TABLE(first bigint, last bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_sequence text := pg_get_serial_sequence('gleaner.jobs', 'id');
    v_keys     bigint[];
    v_pieces   int8multirange;
begin
    if v_sequence is null or p_count < 1 or not has_sequence_privilege(v_sequence, 'usage') or not gleaner.is_plain('gleaner.jobs', array['due_at', 'lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'status'], 'status')
       or exists (
           select from pg_attribute as a
           left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
           where a.attrelid = 'gleaner.jobs'::regclass and (
               a.attname = 'id' and a.attidentity = '' and pg_get_expr(d.adbin, d.adrelid) not like 'nextval(%'
               or a.attname = 'kind' and (a.attgenerated <> '' or pg_get_expr(d.adbin, d.adrelid) like '%(%')
               or a.attname = 'priority' and (a.attgenerated <> '' or pg_get_expr(d.adbin, d.adrelid) like '%(%')))
       or exists (select from pg_trigger as t where t.tgrelid = 'gleaner.jobs'::regclass and not t.tgisinternal and t.tgtype & 7 = 7) then
        return;
    end if;
    v_keys := array(select nextval(v_sequence::regclass) from generate_series(1, p_count));
    -- A session's keys ascend: the ends tell whether others drew from the sequence meanwhile.
    if v_keys[p_count] = v_keys[1] + p_count - 1 then
        v_pieces := int8multirange(int8range(v_keys[1], v_keys[p_count], '[]'));
    else
        v_pieces := (select range_agg(int8range(k, k, '[]')) from unnest(v_keys) as k);
    end if;
    perform set_config('gleaner.reserved_jobs', (coalesce(nullif(current_setting('gleaner.reserved_jobs', true), ''), '{}')::int8multirange + v_pieces)::text, true);
    return query select lower(p), upper(p) - 1 from unnest(v_pieces) as p;
end
$$;

ALTER FUNCTION gleaner.reserve_keys_jobs(p_count integer) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.reserve_keys_jobs(p_count integer) IS 'Keys for p_count rows that are about to be enqueued together, as ranges; mostly one. For enqueue by COPY, which writes the rows with
the lease -1 and then registers their ranges, in the same transaction.
Returns  nothing where rows cannot wait in bulk ranges: the key is not drawn from a sequence of its own, something on the table could
         reject a change or make rows differ that were enqueued alike.';

CREATE FUNCTION gleaner.restamp_activities(p_ids uuid[], p_open_at timestamp with time zone[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    update public.activities as q set open_at = u.open_at
    from unnest(p_ids, p_open_at) as u (id, open_at)
    where q.id = any (array[u.id]);
exception when others then
    perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
    if cardinality(p_ids) = 1 then
        perform gleaner.reject_row('activities', '', p_ids[1]::text, sqlerrm);
        return;
    end if;
    for v_i in 1 .. cardinality(p_ids) loop
        perform gleaner.restamp_activities(p_ids[v_i : v_i], p_open_at[v_i : v_i]);
    end loop;
end
$$;

ALTER FUNCTION gleaner.restamp_activities(p_ids uuid[], p_open_at timestamp with time zone[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.run_request(p_user uuid, p_settings text[], p_sql text, p_parameters text[], p_limit integer, OUT rows text, OUT shown bigint, OUT total bigint, OUT inserted bigint, OUT status text, OUT headers text) RETURNS record
    LANGUAGE plpgsql
    AS $$
begin
    if pg_catalog.current_setting('statement_timeout')::pg_catalog.interval is distinct from pg_catalog.make_interval(secs => p_limit / 1000.0) then
        raise exception 'the transaction of this request was not begun' using errcode = '25P01';
    end if;
    -- While the rights are still the server's own: the caller's role may not call it.
    perform gleaner.refuse_banned(p_user);
    perform pg_catalog.set_config(s.name, p_settings[s.n], true)
    from (values (1, 'search_path'), (2, 'role'), (3, 'request.jwt.claims'), (4, 'request.method'), (5, 'request.path'),
                 (6, 'request.headers'), (7, 'timezone'), (8, 'transaction_read_only')) as s (n, name)
    where p_settings[s.n] is not null;
    if current_user::pg_catalog.text is distinct from p_settings[2] then
        raise exception 'the role % was not taken on', p_settings[2] using errcode = '42501';
    end if;
    execute p_sql into rows, shown, total, inserted using p_parameters;
    if octet_length(rows) > 67108864 then
        raise exception 'the response has more than 64 MiB'
            using errcode = '54000', hint = 'Select fewer columns, fewer rows, or fewer embedded rows.';
    end if;
    status := pg_catalog.current_setting('response.status', true);
    headers := pg_catalog.current_setting('response.headers', true);
end
$$;

COMMENT ON FUNCTION gleaner.run_request(p_user uuid, p_settings text[], p_sql text, p_parameters text[], p_limit integer, OUT rows text, OUT shown bigint, OUT total bigint, OUT inserted bigint, OUT status text, OUT headers text) IS 'Runs one statement of an API request as its caller.';

CREATE FUNCTION gleaner.same_label(p_label text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select lower(btrim(regexp_replace(p_label, '\s+', ' ', 'g')))
$$;

COMMENT ON FUNCTION gleaner.same_label(p_label text) IS 'A label as it is compared: without case, and with single spaces.';

CREATE FUNCTION gleaner.schedule_poll() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform gleaner.request_poll(new.id);
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.schedule_poll() IS 'Puts the mailbox of a new or resumed channel in the line.';

CREATE FUNCTION gleaner.scoped_kinds(p_queue text, p_kinds text[]) RETURNS text[]
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_claims jsonb := nullif(current_setting('request.jwt.claims', true), '')::jsonb;
    v_wrong  text;
begin
    if v_claims ->> 'worker' is distinct from 'true' then
        return p_kinds;
    end if;
    if v_claims ? 'queues' and not (v_claims -> 'queues') ? p_queue then
        raise exception 'this key may not work the queue %', p_queue
            using errcode = '42501', hint = 'A key is made for its queues: gleaner keys add NAME --queue ' || p_queue;
    end if;
    if not v_claims ? 'kinds' then
        return p_kinds;
    end if;
    if p_kinds is null then
        return array(select jsonb_array_elements_text(v_claims -> 'kinds'));
    end if;
    select k into v_wrong from unnest(p_kinds) as k where not (v_claims -> 'kinds') ? k limit 1;
    if found then
        raise exception 'this key may not claim work of kind %', v_wrong
            using errcode = '42501', hint = 'Leave the kinds out to claim all that the key is for.';
    end if;
    return p_kinds;
end
$$;

COMMENT ON FUNCTION gleaner.scoped_kinds(p_queue text, p_kinds text[]) IS 'The kinds a claim may take: those it asks for, within the scope of a worker''s key.';

CREATE FUNCTION gleaner.sees(p_queue text, p_key text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
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
$_$;

COMMENT ON FUNCTION gleaner.sees(p_queue text, p_key text) IS 'Whether the caller may see this row of the queue.';

CREATE FUNCTION gleaner.serves_auth() RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return exists (
        select from pg_attribute as a
        where a.attrelid = to_regclass('auth.refresh_tokens') and a.attname = 'reused_at' and not a.attisdropped);
end
$$;

COMMENT ON FUNCTION gleaner.serves_auth() IS 'True where users are ours to keep, false on a platform that has its own.';

CREATE FUNCTION gleaner.settle_activities(p_row public.activities, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text DEFAULT NULL::text, p_message text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    if p_category is not null and (p_message is not null or p_category <> 'Cancelled') then
        p_row.metadata := jsonb_set(coalesce(p_row.metadata, '{}'), '{error}', jsonb_build_object('timestamp', v_now, 'type', p_category, 'message', p_message, 'agent_id', case when p_category = 'Cancelled' then gleaner.caller_session() else coalesce(p_row.agent, p_row.session) end, 'retry_count', coalesce(p_attempts, 0)));
    end if;
    if p_lost > p_row.lost then
        p_row.metadata := jsonb_set(coalesce(p_row.metadata, '{}'), '{recovery_count}', to_jsonb(p_lost));
    end if;
    update public.activities as q
    set processing_status = p_status, due_at = p_due,
        -- Anew, by the owner's policy: the claim moved it to the end of a lease that is no more.
        open_at = case when p_due is null then q.open_at when p_row.sales_id is null then p_due
            else gleaner.open_activities(p_row.sales_id, coalesce(p_row.created_at, p_due), p_due) end,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts, lost = p_lost,
        metadata = p_row.metadata,
        deadline_at = null, started = 0,
        locked_by = null,
        locked_at = null
    where q.id = p_row.id;
    if p_due is null and p_category is distinct from 'Cancelled' and p_category is distinct from 'Superseded' then
        perform gleaner.dead_letter_activities(p_row, p_message);
    end if;
    if p_due is not null then perform pg_notify('gleaner', 'activities'); end if;
    return p_status::text;
end
$$;

ALTER FUNCTION gleaner.settle_activities(p_row public.activities, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.settle_dumps(p_row public.agent_processing_queue, p_status public.processing_state, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text DEFAULT NULL::text, p_message text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    if p_category is not null and (p_message is not null or p_category <> 'Cancelled') then
        p_row.error_message := p_message;
    end if;
    update public.agent_processing_queue as q
    set processing_state = p_status, due_at = p_due,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts, lost = p_lost,
        error_message = p_row.error_message,
        completed_at = case when p_due is null then v_now end,
        deadline_at = null, started = 0
    where q.id = p_row.id;
    if p_due is not null then perform pg_notify('gleaner', 'dumps'); end if;
    return p_status::text;
end
$$;

ALTER FUNCTION gleaner.settle_dumps(p_row public.agent_processing_queue, p_status public.processing_state, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.settle_followups(p_row public.scheduled_actions, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text DEFAULT NULL::text, p_message text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    if p_category is not null and (p_message is not null or p_category <> 'Cancelled') then
        p_row.error_message := p_message;
    end if;
    update public.scheduled_actions as q
    set status = p_status, due_at = p_due,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts, lost = p_lost,
        error_message = p_row.error_message,
        finished_at = case when p_due is null then v_now end,
        deadline_at = null, started = 0
    where q.id = p_row.id;
    if p_due is not null then perform pg_notify('gleaner', 'followups'); end if;
    return p_status::text;
end
$$;

ALTER FUNCTION gleaner.settle_followups(p_row public.scheduled_actions, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.settle_jobs(p_row gleaner.jobs, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text DEFAULT NULL::text, p_message text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    if p_category is not null and (p_message is not null or p_category <> 'Cancelled') then
        p_row.error := jsonb_build_object('timestamp', v_now, 'type', p_category, 'message', p_message, 'agent_id', case when p_category = 'Cancelled' then gleaner.caller_session() else coalesce(p_row.agent, p_row.session) end, 'retry_count', coalesce(p_attempts, 0));
    end if;
    for v_try in 1 .. 5 loop
        exit when p_due is null;
        if p_row.unique_key is not null and exists (
            select from gleaner.jobs as q
            where q.unique_key = p_row.unique_key
              and q.status in ('ready', 'failed') and q.due_at is not null and not (q.id = p_row.id)
        ) then
            return gleaner.settle_jobs(p_row, 'cancelled', null, p_own, p_row.attempts, p_row.lost,
                'Superseded', 'superseded by a waiting row with the same key');
        end if;
        begin
            update gleaner.jobs as q
            set status = p_status, due_at = p_due,
                lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
                attempts = p_attempts, lost = p_lost,
                error = p_row.error,
                finished_at = case when p_due is null then v_now end,
                deadline_at = null, started = 0
            where q.id = p_row.id;
            return p_status::text;
        exception when unique_violation then
            -- The twin was enqueued between the look and the update; look again, now it can be seen.
            null;
        end;
    end loop;
    if p_due is not null then
        raise exception 'could not put % back: its unique key is contended', p_row.id using errcode = '40001';
    end if;
    update gleaner.jobs as q
    set status = p_status, due_at = p_due,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts, lost = p_lost,
        error = p_row.error,
        finished_at = case when p_due is null then v_now end,
        deadline_at = null, started = 0
    where q.id = p_row.id;
    return p_status::text;
end
$$;

ALTER FUNCTION gleaner.settle_jobs(p_row gleaner.jobs, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.settle_polls(p_row gleaner.polls, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text DEFAULT NULL::text, p_message text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    update gleaner.polls as q
    set status = p_status, due_at = p_due,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts, lost = p_lost,
        deadline_at = null, started = 0
    where q.provider_id = p_row.provider_id;
    if p_due is not null then perform pg_notify('gleaner', 'polls'); end if;
    return p_status::text;
end
$$;

ALTER FUNCTION gleaner.settle_polls(p_row gleaner.polls, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.settle_runs(p_row public.execution_jobs, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text DEFAULT NULL::text, p_message text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    if p_category is not null and (p_message is not null or p_category <> 'Cancelled') then
        p_row.error := p_message;
    end if;
    update public.execution_jobs as q
    set status = p_status, due_at = p_due,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts, lost = p_lost,
        error = p_row.error,
        completed_at = case when p_due is null then v_now end,
        deadline_at = null, started = 0
    where q.id = p_row.id;
    if p_due is not null then perform pg_notify('gleaner', 'runs'); end if;
    return p_status::text;
end
$$;

ALTER FUNCTION gleaner.settle_runs(p_row public.execution_jobs, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.settle_schedules(p_row public.followup_schedules, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text DEFAULT NULL::text, p_message text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    if p_category is not null and (p_message is not null or p_category <> 'Cancelled') then
        p_row.error_message := p_message;
    end if;
    update public.followup_schedules as q
    set status = p_status, due_at = p_due,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts, lost = p_lost,
        error_message = p_row.error_message,
        finished_at = case when p_due is null then v_now end,
        deadline_at = null, started = 0
    where q.id = p_row.id;
    if p_due is not null then perform pg_notify('gleaner', 'schedules'); end if;
    return p_status::text;
end
$$;

ALTER FUNCTION gleaner.settle_schedules(p_row public.followup_schedules, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.short_key(p_key text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return case when octet_length(p_key) <= 512 then p_key else 'sha256:' || encode(sha256(convert_to(p_key, 'UTF8')), 'hex') end;
end
$$;

COMMENT ON FUNCTION gleaner.short_key(p_key text) IS 'A name in a form that fits an index: itself, or its hash when it is long.';

CREATE FUNCTION gleaner.show_user(p_user uuid) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    AS $$
declare
    v_form constant text := 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"';
begin
    return (
        select jsonb_strip_nulls(jsonb_build_object(
                   'email_confirmed_at', to_char(u.email_confirmed_at, v_form),
                   'confirmed_at', to_char(u.email_confirmed_at, v_form),
                   'invited_at', to_char(u.invited_at, v_form),
                   'last_sign_in_at', to_char(u.last_sign_in_at, v_form),
                   -- A ban without an end is a date far away: clients parse it.
                   'banned_until', to_char(case when isfinite(u.banned_until) then u.banned_until
                                                when u.banned_until > now() then timestamptz '9999-12-31 23:59:59Z' end, v_form)))
               || jsonb_build_object(
                   'id', u.id, 'aud', u.aud, 'role', u.role, 'email', coalesce(u.email, ''), 'phone', coalesce(u.phone, ''),
                   'app_metadata', u.raw_app_meta_data, 'user_metadata', u.raw_user_meta_data,
                   'created_at', to_char(u.created_at, v_form), 'updated_at', to_char(u.updated_at, v_form),
                   'is_anonymous', u.is_anonymous,
                   'identities', coalesce((
                       select jsonb_agg(jsonb_build_object(
                                  'identity_id', i.id, 'id', i.provider_id, 'user_id', i.user_id, 'identity_data', i.identity_data,
                                  'provider', i.provider, 'email', i.email,
                                  'last_sign_in_at', to_char(i.last_sign_in_at, v_form),
                                  'created_at', to_char(i.created_at, v_form), 'updated_at', to_char(i.updated_at, v_form))
                              order by i.created_at)
                       from auth.identities as i
                       where i.user_id = u.id), '[]'))
        from auth.users as u
        where u.id = p_user);
end
$$;

COMMENT ON FUNCTION gleaner.show_user(p_user uuid) IS 'A user as /auth/v1/user answers; null when there is none.';

CREATE FUNCTION gleaner.site_of(p_url text) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    select case when m[2] !~ '\{\{' then
        lower(case when m[2] ~ ':\d+$' then m[2] when lower(m[1]) = 'https' then m[2] || ':443' else m[2] || ':80' end) end
    from regexp_match(p_url, '^(https?)://(?:[^/?#@]*@)?([^/?#]+)', 'i') as m
$_$;

COMMENT ON FUNCTION gleaner.site_of(p_url text) IS 'Host and port of an address.';

CREATE FUNCTION gleaner.snooze_activities(p_id uuid, p_lease bigint, p_until timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_activities(array[p_id], array[p_lease], p_until);
$$;

ALTER FUNCTION gleaner.snooze_activities(p_id uuid, p_lease bigint, p_until timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.snooze_activities(p_id uuid, p_lease bigint, p_until timestamp with time zone) IS 'Puts the work off until a time, without burning an attempt.';

CREATE FUNCTION gleaner.snooze_dumps(p_id uuid, p_lease bigint, p_until timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_dumps(array[p_id], array[p_lease], p_until);
$$;

ALTER FUNCTION gleaner.snooze_dumps(p_id uuid, p_lease bigint, p_until timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.snooze_dumps(p_id uuid, p_lease bigint, p_until timestamp with time zone) IS 'Puts the work off until a time, without burning an attempt.';

CREATE FUNCTION gleaner.snooze_followups(p_id uuid, p_lease bigint, p_until timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_followups(array[p_id], array[p_lease], p_until);
$$;

ALTER FUNCTION gleaner.snooze_followups(p_id uuid, p_lease bigint, p_until timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.snooze_followups(p_id uuid, p_lease bigint, p_until timestamp with time zone) IS 'Puts the work off until a time, without burning an attempt.';

CREATE FUNCTION gleaner.snooze_jobs(p_id bigint, p_lease bigint, p_until timestamp with time zone) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_jobs(array[p_id], array[p_lease], p_until);
$$;

ALTER FUNCTION gleaner.snooze_jobs(p_id bigint, p_lease bigint, p_until timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.snooze_jobs(p_id bigint, p_lease bigint, p_until timestamp with time zone) IS 'Puts the work off until a time, without burning an attempt.';

CREATE FUNCTION gleaner.snooze_polls(p_id uuid, p_lease bigint, p_until timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_polls(array[p_id], array[p_lease], p_until);
$$;

ALTER FUNCTION gleaner.snooze_polls(p_id uuid, p_lease bigint, p_until timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.snooze_polls(p_id uuid, p_lease bigint, p_until timestamp with time zone) IS 'Puts the work off until a time, without burning an attempt.';

CREATE FUNCTION gleaner.snooze_runs(p_id uuid, p_lease bigint, p_until timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_runs(array[p_id], array[p_lease], p_until);
$$;

ALTER FUNCTION gleaner.snooze_runs(p_id uuid, p_lease bigint, p_until timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.snooze_runs(p_id uuid, p_lease bigint, p_until timestamp with time zone) IS 'Puts the work off until a time, without burning an attempt.';

CREATE FUNCTION gleaner.snooze_schedules(p_id uuid, p_lease bigint, p_until timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET jit TO 'off'
    AS $$
    select * from gleaner.put_back_schedules(array[p_id], array[p_lease], p_until);
$$;

ALTER FUNCTION gleaner.snooze_schedules(p_id uuid, p_lease bigint, p_until timestamp with time zone) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.snooze_schedules(p_id uuid, p_lease bigint, p_until timestamp with time zone) IS 'Puts the work off until a time, without burning an attempt.';

CREATE FUNCTION gleaner.split_name(p_name text, p_address text, OUT first_name text, OUT last_name text) RETURNS record
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    v_name text := nullif(btrim(regexp_replace(left(p_name, 200), '[\s"]+', ' ', 'g')), '');
begin
    if v_name is null or position('@' in v_name) > 0 or lower(v_name) = p_address then
        first_name := split_part(p_address, '@', 1);
        last_name := '';
    elsif v_name ~ '^[^,]+,[^,]+$' then
        first_name := btrim(split_part(v_name, ',', 2));
        last_name := btrim(split_part(v_name, ',', 1));
    else
        first_name := split_part(v_name, ' ', 1);
        last_name := btrim(substr(v_name, length(first_name) + 1));
    end if;
end
$_$;

COMMENT ON FUNCTION gleaner.split_name(p_name text, p_address text, OUT first_name text, OUT last_name text) IS 'First and last name of a sender, from what they call themselves or from their address.';

CREATE FUNCTION gleaner.start_activities(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[]; v_leases bigint[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    with changed as (
        update public.activities as q
        set started = greatest(q.started, 1)
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where q.id = any (array[u.id]) and q.lease = u.lease and q.processing_status in ('processing') and (v_trusted or q.session = v_session)
        returning q.id as id, q.lease as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    return query select d, 'done', ('processing')::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
        select u.id, case when q.id is null and gleaner.is_trusted() then 'gone' else 'lost' end,
               case when (v_trusted or q.session = v_session) then q.processing_status::text end
        from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
        left join public.activities as q on q.id = any (array[u.id]);
    end if;
end
$$;

ALTER FUNCTION gleaner.start_activities(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.start_activities(p_ids uuid[], p_leases bigint[]) IS 'Marks claimed rows as begun, for agents that prefetch: from here on a lost lease counts against the row.';

CREATE FUNCTION gleaner.start_dumps(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[]; v_leases bigint[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    with changed as (
        update public.agent_processing_queue as q
        set started = greatest(q.started, 1),
            processing_state = 'processing'::public.processing_state
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where q.id = any (array[u.id]) and q.lease = u.lease and q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and (v_trusted or q.session = v_session)
        returning q.id as id, q.lease as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    return query select d, 'done', ('processing'::public.processing_state)::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
        select u.id, case when q.id is null and gleaner.is_trusted() then 'gone' else 'lost' end,
               case when (v_trusted or q.session = v_session) then q.processing_state::text end
        from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
        left join public.agent_processing_queue as q on q.id = any (array[u.id]);
    end if;
end
$$;

ALTER FUNCTION gleaner.start_dumps(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.start_dumps(p_ids uuid[], p_leases bigint[]) IS 'Marks claimed rows as begun, for agents that prefetch: from here on a lost lease counts against the row.';

CREATE FUNCTION gleaner.start_followups(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[]; v_leases bigint[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    with changed as (
        update public.scheduled_actions as q
        set started = greatest(q.started, 1)
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where q.id = any (array[u.id]) and q.lease = u.lease and q.status in ('processing') and (v_trusted or q.session = v_session)
        returning q.id as id, q.lease as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    return query select d, 'done', ('processing')::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
        select u.id, case when q.id is null and gleaner.is_trusted() then 'gone' else 'lost' end,
               case when (v_trusted or q.session = v_session) then q.status::text end
        from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
        left join public.scheduled_actions as q on q.id = any (array[u.id]);
    end if;
end
$$;

ALTER FUNCTION gleaner.start_followups(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.start_followups(p_ids uuid[], p_leases bigint[]) IS 'Marks claimed rows as begun, for agents that prefetch: from here on a lost lease counts against the row.';

CREATE FUNCTION gleaner.start_in_batch_jobs(p_ids bigint[], p_leases bigint[]) RETURNS TABLE(id bigint, lease bigint)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_batch   gleaner.batch_lease;
    v_of      bigint[];
begin
    for v_batch in
        select b.* from gleaner.batch_lease as b
        where b.queue = 'jobs' and b.id = any (array(select distinct -l from unnest(p_leases) as l where l < 0)) and (v_trusted or b.session = v_session)
        order by b.id
        for update
    loop
        v_of := array(
            select u.id from unnest(p_ids, p_leases) as u (id, lease)
            join gleaner.jobs as q on q.id = any (array[u.id])
            where u.lease = -v_batch.id and v_batch.keys @> u.id and q.lease = v_batch.mark and q.status = 'ready');
        update gleaner.batch_lease as b set begun = b.begun + (select range_agg(int8range(i, i, '[]')) from unnest(v_of) as i)
        where b.id = v_batch.id and cardinality(v_of) > 0;
        return query select i, -v_batch.id from unnest(v_of) as i;
    end loop;
end
$$;

ALTER FUNCTION gleaner.start_in_batch_jobs(p_ids bigint[], p_leases bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.start_jobs(p_ids bigint[], p_leases bigint[]) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    bigint[]; v_leases bigint[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    with changed as (
        update gleaner.jobs as q
        set started = greatest(q.started, 1)
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where q.id = any (array[u.id]) and q.lease = u.lease and q.status in ('running') and (v_trusted or q.session = v_session)
        returning q.id as id, q.lease as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    select v_done || coalesce(array_agg(b.id), '{}'), v_leases || coalesce(array_agg(b.lease), '{}') into v_done, v_leases
    from gleaner.start_in_batch_jobs(p_ids, p_leases) as b;
    return query select d, 'done', ('running')::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
        select u.id, case when q.id is null and gleaner.is_trusted() then 'gone' else 'lost' end,
               case when (v_trusted or q.session = v_session) then (gleaner.as_held_jobs(q)).status::text end
        from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
        left join gleaner.jobs as q on q.id = any (array[u.id]);
    end if;
end
$$;

ALTER FUNCTION gleaner.start_jobs(p_ids bigint[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.start_jobs(p_ids bigint[], p_leases bigint[]) IS 'Marks claimed rows as begun, for agents that prefetch: from here on a lost lease counts against the row.';

CREATE FUNCTION gleaner.start_polls(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[]; v_leases bigint[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    with changed as (
        update gleaner.polls as q
        set started = greatest(q.started, 1)
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where q.provider_id = any (array[u.id]) and q.lease = u.lease and q.status in ('running') and (v_trusted or q.session = v_session)
        returning q.provider_id as id, q.lease as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    return query select d, 'done', ('running')::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
        select u.id, case when q.provider_id is null and gleaner.is_trusted() then 'gone' else 'lost' end,
               case when (v_trusted or q.session = v_session) then q.status::text end
        from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
        left join gleaner.polls as q on q.provider_id = any (array[u.id]);
    end if;
end
$$;

ALTER FUNCTION gleaner.start_polls(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.start_polls(p_ids uuid[], p_leases bigint[]) IS 'Marks claimed rows as begun, for agents that prefetch: from here on a lost lease counts against the row.';

CREATE FUNCTION gleaner.start_runs(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[]; v_leases bigint[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    with changed as (
        update public.execution_jobs as q
        set started = greatest(q.started, 1)
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where q.id = any (array[u.id]) and q.lease = u.lease and q.status in ('running') and (v_trusted or q.session = v_session)
        returning q.id as id, q.lease as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    return query select d, 'done', ('running')::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
        select u.id, case when q.id is null and gleaner.is_trusted() then 'gone' else 'lost' end,
               case when (v_trusted or q.session = v_session) then q.status::text end
        from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
        left join public.execution_jobs as q on q.id = any (array[u.id]);
    end if;
end
$$;

ALTER FUNCTION gleaner.start_runs(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.start_runs(p_ids uuid[], p_leases bigint[]) IS 'Marks claimed rows as begun, for agents that prefetch: from here on a lost lease counts against the row.';

CREATE FUNCTION gleaner.start_schedules(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[]; v_leases bigint[];
begin
    if pg_trigger_depth() > 0 then perform set_config('vacuum_cost_page_hit', pg_trigger_depth()::text, true); end if;
    perform gleaner.check_leases(p_ids, p_leases);
    with changed as (
        update public.followup_schedules as q
        set started = greatest(q.started, 1)
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where q.id = any (array[u.id]) and q.lease = u.lease and q.status in ('working') and (v_trusted or q.session = v_session)
        returning q.id as id, q.lease as lease
    )
    select coalesce(array_agg(changed.id), '{}'), coalesce(array_agg(changed.lease), '{}') into v_done, v_leases from changed;
    return query select d, 'done', ('working')::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
        select u.id, case when q.id is null and gleaner.is_trusted() then 'gone' else 'lost' end,
               case when (v_trusted or q.session = v_session) then q.status::text end
        from (select * from unnest(p_ids, p_leases) except select * from unnest(v_done, v_leases)) as u (id, lease)
        left join public.followup_schedules as q on q.id = any (array[u.id]);
    end if;
end
$$;

ALTER FUNCTION gleaner.start_schedules(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.start_schedules(p_ids uuid[], p_leases bigint[]) IS 'Marks claimed rows as begun, for agents that prefetch: from here on a lost lease counts against the row.';

CREATE FUNCTION gleaner.state_activities(p_row public.activities, p_now timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select case
        when p_row.processing_status in ('processing') then 'running'
        when p_row.processing_status = 'completed' then 'done'
        when (p_row.processing_status = 'failed' and p_row.due_at is null) then 'dead'
        when p_row.processing_status = 'cancelled' then 'cancelled'
        when p_row.processing_status not in ('raw', 'processing', 'failed') then 'other'
        when p_row.due_at is null then 'unfilled'
        when p_row.processing_status = 'failed' then 'backing off'
        when p_row.due_at > p_now then 'scheduled'
        else 'ready'
    end;
$$;

ALTER FUNCTION gleaner.state_activities(p_row public.activities, p_now timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.state_dumps(p_row public.agent_processing_queue, p_now timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select case
        when p_row.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) then 'running'
        when p_row.processing_state = 'completed'::public.processing_state then 'done'
        when (p_row.processing_state = 'failed'::public.processing_state and p_row.due_at is null) then 'dead'
        when p_row.processing_state = 'cancelled'::public.processing_state then 'cancelled'
        when p_row.processing_state not in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) then 'other'
        when p_row.due_at is null then 'unfilled'
        when p_row.processing_state = 'failed'::public.processing_state then 'backing off'
        when p_row.due_at > p_now then 'scheduled'
        else 'ready'
    end;
$$;

ALTER FUNCTION gleaner.state_dumps(p_row public.agent_processing_queue, p_now timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.state_followups(p_row public.scheduled_actions, p_now timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select case
        when p_row.status in ('processing') then 'running'
        when p_row.status = 'executed' then 'done'
        when (p_row.status = 'failed' and p_row.due_at is null) then 'dead'
        when p_row.status = 'cancelled' then 'cancelled'
        when p_row.status not in ('pending', 'processing', 'failed') then 'other'
        when p_row.due_at is null then 'unfilled'
        when p_row.status = 'failed' then 'backing off'
        when p_row.due_at > p_now then 'scheduled'
        else 'ready'
    end;
$$;

ALTER FUNCTION gleaner.state_followups(p_row public.scheduled_actions, p_now timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.state_jobs(p_row gleaner.jobs, p_now timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select case
        when p_row.status in ('running') then 'running'
        when p_row.status = 'done' then 'done'
        when (p_row.status = 'failed' and p_row.due_at is null) then 'dead'
        when p_row.status = 'cancelled' then 'cancelled'
        when p_row.status not in ('ready', 'running', 'failed') then 'other'
        when p_row.due_at is null then 'unfilled'
        when p_row.status = 'failed' then 'backing off'
        when p_row.due_at > p_now then 'scheduled'
        else 'ready'
    end;
$$;

ALTER FUNCTION gleaner.state_jobs(p_row gleaner.jobs, p_now timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.state_polls(p_row gleaner.polls, p_now timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select case
        when p_row.status in ('running') then 'running'
        when p_row.status = 'done' then 'done'
        when (p_row.status = 'failed' and p_row.due_at is null) then 'dead'
        when p_row.status not in ('ready', 'running', 'failed') then 'other'
        when p_row.due_at is null then 'unfilled'
        when p_row.status = 'failed' then 'backing off'
        when p_row.due_at > p_now then 'scheduled'
        else 'ready'
    end;
$$;

ALTER FUNCTION gleaner.state_polls(p_row gleaner.polls, p_now timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.state_runs(p_row public.execution_jobs, p_now timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select case
        when p_row.status in ('running') then 'running'
        when p_row.status = 'completed' then 'done'
        when (p_row.status = 'failed' and p_row.due_at is null) then 'dead'
        when p_row.status = 'cancelled' then 'cancelled'
        when p_row.status not in ('queued', 'running', 'failed') then 'other'
        when p_row.due_at is null then 'unfilled'
        when p_row.status = 'failed' then 'backing off'
        when p_row.due_at > p_now then 'scheduled'
        else 'ready'
    end;
$$;

ALTER FUNCTION gleaner.state_runs(p_row public.execution_jobs, p_now timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.state_schedules(p_row public.followup_schedules, p_now timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select case
        when p_row.status in ('working') then 'running'
        when p_row.status = 'ended' then 'done'
        when (p_row.status = 'failed' and p_row.due_at is null) then 'dead'
        when p_row.status = 'paused' then 'cancelled'
        when p_row.status not in ('active', 'working', 'failed') then 'other'
        when p_row.due_at is null then 'unfilled'
        when p_row.status = 'failed' then 'backing off'
        when p_row.due_at > p_now then 'scheduled'
        else 'ready'
    end;
$$;

ALTER FUNCTION gleaner.state_schedules(p_row public.followup_schedules, p_now timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.stats_activities() RETURNS TABLE(state text, count bigint, capped boolean, oldest timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now       timestamptz := clock_timestamp();
    v_estimated bigint := gleaner.estimate_rows('public.activities');
begin
    perform gleaner.operates('activities', array['service_role'], array['authenticated']);
    return query
    with standing as materialized (
        select case when q.processing_status in ('processing') and q.due_at < v_now then 'expired' else gleaner.state_activities(q, v_now) end as state, q.due_at as at
        from (select q.* from public.activities as q where q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and q.sales_id is not null union all select q.* from public.activities as q where q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and q.sales_id is null) as q limit 10001
    ), dead as materialized (
        select count(*) as n from (select from public.activities as q where q.processing_status = 'failed' and q.due_at is null limit 10001) as d)
    select s.state, count(*), false, min(s.at) from standing as s group by s.state
    union all
    select 'waiting', count(*), true, null from standing having count(*) > 10000
    union all
    select 'dead', d.n, d.n > 10000, null from dead as d
    union all
    select 'finished', case when v_estimated is null then (select count(*) from public.activities as q where q.processing_status in ('completed', 'cancelled'))
                            else greatest(v_estimated - (select count(*) from standing) - d.n, 0) end, v_estimated is not null, null
    from dead as d;
end
$$;

ALTER FUNCTION gleaner.stats_activities() OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.stats_activities() IS 'How many rows are in which state, and since when the oldest waits. Counts stop at ten thousand, or are estimates (`capped`).';

CREATE FUNCTION gleaner.stats_dumps() RETURNS TABLE(state text, count bigint, capped boolean, oldest timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now       timestamptz := clock_timestamp();
    v_estimated bigint := gleaner.estimate_rows('public.agent_processing_queue');
begin
    perform gleaner.operates('dumps', array['service_role'], '{}');
    return query
    with standing as materialized (
        select case when q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and q.due_at < v_now then 'expired' else gleaner.state_dumps(q, v_now) end as state, q.due_at as at
        from (select q.* from public.agent_processing_queue as q where q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null) as q limit 10001
    ), dead as materialized (
        select count(*) as n from (select from public.agent_processing_queue as q where q.processing_state = 'failed'::public.processing_state and q.due_at is null limit 10001) as d)
    select s.state, count(*), false, min(s.at) from standing as s group by s.state
    union all
    select 'waiting', count(*), true, null from standing having count(*) > 10000
    union all
    select 'dead', d.n, d.n > 10000, null from dead as d
    union all
    select 'finished', case when v_estimated is null then (select count(*) from public.agent_processing_queue as q where q.processing_state in ('completed'::public.processing_state, 'cancelled'::public.processing_state))
                            else greatest(v_estimated - (select count(*) from standing) - d.n, 0) end, v_estimated is not null, null
    from dead as d;
end
$$;

ALTER FUNCTION gleaner.stats_dumps() OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.stats_dumps() IS 'How many rows are in which state, and since when the oldest waits. Counts stop at ten thousand, or are estimates (`capped`).';

CREATE FUNCTION gleaner.stats_followups() RETURNS TABLE(state text, count bigint, capped boolean, oldest timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now       timestamptz := clock_timestamp();
    v_estimated bigint := gleaner.estimate_rows('public.scheduled_actions');
begin
    perform gleaner.operates('followups', array['service_role'], array['authenticated']);
    return query
    with standing as materialized (
        select case when q.status in ('processing') and q.due_at < v_now then 'expired' else gleaner.state_followups(q, v_now) end as state, q.due_at as at
        from (select q.* from public.scheduled_actions as q where q.status in ('pending', 'processing', 'failed') and q.due_at is not null) as q limit 10001
    ), dead as materialized (
        select count(*) as n from (select from public.scheduled_actions as q where q.status = 'failed' and q.due_at is null limit 10001) as d)
    select s.state, count(*), false, min(s.at) from standing as s group by s.state
    union all
    select 'waiting', count(*), true, null from standing having count(*) > 10000
    union all
    select 'dead', d.n, d.n > 10000, null from dead as d
    union all
    select 'finished', case when v_estimated is null then (select count(*) from public.scheduled_actions as q where q.status in ('executed', 'cancelled'))
                            else greatest(v_estimated - (select count(*) from standing) - d.n, 0) end, v_estimated is not null, null
    from dead as d;
end
$$;

ALTER FUNCTION gleaner.stats_followups() OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.stats_followups() IS 'How many rows are in which state, and since when the oldest waits. Counts stop at ten thousand, or are estimates (`capped`).';

CREATE FUNCTION gleaner.stats_jobs() RETURNS TABLE(state text, count bigint, capped boolean, oldest timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now       timestamptz := clock_timestamp();
    v_estimated bigint := gleaner.estimate_rows('gleaner.jobs');
    v_batches   int8multirange := gleaner.batch_keys('jobs');
begin
    perform gleaner.operates('jobs', array['service_role'], '{}');
    return query
    with standing as materialized (
        select case when q.status in ('running') and q.due_at < v_now then 'expired'
                    when q.lease in (0, -1) and v_batches @> q.id then 'running' else gleaner.state_jobs(q, v_now) end as state, q.due_at as at
        from (select q.* from gleaner.jobs as q where q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null union all
                select q.* from unnest(gleaner.range_keys('jobs') + gleaner.batch_keys('jobs')) as r cross join lateral (
                    select q.* from gleaner.jobs as q where q.id >= lower(r) and q.id < upper(r) order by q.id offset 0
                ) as q
                where q.lease = -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null) as q limit 10001
    ), dead as materialized (
        select count(*) as n from (select from gleaner.jobs as q where q.status = 'failed' and q.due_at is null limit 10001) as d)
    select s.state, count(*), false, min(s.at) from standing as s group by s.state
    union all
    select 'waiting', count(*), true, null from standing having count(*) > 10000
    union all
    select 'dead', d.n, d.n > 10000, null from dead as d
    union all
    select 'finished', case when v_estimated is null then (select count(*) from gleaner.jobs as q where q.status in ('done', 'cancelled'))
                            else greatest(v_estimated - (select count(*) from standing) - d.n, 0) end, v_estimated is not null, null
    from dead as d;
end
$$;

ALTER FUNCTION gleaner.stats_jobs() OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.stats_jobs() IS 'How many rows are in which state, and since when the oldest waits. Counts stop at ten thousand, or are estimates (`capped`).';

CREATE FUNCTION gleaner.stats_polls() RETURNS TABLE(state text, count bigint, capped boolean, oldest timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now       timestamptz := clock_timestamp();
    v_estimated bigint := gleaner.estimate_rows('gleaner.polls');
begin
    perform gleaner.operates('polls', array['service_role'], '{}');
    return query
    with standing as materialized (
        select case when q.status in ('running') and q.due_at < v_now then 'expired' else gleaner.state_polls(q, v_now) end as state, q.due_at as at
        from (select q.* from gleaner.polls as q where q.status in ('ready', 'running', 'failed') and q.due_at is not null) as q limit 10001
    ), dead as materialized (
        select count(*) as n from (select from gleaner.polls as q where q.status = 'failed' and q.due_at is null limit 10001) as d)
    select s.state, count(*), false, min(s.at) from standing as s group by s.state
    union all
    select 'waiting', count(*), true, null from standing having count(*) > 10000
    union all
    select 'dead', d.n, d.n > 10000, null from dead as d
    union all
    select 'finished', case when v_estimated is null then (select count(*) from gleaner.polls as q where q.status in ('done'))
                            else greatest(v_estimated - (select count(*) from standing) - d.n, 0) end, v_estimated is not null, null
    from dead as d;
end
$$;

ALTER FUNCTION gleaner.stats_polls() OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.stats_polls() IS 'How many rows are in which state, and since when the oldest waits. Counts stop at ten thousand, or are estimates (`capped`).';

CREATE FUNCTION gleaner.stats_runs() RETURNS TABLE(state text, count bigint, capped boolean, oldest timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now       timestamptz := clock_timestamp();
    v_estimated bigint := gleaner.estimate_rows('public.execution_jobs');
begin
    perform gleaner.operates('runs', array['service_role'], array['authenticated']);
    return query
    with standing as materialized (
        select case when q.status in ('running') and q.due_at < v_now then 'expired' else gleaner.state_runs(q, v_now) end as state, q.due_at as at
        from (select q.* from public.execution_jobs as q where q.status in ('queued', 'running', 'failed') and q.due_at is not null) as q limit 10001
    ), dead as materialized (
        select count(*) as n from (select from public.execution_jobs as q where q.status = 'failed' and q.due_at is null limit 10001) as d)
    select s.state, count(*), false, min(s.at) from standing as s group by s.state
    union all
    select 'waiting', count(*), true, null from standing having count(*) > 10000
    union all
    select 'dead', d.n, d.n > 10000, null from dead as d
    union all
    select 'finished', case when v_estimated is null then (select count(*) from public.execution_jobs as q where q.status in ('completed', 'cancelled'))
                            else greatest(v_estimated - (select count(*) from standing) - d.n, 0) end, v_estimated is not null, null
    from dead as d;
end
$$;

ALTER FUNCTION gleaner.stats_runs() OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.stats_runs() IS 'How many rows are in which state, and since when the oldest waits. Counts stop at ten thousand, or are estimates (`capped`).';

CREATE FUNCTION gleaner.stats_schedules() RETURNS TABLE(state text, count bigint, capped boolean, oldest timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now       timestamptz := clock_timestamp();
    v_estimated bigint := gleaner.estimate_rows('public.followup_schedules');
begin
    perform gleaner.operates('schedules', array['service_role'], array['authenticated']);
    return query
    with standing as materialized (
        select case when q.status in ('working') and q.due_at < v_now then 'expired' else gleaner.state_schedules(q, v_now) end as state, q.due_at as at
        from (select q.* from public.followup_schedules as q where q.status in ('active', 'working', 'failed') and q.due_at is not null) as q limit 10001
    ), dead as materialized (
        select count(*) as n from (select from public.followup_schedules as q where q.status = 'failed' and q.due_at is null limit 10001) as d)
    select s.state, count(*), false, min(s.at) from standing as s group by s.state
    union all
    select 'waiting', count(*), true, null from standing having count(*) > 10000
    union all
    select 'dead', d.n, d.n > 10000, null from dead as d
    union all
    select 'finished', case when v_estimated is null then (select count(*) from public.followup_schedules as q where q.status in ('ended', 'paused'))
                            else greatest(v_estimated - (select count(*) from standing) - d.n, 0) end, v_estimated is not null, null
    from dead as d;
end
$$;

ALTER FUNCTION gleaner.stats_schedules() OWNER TO gleaner_engine;

COMMENT ON FUNCTION gleaner.stats_schedules() IS 'How many rows are in which state, and since when the oldest waits. Counts stop at ten thousand, or are estimates (`capped`).';

CREATE FUNCTION gleaner.store_artefact(p_request jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_run  uuid := (p_request ->> 'run')::uuid;
    v_size bigint := (p_request ->> 'size')::bigint;
    v_kept record;
begin
    -- One at a time for each run, and not beside a cancel.
    perform from public.execution_jobs as r
    where r.id = v_run and r.status = 'running' and r.lease = (p_request ->> 'lease')::bigint for no key update;
    if not found then
        return '{"outcome": "lost"}';
    end if;
    select count(*) as files, coalesce(sum(a.size), 0) as bytes into v_kept from public.run_artefacts as a where a.run_id = v_run;
    if v_kept.files >= 1000 or v_kept.bytes + v_size > 100000000 then
        return '{"outcome": "full"}';
    end if;
    delete from public.run_artefacts as a
    where a.run_id = v_run and a.row_number = (p_request ->> 'row')::integer and a.step = (p_request ->> 'step')::integer
      and a.name = p_request ->> 'name';
    insert into public.run_artefacts (id, run_id, row_number, step, name, media_type, size, sha256, expires_at)
    values ((p_request ->> 'id')::uuid, v_run, (p_request ->> 'row')::integer, (p_request ->> 'step')::integer, p_request ->> 'name',
            p_request ->> 'media_type', v_size, p_request ->> 'sha256',
            now() + make_interval(days => least(coalesce((p_request ->> 'keep_days')::integer, 30), 3650)));
    return '{"outcome": "stored"}';
end
$$;

COMMENT ON FUNCTION gleaner.store_artefact(p_request jsonb) IS 'Keeps a picture of a run that the caller holds.';

CREATE FUNCTION gleaner.store_blocks(p_basket_id uuid, p_dump_id uuid, p_blocks jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_ids uuid[];
begin
    select array_agg(public.fn_block_create(p_basket_id, b.title, b.content, b.semantic_type, b.confidence, p_dump_id)) into v_ids
    from (
        select distinct on (given.block ->> 'semantic_type', given.block ->> 'title', given.block ->> 'content')
               left(given.block ->> 'title', 300) as title,
               coalesce(given.block ->> 'content', '') as content,
               coalesce(given.block ->> 'semantic_type', 'insight') as semantic_type,
               case when jsonb_typeof(given.block -> 'confidence') = 'number'
                    then least(greatest((given.block ->> 'confidence')::numeric, 0), 1) end as confidence
        from jsonb_array_elements(p_blocks) as given (block)
        where btrim(given.block ->> 'title') <> ''
    ) as b;
    delete from public.blocks as b where b.dump_id = p_dump_id and b.id <> all (coalesce(v_ids, '{}'));
end
$$;

COMMENT ON FUNCTION gleaner.store_blocks(p_basket_id uuid, p_dump_id uuid, p_blocks jsonb) IS 'Makes the blocks of a dump those of the list.';

CREATE FUNCTION gleaner.store_context_items(p_basket_id uuid, p_dump_id uuid, p_items jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_items jsonb;
begin
    select coalesce(jsonb_agg(given.item || jsonb_build_object('label', left(given.item ->> 'label', 300))), '[]') into v_items
    from jsonb_array_elements(p_items) as given (item)
    where btrim(given.item ->> 'kind') <> '' and btrim(given.item ->> 'label') <> '';
    perform public.fn_context_item_upsert_bulk(p_basket_id, v_items, p_dump_id);
    -- The trigger forget_context_items deletes those that no dump mentions any more.
    delete from public.context_item_sources as s
    where s.dump_id = p_dump_id
      and s.context_item_id <> all (array(select known.id from gleaner.match_context_items(p_basket_id, v_items) as known));
end
$$;

COMMENT ON FUNCTION gleaner.store_context_items(p_basket_id uuid, p_dump_id uuid, p_items jsonb) IS 'Makes the entities that a dump mentions those of the list.';

CREATE FUNCTION gleaner.store_relationships(p_basket_id uuid, p_dump_id uuid, p_edges jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_edges jsonb;
begin
    with thing as (
        select distinct on (same, type) t.type, t.same, t.id
        from (
            select 'block' as type, gleaner.same_label(b.title) as same, b.id, b.semantic_type as kind
            from public.blocks as b where b.dump_id = p_dump_id
            union all
            select 'context_item', gleaner.same_label(c.label), c.id, c.kind
            from public.context_item_sources as s join public.context_items as c on c.id = s.context_item_id
            where s.dump_id = p_dump_id
        ) as t
        order by same, type, t.kind, t.id
    )
    select coalesce(jsonb_agg(jsonb_build_object(
               'from_type', f.type, 'from_id', f.id, 'to_type', t.type, 'to_id', t.id,
               'relationship_type', coalesce(nullif(btrim(given.edge ->> 'relationship_type'), ''), 'links_to'),
               'strength', case when jsonb_typeof(given.edge -> 'strength') = 'number'
                                then least(greatest((given.edge ->> 'strength')::numeric, 0), 1) end,
               'description', given.edge ->> 'description')), '[]') into v_edges
    from jsonb_array_elements(p_edges) as given (edge)
    join thing as f on f.same = gleaner.same_label(given.edge ->> 'from') and f.type = given.edge ->> 'from_type'
    join thing as t on t.same = gleaner.same_label(given.edge ->> 'to') and t.type = given.edge ->> 'to_type'
    where f.id <> t.id;
    perform public.fn_relationship_upsert_bulk(p_basket_id, v_edges, p_dump_id);
    delete from public.substrate_relationships as r
    where r.dump_id = p_dump_id
      and not exists (
          select from jsonb_to_recordset(v_edges) as e (from_id uuid, to_id uuid, relationship_type text)
          where e.from_id = r.from_id and e.to_id = r.to_id and e.relationship_type = r.relationship_type);
end
$$;

COMMENT ON FUNCTION gleaner.store_relationships(p_basket_id uuid, p_dump_id uuid, p_edges jsonb) IS 'Makes the connections found in a dump those of the list.';

CREATE FUNCTION gleaner.store_substrate() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_before  jsonb := case when jsonb_typeof(old.result) = 'object' then old.result else '{}' end;
    v_result  jsonb := case when jsonb_typeof(new.result) = 'object' then new.result else '{}' end;
    v_blocks  bigint; v_items bigint; v_edges bigint;
begin
    -- The text of a file becomes the dump's own, for people and for the next agent, and is not kept twice.
    if jsonb_typeof(v_result -> 'transcript') = 'string' then
        update public.raw_dumps as d
        set body_md = v_result ->> 'transcript'
        where d.id = new.dump_id and d.file_sha256 is not null and d.body_md = '';
        if exists (select from public.raw_dumps as d where d.id = new.dump_id and d.file_sha256 is not null and d.body_md = v_result ->> 'transcript') then
            new.result := v_result - 'transcript';
            v_result := new.result;
        end if;
    end if;
    if jsonb_typeof(v_result -> 'blocks') = 'array' and v_result -> 'blocks' is distinct from v_before -> 'blocks' then
        perform gleaner.store_blocks(new.basket_id, new.dump_id, v_result -> 'blocks');
    end if;
    if jsonb_typeof(v_result -> 'context_items') = 'array' and v_result -> 'context_items' is distinct from v_before -> 'context_items' then
        perform gleaner.store_context_items(new.basket_id, new.dump_id, v_result -> 'context_items');
    end if;
    if jsonb_typeof(v_result -> 'relationships') = 'array' and v_result -> 'relationships' is distinct from v_before -> 'relationships' then
        perform gleaner.store_relationships(new.basket_id, new.dump_id, v_result -> 'relationships');
    end if;
    select count(*) into v_blocks from public.blocks as b where b.dump_id = new.dump_id;
    select count(*) into v_items from public.context_item_sources as s where s.dump_id = new.dump_id;
    select count(*) into v_edges from public.substrate_relationships as r where r.dump_id = new.dump_id;
    -- A worker that stores things without naming the dump is not contradicted by zeros.
    if v_blocks + v_items + v_edges > 0 or v_result ?| array['blocks', 'context_items', 'relationships'] then
        new.result := v_result || jsonb_build_object(
            'counts', jsonb_build_object('insights', v_blocks, 'entities', v_items, 'connections', v_edges),
            'message', format('%s %s, %s %s, %s %s',
                v_blocks, case v_blocks when 1 then 'insight' else 'insights' end,
                v_items, case v_items when 1 then 'entity' else 'entities' end,
                v_edges, case v_edges when 1 then 'connection' else 'connections' end));
    end if;
    if new.processing_state = 'completed' and old.processing_state <> 'completed' then
        new.progress := jsonb_build_object('stage', 'Analysis complete', 'percent', 100, 'at', clock_timestamp());
    end if;
    return new;
end
$$;

COMMENT ON FUNCTION gleaner.store_substrate() IS 'Stores what a checkpoint of the queue dumps found, in its transaction.';

CREATE FUNCTION gleaner.store_words() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_words tsvector := gleaner.words_of(concat_ws(' ', new.raw_data ->> 'sender', new.sender_address, new.raw_data ->> 'subject', new.processed_data ->> 'summary', new.raw_data ->> 'content'));
begin
    insert into gleaner.activity_words as w (activity_id, created_at, words)
    values (new.id, new.created_at, v_words)
    on conflict (activity_id) do update set created_at = excluded.created_at, words = excluded.words
    where (w.created_at, w.words) is distinct from (excluded.created_at, excluded.words);
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.store_words() IS 'Keeps the words of activities in step with them.';

CREATE FUNCTION gleaner.take_each_activities(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder uuid) RETURNS SETOF public.activities
    LANGUAGE plpgsql
    AS $$
declare
    v_lease  bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_keys   uuid[]; v_count integer; v_rejected integer := 0; v_wait interval; v_reason text;
begin
    for v_i in 0 .. cardinality(p_keys) loop
        -- Where all reject, a claim must still end.
        exit when v_rejected >= 100 or p_most <= 0;
        -- All at once, then each that was not taken.
        continue when case when v_i = 0 then cardinality(p_keys) > p_most else exists (select from public.activities as q where q.id = p_keys[v_i] and q.processing_status = 'processing' and q.lease >= v_lease and q.agent is not distinct from p_agent) end;
        v_keys := case when v_i = 0 then p_keys else p_keys[v_i : v_i] end;
        v_reason := 'a trigger skipped the claim, or set another status';
        begin
            update public.activities as q
            set processing_status = 'processing',
                due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end)), deadline_at = v_now + (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end),
                open_at = case when q.open_at is null then null else greatest(q.open_at, v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end))) end,
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end),
                metadata = case when (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end) = 1 then jsonb_set(coalesce(q.metadata, '{}'), '{recovery_count}', to_jsonb(q.lost + 1)) else q.metadata end,
                started = case when p_started then 1 when q.processing_status in ('processing') and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session,
                locked_by = v_holder,
                locked_at = v_now
            from unnest(v_keys) as k (id) where q.id = any (array[k.id]);
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
            v_reason := sqlerrm;
        end;
        return query select q.* from unnest(v_keys) as k (id) join public.activities as q on q.id = any (array[k.id]) and q.processing_status = 'processing' and q.lease >= v_lease and q.agent is not distinct from p_agent;
        get diagnostics v_count = row_count;
        exit when v_count = cardinality(p_keys);
        p_most := p_most - v_count;
        continue when v_i = 0 or v_count > 0;
        v_rejected := v_rejected + 1;
        v_wait := gleaner.reject_row('activities', '', p_keys[v_i]::text, v_reason);
        begin
            -- The row moves, where it lets itself be moved, so that the next claims need not step over it.
            update public.activities as q set due_at = v_now + v_wait where q.id = p_keys[v_i] and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null;
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
        end;
    end loop;
end
$$;

ALTER FUNCTION gleaner.take_each_activities(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder uuid) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_each_dumps(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder text) RETURNS SETOF public.agent_processing_queue
    LANGUAGE plpgsql
    AS $$
declare
    v_lease  bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_keys   uuid[]; v_count integer; v_rejected integer := 0; v_wait interval; v_reason text;
begin
    for v_i in 0 .. cardinality(p_keys) loop
        -- Where all reject, a claim must still end.
        exit when v_rejected >= 100 or p_most <= 0;
        -- All at once, then each that was not taken.
        continue when case when v_i = 0 then cardinality(p_keys) > p_most else exists (select from public.agent_processing_queue as q where q.id = p_keys[v_i] and q.processing_state = 'claimed'::public.processing_state and q.lease >= v_lease and q.agent is not distinct from p_agent) end;
        v_keys := case when v_i = 0 then p_keys else p_keys[v_i : v_i] end;
        v_reason := 'a trigger skipped the claim, or set another status';
        begin
            update public.agent_processing_queue as q
            set processing_state = 'claimed'::public.processing_state,
                due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '30 minutes'), deadline_at = v_now + interval '30 minutes',
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and q.started >= 1 then 1 else 0 end),
                started = case when p_started then 1 when q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session,
                claimed_by = v_holder,
                claimed_at = v_now
            from unnest(v_keys) as k (id) where q.id = any (array[k.id]);
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
            v_reason := sqlerrm;
        end;
        return query select q.* from unnest(v_keys) as k (id) join public.agent_processing_queue as q on q.id = any (array[k.id]) and q.processing_state = 'claimed'::public.processing_state and q.lease >= v_lease and q.agent is not distinct from p_agent;
        get diagnostics v_count = row_count;
        exit when v_count = cardinality(p_keys);
        p_most := p_most - v_count;
        continue when v_i = 0 or v_count > 0;
        v_rejected := v_rejected + 1;
        v_wait := gleaner.reject_row('dumps', '', p_keys[v_i]::text, v_reason);
        begin
            -- The row moves, where it lets itself be moved, so that the next claims need not step over it.
            update public.agent_processing_queue as q set due_at = v_now + v_wait where q.id = p_keys[v_i] and q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null;
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
        end;
    end loop;
end
$$;

ALTER FUNCTION gleaner.take_each_dumps(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_each_followups(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) RETURNS SETOF public.scheduled_actions
    LANGUAGE plpgsql
    AS $$
declare
    v_lease  bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_keys   uuid[]; v_count integer; v_rejected integer := 0; v_wait interval; v_reason text;
begin
    for v_i in 0 .. cardinality(p_keys) loop
        -- Where all reject, a claim must still end.
        exit when v_rejected >= 100 or p_most <= 0;
        -- All at once, then each that was not taken.
        continue when case when v_i = 0 then cardinality(p_keys) > p_most else exists (select from public.scheduled_actions as q where q.id = p_keys[v_i] and q.status = 'processing' and q.lease >= v_lease and q.agent is not distinct from p_agent) end;
        v_keys := case when v_i = 0 then p_keys else p_keys[v_i : v_i] end;
        v_reason := 'a trigger skipped the claim, or set another status';
        begin
            update public.scheduled_actions as q
            set status = 'processing',
                due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '15 minutes'), deadline_at = v_now + interval '15 minutes',
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.status in ('processing') and q.started >= 1 then 1 else 0 end),
                started = case when p_started then 1 when q.status in ('processing') and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session,
                started_processing_at = v_now
            from unnest(v_keys) as k (id) where q.id = any (array[k.id]);
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
            v_reason := sqlerrm;
        end;
        return query select q.* from unnest(v_keys) as k (id) join public.scheduled_actions as q on q.id = any (array[k.id]) and q.status = 'processing' and q.lease >= v_lease and q.agent is not distinct from p_agent;
        get diagnostics v_count = row_count;
        exit when v_count = cardinality(p_keys);
        p_most := p_most - v_count;
        continue when v_i = 0 or v_count > 0;
        v_rejected := v_rejected + 1;
        v_wait := gleaner.reject_row('followups', '', p_keys[v_i]::text, v_reason);
        begin
            -- The row moves, where it lets itself be moved, so that the next claims need not step over it.
            update public.scheduled_actions as q set due_at = v_now + v_wait where q.id = p_keys[v_i] and q.status in ('pending', 'processing', 'failed') and q.due_at is not null;
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
        end;
    end loop;
end
$$;

ALTER FUNCTION gleaner.take_each_followups(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_each_jobs(p_keys bigint[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) RETURNS SETOF gleaner.jobs
    LANGUAGE plpgsql
    AS $$
declare
    v_lease  bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_keys   bigint[]; v_count integer; v_rejected integer := 0; v_wait interval; v_reason text;
begin
    for v_i in 0 .. cardinality(p_keys) loop
        -- Where all reject, a claim must still end.
        exit when v_rejected >= 100 or p_most <= 0;
        -- All at once, then each that was not taken.
        continue when case when v_i = 0 then cardinality(p_keys) > p_most else exists (select from gleaner.jobs as q where q.id = p_keys[v_i] and q.status = 'running' and q.lease >= v_lease and q.agent is not distinct from p_agent) end;
        v_keys := case when v_i = 0 then p_keys else p_keys[v_i : v_i] end;
        v_reason := 'a trigger skipped the claim, or set another status';
        begin
            update gleaner.jobs as q
            set status = 'running',
                due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '1 hour'), deadline_at = v_now + interval '1 hour',
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                started = case when p_started then 1 when q.status in ('running') and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session
            from unnest(v_keys) as k (id) where q.id = any (array[k.id]);
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
            v_reason := sqlerrm;
        end;
        return query select q.* from unnest(v_keys) as k (id) join gleaner.jobs as q on q.id = any (array[k.id]) and q.status = 'running' and q.lease >= v_lease and q.agent is not distinct from p_agent;
        get diagnostics v_count = row_count;
        exit when v_count = cardinality(p_keys);
        p_most := p_most - v_count;
        continue when v_i = 0 or v_count > 0;
        v_rejected := v_rejected + 1;
        v_wait := gleaner.reject_row('jobs', '', p_keys[v_i]::text, v_reason);
        begin
            -- The row moves, where it lets itself be moved, so that the next claims need not step over it.
            update gleaner.jobs as q set due_at = v_now + v_wait where q.id = p_keys[v_i] and q.status in ('ready', 'running', 'failed') and q.due_at is not null;
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
        end;
    end loop;
end
$$;

ALTER FUNCTION gleaner.take_each_jobs(p_keys bigint[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_each_polls(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) RETURNS SETOF gleaner.polls
    LANGUAGE plpgsql
    AS $$
declare
    v_lease  bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_keys   uuid[]; v_count integer; v_rejected integer := 0; v_wait interval; v_reason text;
begin
    for v_i in 0 .. cardinality(p_keys) loop
        -- Where all reject, a claim must still end.
        exit when v_rejected >= 100 or p_most <= 0;
        -- All at once, then each that was not taken.
        continue when case when v_i = 0 then cardinality(p_keys) > p_most else exists (select from gleaner.polls as q where q.provider_id = p_keys[v_i] and q.status = 'running' and q.lease >= v_lease and q.agent is not distinct from p_agent) end;
        v_keys := case when v_i = 0 then p_keys else p_keys[v_i : v_i] end;
        v_reason := 'a trigger skipped the claim, or set another status';
        begin
            update gleaner.polls as q
            set status = 'running',
                due_at = v_now + least(coalesce(p_hold, interval '2 minutes'), interval '6 hours'), deadline_at = v_now + interval '6 hours',
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                started = case when p_started then 1 when q.status in ('running') and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session
            from unnest(v_keys) as k (id) where q.provider_id = any (array[k.id]);
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
            v_reason := sqlerrm;
        end;
        return query select q.* from unnest(v_keys) as k (id) join gleaner.polls as q on q.provider_id = any (array[k.id]) and q.status = 'running' and q.lease >= v_lease and q.agent is not distinct from p_agent;
        get diagnostics v_count = row_count;
        exit when v_count = cardinality(p_keys);
        p_most := p_most - v_count;
        continue when v_i = 0 or v_count > 0;
        v_rejected := v_rejected + 1;
        v_wait := gleaner.reject_row('polls', '', p_keys[v_i]::text, v_reason);
        begin
            -- The row moves, where it lets itself be moved, so that the next claims need not step over it.
            update gleaner.polls as q set due_at = v_now + v_wait where q.provider_id = p_keys[v_i] and q.status in ('ready', 'running', 'failed') and q.due_at is not null;
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
        end;
    end loop;
end
$$;

ALTER FUNCTION gleaner.take_each_polls(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_each_runs(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder text) RETURNS SETOF public.execution_jobs
    LANGUAGE plpgsql
    AS $$
declare
    v_lease  bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_keys   uuid[]; v_count integer; v_rejected integer := 0; v_wait interval; v_reason text;
begin
    for v_i in 0 .. cardinality(p_keys) loop
        -- Where all reject, a claim must still end.
        exit when v_rejected >= 100 or p_most <= 0;
        -- All at once, then each that was not taken.
        continue when case when v_i = 0 then cardinality(p_keys) > p_most else exists (select from public.execution_jobs as q where q.id = p_keys[v_i] and q.status = 'running' and q.lease >= v_lease and q.agent is not distinct from p_agent) end;
        v_keys := case when v_i = 0 then p_keys else p_keys[v_i : v_i] end;
        v_reason := 'a trigger skipped the claim, or set another status';
        begin
            update public.execution_jobs as q
            set status = 'running',
                due_at = v_now + least(coalesce(p_hold, interval '30 minutes'), interval '2 hours'), deadline_at = v_now + interval '2 hours',
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                started = case when p_started then 1 when q.status in ('running') and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session,
                worker_id = v_holder,
                started_at = v_now
            from unnest(v_keys) as k (id) where q.id = any (array[k.id]);
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
            v_reason := sqlerrm;
        end;
        return query select q.* from unnest(v_keys) as k (id) join public.execution_jobs as q on q.id = any (array[k.id]) and q.status = 'running' and q.lease >= v_lease and q.agent is not distinct from p_agent;
        get diagnostics v_count = row_count;
        exit when v_count = cardinality(p_keys);
        p_most := p_most - v_count;
        continue when v_i = 0 or v_count > 0;
        v_rejected := v_rejected + 1;
        v_wait := gleaner.reject_row('runs', '', p_keys[v_i]::text, v_reason);
        begin
            -- The row moves, where it lets itself be moved, so that the next claims need not step over it.
            update public.execution_jobs as q set due_at = v_now + v_wait where q.id = p_keys[v_i] and q.status in ('queued', 'running', 'failed') and q.due_at is not null;
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
        end;
    end loop;
end
$$;

ALTER FUNCTION gleaner.take_each_runs(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_each_schedules(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) RETURNS SETOF public.followup_schedules
    LANGUAGE plpgsql
    AS $$
declare
    v_lease  bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_keys   uuid[]; v_count integer; v_rejected integer := 0; v_wait interval; v_reason text;
begin
    for v_i in 0 .. cardinality(p_keys) loop
        -- Where all reject, a claim must still end.
        exit when v_rejected >= 100 or p_most <= 0;
        -- All at once, then each that was not taken.
        continue when case when v_i = 0 then cardinality(p_keys) > p_most else exists (select from public.followup_schedules as q where q.id = p_keys[v_i] and q.status = 'working' and q.lease >= v_lease and q.agent is not distinct from p_agent) end;
        v_keys := case when v_i = 0 then p_keys else p_keys[v_i : v_i] end;
        v_reason := 'a trigger skipped the claim, or set another status';
        begin
            update public.followup_schedules as q
            set status = 'working',
                due_at = v_now + least(coalesce(p_hold, interval '1 minute'), interval '10 minutes'), deadline_at = v_now + interval '10 minutes',
                lease = greatest(q.lease + 1, v_lease),
                lost = q.lost + (case when q.status in ('working') and q.started >= 1 then 1 else 0 end),
                started = case when p_started then 1 when q.status in ('working') and q.started <= 0 then greatest(q.started - 1, -15) else 0 end,
                agent = p_agent, session = v_session
            from unnest(v_keys) as k (id) where q.id = any (array[k.id]);
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
            v_reason := sqlerrm;
        end;
        return query select q.* from unnest(v_keys) as k (id) join public.followup_schedules as q on q.id = any (array[k.id]) and q.status = 'working' and q.lease >= v_lease and q.agent is not distinct from p_agent;
        get diagnostics v_count = row_count;
        exit when v_count = cardinality(p_keys);
        p_most := p_most - v_count;
        continue when v_i = 0 or v_count > 0;
        v_rejected := v_rejected + 1;
        v_wait := gleaner.reject_row('schedules', '', p_keys[v_i]::text, v_reason);
        begin
            -- The row moves, where it lets itself be moved, so that the next claims need not step over it.
            update public.followup_schedules as q set due_at = v_now + v_wait where q.id = p_keys[v_i] and q.status in ('active', 'working', 'failed') and q.due_at is not null;
        exception when others then
            perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
        end;
    end loop;
end
$$;

ALTER FUNCTION gleaner.take_each_schedules(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_first_dumps(p_by timestamp with time zone, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder text) RETURNS uuid
    LANGUAGE plpgsql
    AS $$
declare
    v_begun timestamptz := clock_timestamp();
    v_lease bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_key   uuid;
begin
    update public.agent_processing_queue as q
    set processing_state = 'claimed'::public.processing_state,
        due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '30 minutes'), deadline_at = v_now + interval '30 minutes',
        lease = greatest(q.lease + 1, v_lease),
        started = case when p_started then 1 else 0 end,
        agent = p_agent, session = v_session,
        claimed_by = v_holder,
        claimed_at = v_now
    where q.id = (
        select case when q.lost = 0 and q.processing_state in ('pending'::public.processing_state, 'failed'::public.processing_state) then q.id end from public.agent_processing_queue as q
        where q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null
          and q.due_at <= p_by and (q.due_at <= v_now or q.processing_state in ('pending'::public.processing_state, 'failed'::public.processing_state))
          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'dumps' and r.tenant = '' and r.until > v_now)
          and not exists (select from gleaner.pause as p where p.queue = 'dumps')
        order by q.due_at, q.id limit 1 for no key update skip locked)
    returning q.id into v_key;
    if clock_timestamp() - v_begun > interval '3 milliseconds' then
        perform gleaner.write_cursor('gleaner.cursor_dumps', '', null, v_now, clock_timestamp() - v_begun, '{}');
    end if;
    return v_key;
end
$$;

ALTER FUNCTION gleaner.take_first_dumps(p_by timestamp with time zone, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_first_followups(p_by timestamp with time zone, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) RETURNS uuid
    LANGUAGE plpgsql
    AS $$
declare
    v_begun timestamptz := clock_timestamp();
    v_lease bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_key   uuid;
    v_head  record; v_from bigint := -9223372036854775808; v_lane bigint; v_at timestamptz; v_id uuid;
begin
    -- The first row of each lane: one descent of the index, and less work than one statement for all of them.
    for v_n in 1 .. 17 loop
        select (hashtextextended(q.action_type collate "C", 0) & -16) as lane, q.action_type as kind, q.due_at as at, q.id as id into v_head from public.scheduled_actions as q
        where q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) >= v_from
        order by (hashtextextended(q.action_type collate "C", 0) & -16), q.due_at, q.id limit 1;
        exit when not found;
        if v_n > 16 then return null; end if;
        v_from := v_head.lane + 1;
        continue when v_head.at > p_by or v_head.kind <> all (p_kinds);
        if v_lane is null or (v_head.at, v_head.id) < (v_at, v_id) then
            v_lane := v_head.lane; v_at := v_head.at; v_id := v_head.id;
        end if;
    end loop;
    update public.scheduled_actions as q
    set status = 'processing',
        due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '15 minutes'), deadline_at = v_now + interval '15 minutes',
        lease = greatest(q.lease + 1, v_lease),
        started = case when p_started then 1 else 0 end,
        agent = p_agent, session = v_session,
        started_processing_at = v_now
    where q.id = (
        select case when q.lost = 0 and q.status in ('pending', 'failed') then q.id end from public.scheduled_actions as q
        where q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) = v_lane and (p_kinds is null or q.action_type = any (p_kinds))
          and q.due_at <= p_by and (q.due_at <= v_now or q.status in ('pending', 'failed'))
          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'followups' and r.tenant = '' and r.until > v_now)
          and not exists (select from gleaner.pause as p where p.queue = 'followups')
        order by q.due_at, q.id limit 1 for no key update skip locked)
    returning q.id into v_key;
    if clock_timestamp() - v_begun > interval '3 milliseconds' then
        perform gleaner.write_cursor('gleaner.cursor_followups', concat_ws(' ', p_kinds), null, v_now, clock_timestamp() - v_begun, '{}');
    end if;
    return v_key;
end
$$;

ALTER FUNCTION gleaner.take_first_followups(p_by timestamp with time zone, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_first_global_activities(p_by timestamp with time zone, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder uuid) RETURNS uuid
    LANGUAGE plpgsql
    AS $$
declare
    v_begun timestamptz := clock_timestamp();
    v_lease bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_key   uuid;
    v_head  record; v_from bigint := -9223372036854775808; v_lane bigint; v_at timestamptz; v_id uuid;
begin
    -- The first row of each lane: one descent of the index, and less work than one statement for all of them.
    for v_n in 1 .. 17 loop
        select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind, q.due_at as at, q.id as id into v_head from public.activities as q
        where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) >= v_from
        order by (hashtextextended(q.type collate "C", 0) & -16), q.due_at, q.id limit 1;
        exit when not found;
        if v_n > 16 then return null; end if;
        v_from := v_head.lane + 1;
        continue when v_head.at > p_by or v_head.kind <> all (p_kinds);
        if v_lane is null or (v_head.at, v_head.id) < (v_at, v_id) then
            v_lane := v_head.lane; v_at := v_head.at; v_id := v_head.id;
        end if;
    end loop;
    update public.activities as q
    set processing_status = 'processing',
        due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end)), deadline_at = v_now + (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end),
        open_at = case when q.open_at is null then null else greatest(q.open_at, v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end))) end,
        lease = greatest(q.lease + 1, v_lease),
        started = case when p_started then 1 else 0 end,
        agent = p_agent, session = v_session,
        locked_by = v_holder,
        locked_at = v_now
    where q.id = (
        select case when q.lost = 0 and q.processing_status in ('raw', 'failed') then q.id end from public.activities as q
        where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = v_lane and (p_kinds is null or q.type = any (p_kinds))
          and q.due_at <= p_by and (q.due_at <= v_now or q.processing_status in ('raw', 'failed'))
          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'activities' and r.tenant = '' and r.until > v_now)
          and not exists (select from gleaner.pause as p where p.queue = 'activities')
        order by q.due_at, q.id limit 1 for no key update skip locked)
    returning q.id into v_key;
    if clock_timestamp() - v_begun > interval '3 milliseconds' then
        perform gleaner.write_cursor('gleaner.cursor_activities_global', concat_ws(' ', p_kinds), null, v_now, clock_timestamp() - v_begun, '{}');
    end if;
    return v_key;
end
$$;

ALTER FUNCTION gleaner.take_first_global_activities(p_by timestamp with time zone, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder uuid) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_first_jobs(p_by timestamp with time zone, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    v_begun timestamptz := clock_timestamp();
    v_lease bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_key   bigint;
    v_head  record; v_from bigint := -9223372036854775808; v_lane bigint; v_at timestamptz; v_id bigint;
begin
    -- The first row of each lane: one descent of the index, and less work than one statement for all of them.
    for v_n in 1 .. 17 loop
        select ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) as lane, q.kind as kind, q.due_at as at, q.id as id into v_head from gleaner.jobs as q
        where q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) >= v_from
        order by ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)), q.due_at, q.id limit 1;
        exit when not found;
        if v_n > 16 then return null; end if;
        v_from := v_head.lane + 1;
        continue when v_head.at > p_by or v_head.kind <> all (p_kinds);
        v_head.at := v_head.at + (v_head.lane & 15) * interval '10 minutes';
        if v_lane is null or (v_head.at, v_head.id) < (v_at, v_id) then
            v_lane := v_head.lane; v_at := v_head.at; v_id := v_head.id;
        end if;
    end loop;
    select case when q.lost = 0 and q.status in ('ready', 'failed') then q.id end into v_key from gleaner.jobs as q
    where q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) = v_lane and (p_kinds is null or q.kind = any (p_kinds))
      and q.due_at <= p_by and (q.due_at <= v_now or q.status in ('ready', 'failed'))
      and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'jobs' and r.tenant = '' and r.until > v_now)
      and not exists (select from gleaner.pause as p where p.queue = 'jobs') and not exists (select from gleaner.bulk_range as r where r.queue = 'jobs')
    order by q.due_at, q.id limit 1 for no key update skip locked;
    -- By now the row is locked: a batch lease that does not hold it yet cannot come to hold it.
    update gleaner.jobs as q
    set status = 'running',
        due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '1 hour'), deadline_at = v_now + interval '1 hour',
        lease = greatest(q.lease + 1, v_lease),
        started = case when p_started then 1 else 0 end,
        agent = p_agent, session = v_session
    where q.id = v_key
      and not exists (select from gleaner.batch_lease as b where b.queue = 'jobs' and (b.due_at <= v_now or b.mark = 0 and b.keys @> v_key))
    returning q.id into v_key;
    if clock_timestamp() - v_begun > interval '3 milliseconds' then
        perform gleaner.write_cursor('gleaner.cursor_jobs', concat_ws(' ', p_kinds), null, v_now, clock_timestamp() - v_begun, '{}');
    end if;
    return v_key;
end
$$;

ALTER FUNCTION gleaner.take_first_jobs(p_by timestamp with time zone, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_first_own_activities(p_by timestamp with time zone, p_owner bigint, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder uuid) RETURNS uuid
    LANGUAGE plpgsql
    AS $$
declare
    v_begun timestamptz := clock_timestamp();
    v_lease bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_key   uuid;
    v_head  record; v_from bigint := -9223372036854775808; v_lane bigint; v_at timestamptz; v_id uuid;
begin
    -- The first row of each lane: one descent of the index, and less work than one statement for all of them.
    for v_n in 1 .. 17 loop
        select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind, q.due_at as at, q.id as id into v_head from public.activities as q
        where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) >= v_from
        order by (hashtextextended(q.type collate "C", 0) & -16), q.due_at, q.id limit 1;
        exit when not found;
        if v_n > 16 then return null; end if;
        v_from := v_head.lane + 1;
        continue when v_head.at > p_by or v_head.kind <> all (p_kinds);
        if v_lane is null or (v_head.at, v_head.id) < (v_at, v_id) then
            v_lane := v_head.lane; v_at := v_head.at; v_id := v_head.id;
        end if;
    end loop;
    update public.activities as q
    set processing_status = 'processing',
        due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end)), deadline_at = v_now + (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end),
        open_at = case when q.open_at is null then null else greatest(q.open_at, v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end))) end,
        lease = greatest(q.lease + 1, v_lease),
        started = case when p_started then 1 else 0 end,
        agent = p_agent, session = v_session,
        locked_by = v_holder,
        locked_at = v_now
    where q.id = (
        select case when q.lost = 0 and q.processing_status in ('raw', 'failed') then q.id end from public.activities as q
        where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = v_lane and (p_kinds is null or q.type = any (p_kinds))
          and q.due_at <= p_by and (q.due_at <= v_now or q.processing_status in ('raw', 'failed'))
          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'activities' and r.tenant = '' and r.until > v_now)
          and not exists (select from gleaner.pause as p where p.queue = 'activities')
        order by q.due_at, q.id limit 1 for no key update skip locked)
    returning q.id into v_key;
    if clock_timestamp() - v_begun > interval '3 milliseconds' then
        perform gleaner.write_cursor('gleaner.cursor_activities_own', concat_ws(' ', p_owner, p_kinds), null, v_now, clock_timestamp() - v_begun, '{}');
    end if;
    return v_key;
end
$$;

ALTER FUNCTION gleaner.take_first_own_activities(p_by timestamp with time zone, p_owner bigint, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder uuid) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_first_polls(p_by timestamp with time zone, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) RETURNS uuid
    LANGUAGE plpgsql
    AS $$
declare
    v_begun timestamptz := clock_timestamp();
    v_lease bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_key   uuid;
begin
    update gleaner.polls as q
    set status = 'running',
        due_at = v_now + least(coalesce(p_hold, interval '2 minutes'), interval '6 hours'), deadline_at = v_now + interval '6 hours',
        lease = greatest(q.lease + 1, v_lease),
        started = case when p_started then 1 else 0 end,
        agent = p_agent, session = v_session
    where q.provider_id = (
        select case when q.lost = 0 and q.status in ('ready', 'failed') then q.provider_id end from gleaner.polls as q
        where q.status in ('ready', 'running', 'failed') and q.due_at is not null
          and q.due_at <= p_by and (q.due_at <= v_now or q.status in ('ready', 'failed'))
          and q.provider_id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'polls' and r.tenant = '' and r.until > v_now)
          and not exists (select from gleaner.pause as p where p.queue = 'polls')
        order by q.due_at, q.provider_id limit 1 for no key update skip locked)
    returning q.provider_id into v_key;
    if clock_timestamp() - v_begun > interval '3 milliseconds' then
        perform gleaner.write_cursor('gleaner.cursor_polls', '', null, v_now, clock_timestamp() - v_begun, '{}');
    end if;
    return v_key;
end
$$;

ALTER FUNCTION gleaner.take_first_polls(p_by timestamp with time zone, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_first_runs(p_by timestamp with time zone, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder text) RETURNS uuid
    LANGUAGE plpgsql
    AS $$
declare
    v_begun timestamptz := clock_timestamp();
    v_lease bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_key   uuid;
    v_head  record; v_from bigint := -9223372036854775808; v_lane bigint; v_at timestamptz; v_id uuid;
begin
    -- The first row of each lane: one descent of the index, and less work than one statement for all of them.
    for v_n in 1 .. 17 loop
        select (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) as lane, coalesce(q.kind, '') as kind, q.due_at as at, q.id as id into v_head from public.execution_jobs as q
        where q.status in ('queued', 'running', 'failed') and q.due_at is not null and (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) >= v_from
        order by (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16), q.due_at, q.id limit 1;
        exit when not found;
        if v_n > 16 then return null; end if;
        v_from := v_head.lane + 1;
        continue when v_head.at > p_by or v_head.kind <> all (p_kinds);
        if v_lane is null or (v_head.at, v_head.id) < (v_at, v_id) then
            v_lane := v_head.lane; v_at := v_head.at; v_id := v_head.id;
        end if;
    end loop;
    update public.execution_jobs as q
    set status = 'running',
        due_at = v_now + least(coalesce(p_hold, interval '30 minutes'), interval '2 hours'), deadline_at = v_now + interval '2 hours',
        lease = greatest(q.lease + 1, v_lease),
        started = case when p_started then 1 else 0 end,
        agent = p_agent, session = v_session,
        worker_id = v_holder,
        started_at = v_now
    where q.id = (
        select case when q.lost = 0 and q.status in ('queued', 'failed') then q.id end from public.execution_jobs as q
        where q.status in ('queued', 'running', 'failed') and q.due_at is not null and (hashtextextended(coalesce(q.kind, '') collate "C", 0) & -16) = v_lane and (p_kinds is null or coalesce(q.kind, '') = any (p_kinds))
          and q.due_at <= p_by and (q.due_at <= v_now or q.status in ('queued', 'failed'))
          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'runs' and r.tenant = '' and r.until > v_now)
          and not exists (select from gleaner.pause as p where p.queue = 'runs')
        order by q.due_at, q.id limit 1 for no key update skip locked)
    returning q.id into v_key;
    if clock_timestamp() - v_begun > interval '3 milliseconds' then
        perform gleaner.write_cursor('gleaner.cursor_runs', concat_ws(' ', p_kinds), null, v_now, clock_timestamp() - v_begun, '{}');
    end if;
    return v_key;
end
$$;

ALTER FUNCTION gleaner.take_first_runs(p_by timestamp with time zone, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.take_first_schedules(p_by timestamp with time zone, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) RETURNS uuid
    LANGUAGE plpgsql
    AS $$
declare
    v_begun timestamptz := clock_timestamp();
    v_lease bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_key   uuid;
begin
    update public.followup_schedules as q
    set status = 'working',
        due_at = v_now + least(coalesce(p_hold, interval '1 minute'), interval '10 minutes'), deadline_at = v_now + interval '10 minutes',
        lease = greatest(q.lease + 1, v_lease),
        started = case when p_started then 1 else 0 end,
        agent = p_agent, session = v_session
    where q.id = (
        select case when q.lost = 0 and q.status in ('active', 'failed') then q.id end from public.followup_schedules as q
        where q.status in ('active', 'working', 'failed') and q.due_at is not null
          and q.due_at <= p_by and (q.due_at <= v_now or q.status in ('active', 'failed'))
          and q.id::text not in (select r.key from gleaner.rejected_row as r where r.queue = 'schedules' and r.tenant = '' and r.until > v_now)
          and not exists (select from gleaner.pause as p where p.queue = 'schedules')
        order by q.due_at, q.id limit 1 for no key update skip locked)
    returning q.id into v_key;
    if clock_timestamp() - v_begun > interval '3 milliseconds' then
        perform gleaner.write_cursor('gleaner.cursor_schedules', '', null, v_now, clock_timestamp() - v_begun, '{}');
    end if;
    return v_key;
end
$$;

ALTER FUNCTION gleaner.take_first_schedules(p_by timestamp with time zone, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.unbatch_jobs(p_ids bigint[], p_batches bigint[] DEFAULT NULL::bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET enable_bitmapscan TO 'off'
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_wanted int8multirange := (select range_agg(int8range(i, i, '[]')) from unnest(p_ids) as i);
    v_batch  gleaner.batch_lease;
    v_count  integer;
begin
    if cardinality(p_ids) = 0 then
        return;
    end if;
    for v_batch in
        select b.* from gleaner.batch_lease as b
        where b.queue = 'jobs' and (p_batches is null or b.id = any (p_batches)) and (v_wanted is null or b.keys && v_wanted)
        order by b.id
        for update
    loop
        -- A finished, cancelled or released row has a lease of its own by now.
        update gleaner.jobs as q
        set status = 'running',
            due_at = v_batch.due_at,
            lease = -v_batch.id,
            deadline_at = v_batch.deadline_at,
            started = case when v_batch.begun @> q.id then 1 else 0 end,
            agent = v_batch.agent,
            session = v_batch.session
        from unnest(coalesce(v_batch.keys * v_wanted, v_batch.keys)) as piece
        where q.id >= lower(piece) and q.id < upper(piece) and q.lease = v_batch.mark and q.status = 'ready';
        get diagnostics v_count = row_count;
        if v_wanted is null or v_count >= v_batch.remaining then
            delete from gleaner.batch_lease as b where b.id = v_batch.id;
        elsif v_count > 0 then
            update gleaner.batch_lease as b set remaining = b.remaining - v_count where b.id = v_batch.id;
        end if;
    end loop;
end
$$;

ALTER FUNCTION gleaner.unbatch_jobs(p_ids bigint[], p_batches bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.unlink_activity(p_activity uuid) RETURNS TABLE(id uuid, outcome text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_contact bigint;
begin
    select a.contact_id into v_contact from public.activities as a where a.id = p_activity for no key update;
    if not found then
        return query select p_activity, 'gone';
        return;
    end if;
    if v_contact is null then
        return query select p_activity, 'already';
        return;
    end if;
    perform set_config('gleaner.by_hand', 'on', true);
    update public.activities as a
    set contact_id = null,
        metadata = case when jsonb_typeof(coalesce(a.metadata, '{}')) = 'object'
            then coalesce(a.metadata, '{}') || jsonb_build_object('match', jsonb_build_object('method', 'unlinked', 'candidates', array[v_contact]))
            else a.metadata end
    where a.id = p_activity;
    perform set_config('gleaner.by_hand', '', true);
    return query select p_activity, 'done';
end
$$;

COMMENT ON FUNCTION gleaner.unlink_activity(p_activity uuid) IS 'Takes an activity from the contact it is linked to.';

CREATE FUNCTION gleaner.unpack_range_jobs(p_range gleaner.bulk_range, p_upto bigint) RETURNS bigint[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET enable_bitmapscan TO 'off'
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET vacuum_cost_page_hit TO '0'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_last   bigint := least(p_range.last, p_upto);
    v_stayed bigint[] := '{}';
    v_key    bigint;
    v_wait   interval;
begin
    begin
        update gleaner.jobs as q set lease = 0
        where q.id = any (array(
            select q.id from gleaner.jobs as q
            where q.id between p_range.first and v_last and q.lease = -1 and q.status = 'ready'
            order by q.id
            for no key update skip locked));
    exception when others then
        perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
    end;
    if v_last < p_range.last then
        update gleaner.bulk_range as r set first = v_last + 1 where r.queue = 'jobs' and r.kind = p_range.kind and r.class = p_range.class and r.due_at = p_range.due_at and r.first = p_range.first;
    else
        delete from gleaner.bulk_range as r where r.queue = 'jobs' and r.kind = p_range.kind and r.class = p_range.class and r.due_at = p_range.due_at and r.first = p_range.first;
    end if;
    for v_key in
        select q.id from gleaner.jobs as q
        where q.id between p_range.first and v_last and q.lease = -1 and q.status = 'ready'
        order by q.id
    loop
        v_wait := interval '0';
        perform from gleaner.jobs as q where q.id = v_key and q.lease = -1 and q.status = 'ready' for no key update skip locked;
        if found then
            begin
                update gleaner.jobs as q set lease = 0 where q.id = v_key;
                continue when not exists (select from gleaner.jobs as q where q.id = v_key and q.lease = -1 and q.status = 'ready');
                v_wait := gleaner.reject_row('jobs', '', v_key::text, 'a trigger skipped the change');
            exception when others then
                perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
                v_wait := gleaner.reject_row('jobs', '', v_key::text, sqlerrm);
            end;
        end if;
        v_stayed := v_stayed || v_key;
        insert into gleaner.bulk_range (queue, kind, class, due_at, first, last)
        values ('jobs', p_range.kind, p_range.class, case when v_wait = interval '0' then p_range.due_at else v_now + v_wait end, v_key, v_key);
    end loop;
    return v_stayed;
end
$$;

ALTER FUNCTION gleaner.unpack_range_jobs(p_range gleaner.bulk_range, p_upto bigint) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.verify_key(p_hash bytea) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
    v_key record;
begin
    select k.* into v_key
    from gleaner.api_key as k
    where k.hash = p_hash and k.revoked_at is null and (k.expires_at is null or k.expires_at > v_now);
    if not found then
        return null;
    end if;
    -- To the minute, and never waiting for another session that does the same.
    if v_key.last_used_at is null or v_now - v_key.last_used_at > interval '1 minute' then
        update gleaner.api_key as k set last_used_at = v_now
        where k.id = (select l.id from gleaner.api_key as l where l.id = v_key.id for no key update skip locked);
    end if;
    if v_key.role = 'worker' then
        return jsonb_strip_nulls(jsonb_build_object(
            'role', 'authenticated', 'sub', v_key.id, 'session_id', v_key.id, 'key_id', v_key.id, 'worker', true,
            'queues', to_jsonb(v_key.queues), 'kinds', to_jsonb(v_key.kinds)));
    end if;
    return jsonb_build_object('role', case v_key.role when 'service' then 'service_role' else 'anon' end, 'key_id', v_key.id);
end
$$;

COMMENT ON FUNCTION gleaner.verify_key(p_hash bytea) IS 'The claims of a program''s key; null when it is not good.';

CREATE FUNCTION gleaner.with_address(p_list jsonb, p_key text, p_address text) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_list jsonb := case jsonb_typeof(p_list) when 'array' then p_list else '[]' end;
begin
    return case
        when v_list @> jsonb_build_array(jsonb_build_object(p_key, p_address)) then v_list
        else v_list || jsonb_build_object(p_key, p_address, 'type', 'Other')
    end;
end
$$;

COMMENT ON FUNCTION gleaner.with_address(p_list jsonb, p_key text, p_address text) IS 'A list of addresses with one more, unless it is there.';

CREATE FUNCTION gleaner.words_of(p_text text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select to_tsvector('pg_catalog.simple', regexp_replace(left(p_text, 20000), '[^[:alnum:]]+', ' ', 'g'))
$$;

COMMENT ON FUNCTION gleaner.words_of(p_text text) IS 'The words of a text, for the search of activities.';

CREATE FUNCTION gleaner.worker_session() RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return (select (claims ->> 'sub') || '/' || coalesce(claims ->> 'session_id', '')
            from (select nullif(current_setting('request.jwt.claims', true), '')::jsonb) as token (claims)
            where claims ->> 'worker' = 'true');
end
$$;

COMMENT ON FUNCTION gleaner.worker_session() IS 'The session of a caller with a worker''s key; null for other callers.';

CREATE FUNCTION gleaner.write_cursor(p_setting text, p_asked text, p_before jsonb, p_now timestamp with time zone, p_took interval, p_cursor jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform set_config(p_setting, (p_cursor || jsonb_build_object(
        'asked', p_asked,
        'until', coalesce((p_before ->> 'until')::double precision, extract(epoch from p_now + greatest(20 * p_took, interval '100 milliseconds')))))::text, false);
end
$$;

COMMENT ON FUNCTION gleaner.write_cursor(p_setting text, p_asked text, p_before jsonb, p_now timestamp with time zone, p_took interval, p_cursor jsonb) IS 'Remembers where a look ended, for the next looks of this session.';

CREATE FUNCTION public.approve_scheduled_actions(p_ids uuid[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_row public.scheduled_actions;
begin
    perform gleaner.admit_followups(p_ids);
    for v_row in select a.* from public.scheduled_actions as a where a.id = any (p_ids) order by a.id for no key update loop
        id := v_row.id;
        status := v_row.status;
        outcome := 'already';
        if v_row.approved_at is null and v_row.status in ('pending', 'processing', 'failed') then
            update public.scheduled_actions as a set approved_at = clock_timestamp(), deferred_reason = null where a.id = v_row.id;
            if v_row.deferred_reason is not null and v_row.status = 'pending' then
                perform from gleaner.requeue_followups(array[v_row.id]);
            end if;
            outcome := 'done';
        end if;
        return next;
    end loop;
    return query
    select u.id, 'gone', null::text from unnest(p_ids) as u (id) where not exists (select from public.scheduled_actions as a where a.id = u.id);
end
$$;

COMMENT ON FUNCTION public.approve_scheduled_actions(p_ids uuid[]) IS 'Approves actions that wait for it.';

CREATE FUNCTION public.auto_link_contact() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_phone text;
    v_found record;
begin
    if new.sender_address is null then
        new.sender_address := coalesce(public.normalize_email(new.metadata ->> 'from'), public.normalize_email(new.raw_data ->> 'sender'));
        v_phone := coalesce(public.normalize_phone(new.metadata ->> 'from'), public.normalize_phone(new.raw_data ->> 'sender'));
        new.sender_kind := case when new.sender_address is not null then 'email' when v_phone is not null then 'phone' end;
        new.sender_address := coalesce(new.sender_address, v_phone);
    end if;
    -- No address is that long, and it would not fit the index.
    if octet_length(new.sender_address) > 512 then
        new.sender_address := null;
    end if;
    if new.sender_address is null then
        new.sender_kind := null;
        return new;
    end if;

    select m.method, m.candidates into v_found
    from gleaner.match_contact(new.sender_kind, new.sender_address, new.provider_id) as m;
    if v_found.candidates = '{}' and new.sender_kind = 'email' and v_phone is not null then
        select m.method, m.candidates into v_found from gleaner.match_contact('phone', v_phone, new.provider_id) as m;
    end if;

    if cardinality(v_found.candidates) = 1 then
        new.contact_id := v_found.candidates[1];
    elsif v_found.candidates <> '{}' and jsonb_typeof(coalesce(new.metadata, '{}')) = 'object' then
        new.metadata := coalesce(new.metadata, '{}')
            || jsonb_build_object('match', jsonb_build_object('method', v_found.method, 'candidates', v_found.candidates));
    end if;
    return new;
end
$$;

COMMENT ON FUNCTION public.auto_link_contact() IS 'Links a new activity to the one contact its sender matches.';

CREATE FUNCTION public.cancel_pending_for_prospect(p_prospect_id text, p_reason text DEFAULT 'the prospect replied'::text) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_ids uuid[];
begin
    v_ids := array(
        select a.id
        from public.scheduled_actions as a
        where a.prospect_id = p_prospect_id
          and (a.status in ('pending', 'processing') or a.status = 'failed' and a.due_at is not null)
          and not (a.status = 'processing' and a.sending_lease is not distinct from a.lease)
        order by a.id
        for no key update);
    -- Two statements: the second must see what the first changed.
    v_ids := array(select c.id from gleaner.cancel_followups(v_ids, p_reason) as c where c.outcome = 'done');
    update public.scheduled_actions as a set cancelled_reason = p_reason where a.id = any (v_ids);
    return cardinality(v_ids);
end
$$;

COMMENT ON FUNCTION public.cancel_pending_for_prospect(p_prospect_id text, p_reason text) IS 'Calls off every unfinished action of a prospect, running ones included; returns how many.';

CREATE FUNCTION public.cancel_scheduled_actions(p_ids uuid[], p_reason text DEFAULT 'called off by hand'::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_row  record;
    v_idle uuid[] := '{}';
begin
    perform gleaner.admit_followups(p_ids);
    for v_row in
        select a.id, a.status, a.status = 'processing' and a.sending_lease is not distinct from a.lease as sending
        from public.scheduled_actions as a where a.id = any (p_ids) order by a.id for no key update
    loop
        if v_row.sending then
            id := v_row.id; outcome := 'lost'; status := v_row.status;
            return next;
        else
            v_idle := v_idle || v_row.id;
        end if;
    end loop;
    return query select c.id, c.outcome, c.status from gleaner.cancel_followups(v_idle, p_reason) as c;
    update public.scheduled_actions as a set cancelled_reason = p_reason
    where a.id = any (v_idle) and a.status = 'cancelled' and a.cancelled_reason is null;
    return query
    select u.id, 'gone', null::text from unnest(p_ids) as u (id) where not exists (select from public.scheduled_actions as a where a.id = u.id);
end
$$;

COMMENT ON FUNCTION public.cancel_scheduled_actions(p_ids uuid[], p_reason text) IS 'Calls off actions that are not being sent.';

CREATE FUNCTION public.claim_due_actions(p_limit integer DEFAULT 10, p_max_delay_seconds integer DEFAULT 5) RETURNS SETOF public.scheduled_actions
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select *
    from gleaner.claim_followups(
        -- No agent id: the daemon ends its work by a plain update.
        p_agent   => null,
        p_limit   => p_limit,
        p_started => true,
        p_early   => make_interval(secs => p_max_delay_seconds))
$$;

COMMENT ON FUNCTION public.claim_due_actions(p_limit integer, p_max_delay_seconds integer) IS 'Takes actions whose time has come, earliest first.';

CREATE FUNCTION public.claim_next_pending_activity(p_agent_sales_id bigint) RETURNS TABLE(id uuid, raw_data jsonb, type text, is_global boolean, direction text, sales_id bigint, contact_id bigint, processing_status text, processed_data jsonb, metadata jsonb, locked_by uuid, locked_at timestamp with time zone, provider_id uuid, created_at timestamp with time zone, progress jsonb, attempts integer, lease bigint, due_at timestamp with time zone, deadline_at timestamp with time zone)
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select a.id, a.raw_data, a.type, a.sales_id is null,
           a.direction, a.sales_id, a.contact_id, a.processing_status, a.processed_data, a.metadata,
           a.locked_by, a.locked_at, a.provider_id, a.created_at,
           a.progress, a.attempts, a.lease, a.due_at, a.deadline_at
    from gleaner.claim_activities(
        -- No agent id: the caller ends its work by a plain update, and is known by its sign-in.
        p_agent   => null,
        p_owner   => p_agent_sales_id,
        p_started => true) as a
$$;

COMMENT ON FUNCTION public.claim_next_pending_activity(p_agent_sales_id bigint) IS 'Takes one activity: the owner''s own, then one without an owner, then one that another owner left waiting too long.';

CREATE FUNCTION public.claim_stale_activity() RETURNS TABLE(id uuid, raw_data jsonb, type text, is_global boolean, direction text, sales_id bigint, contact_id bigint, processing_status text, processed_data jsonb, metadata jsonb, locked_by uuid, locked_at timestamp with time zone, provider_id uuid, created_at timestamp with time zone, progress jsonb, attempts integer, lease bigint, due_at timestamp with time zone, deadline_at timestamp with time zone)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    -- No agent id: the caller ends its work by a plain update, and is known by its sign-in.
    return query
    select a.id, a.raw_data, a.type, a.sales_id is null,
           a.direction, a.sales_id, a.contact_id, a.processing_status, a.processed_data, a.metadata,
           a.locked_by, a.locked_at, a.provider_id, a.created_at,
           a.progress, a.attempts, a.lease, a.due_at, a.deadline_at
    from gleaner.claim_activities(p_agent => null, p_classes => '{stale}', p_started => true) as a;
    if found then
        return;
    end if;
    -- Early by minus five minutes: only what has been due that long.
    return query
    select a.id, a.raw_data, a.type, a.sales_id is null,
           a.direction, a.sales_id, a.contact_id, a.processing_status, a.processed_data, a.metadata,
           a.locked_by, a.locked_at, a.provider_id, a.created_at,
           a.progress, a.attempts, a.lease, a.due_at, a.deadline_at
    from gleaner.claim_activities(p_agent => null, p_classes => '{global}', p_started => true, p_early => '-5 minutes') as a;
end
$$;

COMMENT ON FUNCTION public.claim_stale_activity() IS 'Takes one activity that others left standing, within each owner''s own threshold and privacy.';

CREATE FUNCTION public.create_scheduled_action(p_prospect_id text, p_action_type text, p_scheduled_for timestamp with time zone, p_payload jsonb DEFAULT '{}'::jsonb) RETURNS public.scheduled_actions
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    insert into public.scheduled_actions (prospect_id, action_type, scheduled_for, payload)
    values (p_prospect_id, p_action_type, p_scheduled_for, coalesce(p_payload, '{}'))
    returning *
$$;

COMMENT ON FUNCTION public.create_scheduled_action(p_prospect_id text, p_action_type text, p_scheduled_for timestamp with time zone, p_payload jsonb) IS 'Schedules an action and returns it.';

CREATE FUNCTION public.fn_block_create(p_basket_id uuid, p_title text, p_content text, p_semantic_type text, p_confidence_score numeric DEFAULT NULL::numeric, p_dump_id uuid DEFAULT NULL::uuid) RETURNS uuid
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    insert into public.blocks as b (basket_id, dump_id, title, content, semantic_type, confidence_score)
    values (p_basket_id, p_dump_id, p_title, coalesce(p_content, ''), p_semantic_type, p_confidence_score)
    on conflict (basket_id, dump_id, semantic_type, md5(title), md5(content))
    do update set confidence_score = coalesce(excluded.confidence_score, b.confidence_score)
    returning b.id
$$;

COMMENT ON FUNCTION public.fn_block_create(p_basket_id uuid, p_title text, p_content text, p_semantic_type text, p_confidence_score numeric, p_dump_id uuid) IS 'Stores one insight of a basket; returns its id.';

CREATE FUNCTION public.fn_claim_next_dumps(p_worker_id text, p_limit integer DEFAULT 10, p_stale_after_minutes integer DEFAULT 5) RETURNS SETOF public.agent_processing_queue
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select *
    from gleaner.claim_dumps(
        -- No agent id: the worker ends its work by plain updates. Its own name for itself is for people to see.
        p_agent  => null,
        p_holder => p_worker_id,
        p_limit  => p_limit,
        p_hold   => make_interval(mins => p_stale_after_minutes))
$$;

COMMENT ON FUNCTION public.fn_claim_next_dumps(p_worker_id text, p_limit integer, p_stale_after_minutes integer) IS 'Takes up to p_limit dumps for a worker.';

CREATE FUNCTION public.fn_context_item_upsert_bulk(p_basket_id uuid, p_items jsonb, p_dump_id uuid DEFAULT NULL::uuid) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_ids uuid[];
begin
    with item as (
        select distinct on (given.item ->> 'kind', gleaner.same_label(given.item ->> 'label'))
               given.item ->> 'kind' as kind, given.item ->> 'label' as label, gleaner.same_label(given.item ->> 'label') as same
        from jsonb_array_elements(p_items) with ordinality as given (item, n)
        order by given.item ->> 'kind', gleaner.same_label(given.item ->> 'label'), given.n
    )
    insert into public.context_items (basket_id, kind, label)
    select p_basket_id, item.kind, item.label
    from item
    order by item.kind, item.same
    on conflict do nothing;

    -- An entity that was written without a source keeps what it had.
    insert into public.context_item_sources (context_item_id, dump_id, metadata)
    select c.id, null, c.metadata
    from public.context_items as c
    where c.id = any (array(select known.id from gleaner.match_context_items(p_basket_id, p_items) as known))
      and c.metadata <> '{}'
      and not exists (select from public.context_item_sources as s where s.context_item_id = c.id)
    on conflict on constraint context_item_sources_once_key do nothing;

    with stored as (
        insert into public.context_item_sources as s (context_item_id, dump_id, metadata)
        select known.id, p_dump_id, known.metadata
        from gleaner.match_context_items(p_basket_id, p_items) as known
        order by known.id
        on conflict on constraint context_item_sources_once_key
        do update set metadata = s.metadata || excluded.metadata
        returning s.context_item_id
    )
    select array_agg(stored.context_item_id) into v_ids from stored;
    perform gleaner.refresh_context_items(v_ids);
    return coalesce(cardinality(v_ids), 0);
end
$$;

COMMENT ON FUNCTION public.fn_context_item_upsert_bulk(p_basket_id uuid, p_items jsonb, p_dump_id uuid) IS 'Stores the entities of a basket, once each; returns how many.';

CREATE FUNCTION public.fn_reflections(p_basket_id uuid, p_days integer DEFAULT 14, p_limit integer DEFAULT 50) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    with dump as (
        select d.id
        from public.raw_dumps as d
        where d.basket_id = p_basket_id
          and d.created_at > now() - make_interval(days => p_days)
        order by d.created_at desc, d.id
        limit least(p_limit, 500)
    ), item as (
        select c.kind, c.label, count(*) as dumps, row_number() over (partition by c.kind order by count(*) desc, c.label) as place
        from public.context_item_sources as s
        join public.context_items as c on c.id = s.context_item_id
        where s.dump_id in (select dump.id from dump)
        group by c.id, c.kind, c.label
    ), edge as (
        select count(*) as count from public.substrate_relationships as r where r.dump_id in (select dump.id from dump)
    ), theme as (
        select item.label, item.dumps from item where item.kind in ('topic', 'entity') order by item.kind = 'topic' desc, item.place limit 1
    ), task as (
        select item.label, item.dumps from item where item.kind in ('intent', 'task') order by item.kind = 'intent' desc, item.place limit 1
    ), asked as (
        select b.content
        from public.blocks as b
        where b.dump_id in (select dump.id from dump) and b.semantic_type = 'question'
        order by b.created_at desc, b.id
        limit 1
    ), counted as (
        select count(*) as dumps from dump
    )
    select jsonb_build_object(
        'pattern', (select format('%s comes back in %s of %s dumps.', theme.label, theme.dumps, counted.dumps) from theme, counted),
        'tension', (select format('%s is to be done, while most is about %s.', task.label, theme.label) from task, theme),
        'question', coalesce((select asked.content from asked), (select format('What does %s need next?', theme.label) from theme)),
        'reasons', (
            select coalesce(jsonb_agg(reason order by place), '[]') from (
                select 1 as place, format('Theme: %s (%s of %s dumps)', theme.label, theme.dumps, counted.dumps) as reason from theme, counted
                union all
                select 2, format('To do: %s', task.label) from task
                union all
                select 3, format('%s connections between what was found', edge.count) from edge where edge.count > 0
            ) as given),
        'dumps', (select counted.dumps from counted),
        'version', md5(coalesce((select string_agg(item.kind || ':' || item.label || ':' || item.dumps, ',' order by item.kind, item.label) from item), '')
                       || (select edge.count from edge)))
$$;

COMMENT ON FUNCTION public.fn_reflections(p_basket_id uuid, p_days integer, p_limit integer) IS 'What the newest dumps of a basket have in common, computed on read.';

CREATE FUNCTION public.fn_relationship_upsert_bulk(p_basket_id uuid, p_edges jsonb, p_dump_id uuid DEFAULT NULL::uuid) RETURNS integer
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    with edge as (
        select distinct on (e.from_id, e.to_id, e.relationship_type)
               e.from_type, e.from_id, e.to_type, e.to_id, e.relationship_type, e.strength, e.description
        from jsonb_array_elements(p_edges) with ordinality as given (edge, n)
        cross join lateral jsonb_to_record(given.edge) as e
            (from_type text, from_id uuid, to_type text, to_id uuid, relationship_type text, strength numeric, description text)
        order by e.from_id, e.to_id, e.relationship_type, given.n desc
    ), stored as (
        insert into public.substrate_relationships as r
            (basket_id, dump_id, from_type, from_id, to_type, to_id, relationship_type, strength, description)
        select p_basket_id, p_dump_id, edge.from_type, edge.from_id, edge.to_type, edge.to_id, edge.relationship_type,
               coalesce(edge.strength, 0.5), edge.description
        from edge
        order by edge.from_id, edge.to_id, edge.relationship_type
        on conflict on constraint substrate_relationships_once_key
        do update set strength = excluded.strength, description = coalesce(excluded.description, r.description)
        returning 1
    )
    select count(*)::integer from stored
$$;

COMMENT ON FUNCTION public.fn_relationship_upsert_bulk(p_basket_id uuid, p_edges jsonb, p_dump_id uuid) IS 'Stores how dumps, blocks and entities relate; returns how many.';

CREATE FUNCTION public.fn_workspace_create(p_name text, p_basket text DEFAULT 'Inbox'::text) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_workspace uuid;
    v_basket    uuid;
begin
    if not gleaner.is_trusted()
       and (auth.uid() is null or to_regprocedure('gleaner.is_salesperson()') is not null and not gleaner.is_member()
            or gleaner.worker_session() is not null) then
        raise exception 'only members of the team make workspaces' using errcode = '42501', hint = 'Ask an administrator to add you to the team.';
    end if;
    insert into public.workspaces (name) values (p_name) returning id into v_workspace;
    insert into public.baskets (workspace_id, name) values (v_workspace, p_basket) returning id into v_basket;
    if auth.uid() is not null then
        insert into public.workspace_members (workspace_id, user_id, role) values (v_workspace, auth.uid(), 'owner');
    end if;
    return jsonb_build_object('workspace_id', v_workspace, 'basket_id', v_basket);
end
$$;

COMMENT ON FUNCTION public.fn_workspace_create(p_name text, p_basket text) IS 'Makes a workspace with one basket; the caller becomes its owner.';

CREATE FUNCTION public.fn_workspace_invite(p_workspace_id uuid, p_email text, p_role text DEFAULT 'member'::text) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    -- Two version 4 uuids: 244 random bits, without an extension.
    v_token text := replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');
    v_id    uuid;
    v_until timestamptz;
begin
    if not gleaner.owns_workspace(p_workspace_id) then
        raise exception 'only owners of the workspace invite to it' using errcode = '42501', hint = 'Ask an owner of the workspace.';
    end if;
    insert into public.workspace_invitations (workspace_id, email, role, token_hash, invited_by)
    values (p_workspace_id, lower(btrim(p_email)), p_role, sha256(convert_to(v_token, 'UTF8')), auth.uid())
    returning id, expires_at into v_id, v_until;
    return jsonb_build_object('id', v_id, 'token', v_token, 'expires_at', v_until);
end
$$;

COMMENT ON FUNCTION public.fn_workspace_invite(p_workspace_id uuid, p_email text, p_role text) IS 'Invites an e-mail address to a workspace; returns the token once.';

CREATE FUNCTION public.fn_workspace_join(p_token text) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_workspace uuid;
    v_role      text;
begin
    update public.workspace_invitations as i
    set accepted_at = now(), accepted_by = auth.uid()
    where i.token_hash = sha256(convert_to(p_token, 'UTF8'))
      and i.accepted_at is null
      and i.expires_at > clock_timestamp()
      and auth.uid() is not null
      and i.email = lower(auth.jwt() ->> 'email')
    returning i.workspace_id, i.role into v_workspace, v_role;
    if not found then
        raise exception 'this invitation cannot be accepted'
            using errcode = '42501', hint = 'Sign in with the address that was invited, or ask for a new invitation: each is good once, for seven days.';
    end if;
    insert into public.workspace_members (workspace_id, user_id, role)
    values (v_workspace, auth.uid(), v_role)
    -- Who is an owner already stays one.
    on conflict on constraint workspace_members_pkey do nothing;
    return v_workspace;
end
$$;

COMMENT ON FUNCTION public.fn_workspace_join(p_token text) IS 'Accepts an invitation to a workspace.';

CREATE FUNCTION public.get_pending_actions(p_prospect_id text DEFAULT NULL::text) RETURNS SETOF public.scheduled_actions
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select *
    from public.scheduled_actions as a
    where a.status = 'pending'
      and (p_prospect_id is null or a.prospect_id = p_prospect_id)
    order by a.scheduled_for, a.id
$$;

COMMENT ON FUNCTION public.get_pending_actions(p_prospect_id text) IS 'Actions that wait, of one prospect or of all, earliest first.';

CREATE FUNCTION public.guard_activity() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_worker boolean := gleaner.worker_session() is not null;
begin
    if tg_op = 'INSERT' then
        if new.provider_id is not null then
            raise exception 'only its webhook adds activities to a channel'
                using errcode = '42501', hint = 'Leave provider_id out.';
        end if;
        return new;
    end if;

    if (v_worker or old.provider_id is not null or new.provider_id is not null)
       and (new.provider_id, new.external_id, new.sender_kind, new.sender_address, new.raw_data)
           is distinct from (old.provider_id, old.external_id, old.sender_kind, old.sender_address, old.raw_data)
    then
        raise exception 'where activity % came from and what it said cannot be changed', old.id
            using errcode = '42501',
                  hint = 'provider_id, external_id, sender_kind, sender_address and raw_data are written by the webhook endpoint. Use metadata or processed_data.';
    end if;

    if new.sales_id is distinct from old.sales_id
       and (v_worker or not (
            gleaner.is_administrator()
            or exists (
                select from public.sales as s
                where s.id = old.sales_id and s.user_id = gleaner.caller_uid() and not s.disabled)))
    then
        raise exception 'only the owner of activity % or an administrator may give it to somebody else', old.id
            using errcode = '42501', hint = 'gleaner.assign_activities changes the owner of rows that you may operate, and records it.';
    end if;
    return new;
end
$$;

COMMENT ON FUNCTION public.guard_activity() IS 'Keeps the origin and the owner of an activity from those they are not for.';

CREATE FUNCTION public.keep_channel_secrets() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_op = 'INSERT' then
        if new.sealed_key is null then
            new.key_hash := case when new.ingestion_key not like 'ik\_…%' then sha256(convert_to(new.ingestion_key, 'UTF8')) end;
            new.previous_key_hash := null;
            new.previous_key_expires := null;
            new.sealed_config := null;
            new.secrets_expire := '{}';
            new.sealed := false;
        end if;
        return new;
    end if;

    new.changed_at := now();
    if new.version = old.version + 1 then
        return new;
    end if;
    new.version := old.version + 1;
    new.previous_key_hash := old.previous_key_hash;
    new.previous_key_expires := old.previous_key_expires;
    new.sealed_config := old.sealed_config;
    new.secrets_expire := old.secrets_expire;
    new.sealed := old.sealed and new.config = old.config and new.provider_code = old.provider_code;
    if new.ingestion_key = old.ingestion_key or new.ingestion_key like 'ik\_…%' then
        new.ingestion_key := old.ingestion_key;
        new.key_hash := old.key_hash;
        new.sealed_key := old.sealed_key;
    else
        new.key_hash := sha256(convert_to(new.ingestion_key, 'UTF8'));
        new.sealed_key := null;
        new.sealed := false;
    end if;
    return new;
end
$$;

COMMENT ON FUNCTION public.keep_channel_secrets() IS 'Keeps key_hash for keys written in clear, and sealed secrets through plain writes.';

CREATE FUNCTION public.list_contact_addresses(p_email text, p_phone text, p_emails jsonb, p_phones jsonb) RETURNS TABLE(kind text, address text, written text, loose text, parsed boolean)
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
begin
    return query
    select distinct 'email', n.address, typed.written, gleaner.loose_email(n.address), typed.written ~ '^[[:ascii:]]*$'
    from (
        select left(p_email, 254)
        union all
        select left(item ->> 'email', 254)
        from jsonb_array_elements(case jsonb_typeof(p_emails) when 'array' then p_emails end) as item
    ) as typed (written)
    cross join lateral (select public.normalize_email(typed.written) offset 0) as n (address)
    where n.address is not null;

    return query
    select distinct 'phone', coalesce(n.address, '?'), typed.written, substring(n.address from '^\+1([0-9]{10})$'), false
    from (
        select left(p_phone, 100)
        union all
        select left(item ->> 'number', 100)
        from jsonb_array_elements(case jsonb_typeof(p_phones) when 'array' then p_phones end) as item
    ) as typed (written)
    cross join lateral (select public.normalize_phone(typed.written) offset 0) as n (address)
    where n.address is not null or typed.written !~ '^[[:ascii:]]*$';
end
$_$;

COMMENT ON FUNCTION public.list_contact_addresses(p_email text, p_phone text, p_emails jsonb, p_phones jsonb) IS 'Normalised addresses of one contact, each with what was written.';

CREATE FUNCTION public.mark_processing(p_action_id uuid) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    update public.scheduled_actions as a
    set status = 'processing', started_processing_at = clock_timestamp()
    where a.id = p_action_id and a.status = 'pending';
    return found;
end
$$;

COMMENT ON FUNCTION public.mark_processing(p_action_id uuid) IS 'Takes one waiting action by its id; true when the caller got it.';

CREATE FUNCTION public.normalize_email(p_text text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
begin
    return substring(
        lower(btrim(coalesce(
            substring(p_text from '<([^<>]*)>'),
            split_part(regexp_replace(p_text, '\([^()]*\)', '', 'g'), ',', 1)), E' \t\r\n'))
        from '^[^\s@<>"]+@[^\s@<>"]+$');
end
$_$;

COMMENT ON FUNCTION public.normalize_email(p_text text) IS 'The bare address of a sender in lower case; null for what is none.';

CREATE FUNCTION public.normalize_phone(p_text text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    v_bare          text := lower(btrim(p_text));
    v_digits        text;
    v_international boolean;
begin
    v_bare := regexp_replace(v_bare, '^(whatsapp|tel|sms):\s*', '');
    v_bare := regexp_replace(v_bare, '\s*(;\s*ext=|extension|ext\.?|x|#)\s*[0-9]+$', '');
    if v_bare ~ '[[:alpha:]@]' then
        return null;
    end if;
    v_international := v_bare ~ '^\(?\+';
    -- '+44 (0)20' names the trunk prefix that is dialled within the country only.
    v_digits := regexp_replace(case when v_international then replace(v_bare, '(0)', '') else v_bare end, '[^0-9]', '', 'g');
    return case
        when v_digits = '' then null
        -- Withheld callers: words spelt on a keypad. An explicit list, because some look like real numbers.
        when v_international and v_digits in ('266696687', '7378742833', '2562533', '8656696', '86282452253') then null
        when v_international then '+' || v_digits
        when v_digits ~ '^011[1-9]\d{6,}$' then '+' || substr(v_digits, 4)
        when v_digits ~ '^[1-9]\d{9}$' then '+1' || v_digits
        when v_digits ~ '^1\d{10}$' then '+' || v_digits
        else v_digits
    end;
end
$_$;

COMMENT ON FUNCTION public.normalize_phone(p_text text) IS 'A telephone number in comparable form, E.164 where the country is known; null for none.';

CREATE FUNCTION public.queue_agent_processing() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    insert into public.agent_processing_queue (dump_id, basket_id, workspace_id)
    select new.id, new.basket_id, b.workspace_id
    from public.baskets as b
    where b.id = new.basket_id;
    return new;
end
$$;

COMMENT ON FUNCTION public.queue_agent_processing() IS 'Queues a new dump for processing.';

CREATE FUNCTION public.refresh_contact_addresses() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_known record;
begin
    if tg_op = 'UPDATE' then
        delete from public.contact_addresses as a where a.contact_id = new.id;
    end if;
    insert into public.contact_addresses (contact_id, kind, address, written, loose, parsed)
    select new.id, l.kind, l.address, l.written, l.loose, l.parsed
    from public.list_contact_addresses(new.email, new.phone_number, new.email_jsonb, new.phone_jsonb) as l;
    for v_known in
        select a.kind, array_agg(a.address) || array_agg('+1' || a.loose) filter (where a.kind = 'phone' and a.loose is not null) as addresses
        from public.contact_addresses as a
        where a.contact_id = new.id and a.address <> '?'
        group by a.kind
    loop
        perform gleaner.look_again(v_known.kind, v_known.addresses);
    end loop;
    return null;
end
$$;

COMMENT ON FUNCTION public.refresh_contact_addresses() IS 'Keeps contact_addresses in step with contacts.';

CREATE FUNCTION public.reset_stale_locks() RETURNS integer
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select public.unlock_stale_locks()
$$;

COMMENT ON FUNCTION public.reset_stale_locks() IS 'Gives activities whose lease has ended back; returns how many.';

CREATE FUNCTION public.reset_stale_processing(p_stale_after_seconds integer DEFAULT 600) RETURNS integer
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select gleaner.recover_followups(make_interval(secs => greatest(p_stale_after_seconds - 300, 0)))
$$;

COMMENT ON FUNCTION public.reset_stale_processing(p_stale_after_seconds integer) IS 'Gives actions whose lease has ended back; returns how many.';

CREATE FUNCTION public.save_recording(p_name text, p_content jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    v_recording uuid;
    v_version   record;
    v_known     boolean := true;
begin
    insert into public.recordings (name) values (btrim(p_name)) on conflict (lower(name)) do nothing;
    select r.id into strict v_recording from public.recordings as r where lower(r.name) = lower(btrim(p_name));
    select v.id, v.version, v.content into v_version
    from public.recording_versions as v where v.recording_id = v_recording order by v.version desc limit 1;
    if not found or v_version.content <> p_content then
        v_known := false;
        insert into public.recording_versions as v (recording_id, content) values (v_recording, p_content)
        returning v.id, v.version, v.content into v_version;
    end if;
    return jsonb_build_object('recording_id', v_recording, 'version_id', v_version.id, 'version', v_version.version, 'known', v_known);
end
$$;

COMMENT ON FUNCTION public.save_recording(p_name text, p_content jsonb) IS 'Adds a recording, or another version of the one with that name.';

CREATE FUNCTION public.schedule_followup(p_prospect_id text, p_scheduled_for timestamp with time zone, p_payload jsonb DEFAULT '{}'::jsonb, p_action_type text DEFAULT 'follow_up'::text) RETURNS public.scheduled_actions
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_row public.scheduled_actions;
begin
    insert into public.scheduled_actions (prospect_id, contact_id, action_type, scheduled_for, payload)
    values (p_prospect_id, gleaner.require_own_contact(p_prospect_id), p_action_type, p_scheduled_for, coalesce(p_payload, '{}'))
    returning * into v_row;
    return v_row;
end
$$;

COMMENT ON FUNCTION public.schedule_followup(p_prospect_id text, p_scheduled_for timestamp with time zone, p_payload jsonb, p_action_type text) IS 'Plans a message to a contact of the caller''s own.';

CREATE FUNCTION public.schedule_recurring_followup(p_prospect_id text, p_cron text, p_time_zone text DEFAULT 'UTC'::text, p_payload jsonb DEFAULT '{}'::jsonb, p_options jsonb DEFAULT '{}'::jsonb) RETURNS public.followup_schedules
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_row     public.followup_schedules;
    v_contact bigint := gleaner.require_own_contact(p_prospect_id);
    v_unknown text;
begin
    select k.key into v_unknown from jsonb_object_keys(p_options) as k (key)
    where k.key not in ('name', 'missed', 'missed_limit', 'tolerance', 'until_reply', 'ends_at', 'action_type') limit 1;
    if found then
        raise exception 'there is no option %', v_unknown using errcode = 'GL002',
            hint = 'There are name, missed, missed_limit, tolerance, until_reply, ends_at and action_type.';
    end if;
    if not exists (select from pg_catalog.pg_timezone_names as z where z.name = p_time_zone) then
        raise exception '% is not a time zone', p_time_zone
            using errcode = 'GL002', hint = 'Write one as in pg_timezone_names, such as Europe/Berlin.';
    end if;
    insert into public.followup_schedules (
        prospect_id, contact_id, cron, time_zone, payload, name, missed, missed_limit, tolerance, until_reply, ends_at, action_type)
    values (
        p_prospect_id, v_contact, p_cron, p_time_zone, coalesce(p_payload, '{}'), p_options ->> 'name',
        coalesce(p_options ->> 'missed', 'latest'), coalesce((p_options ->> 'missed_limit')::integer, 10),
        coalesce((p_options ->> 'tolerance')::interval, '5 minutes'), coalesce((p_options ->> 'until_reply')::boolean, false),
        (p_options ->> 'ends_at')::timestamptz, coalesce(p_options ->> 'action_type', 'follow_up'))
    returning * into v_row;
    return v_row;
end
$$;

COMMENT ON FUNCTION public.schedule_recurring_followup(p_prospect_id text, p_cron text, p_time_zone text, p_payload jsonb, p_options jsonb) IS 'Plans a message that recurs, to a contact of the caller''s own.';

CREATE FUNCTION public.search_activities(p_text text, p_status text DEFAULT NULL::text, p_type text DEFAULT NULL::text, p_owner bigint DEFAULT NULL::bigint, p_unowned boolean DEFAULT false, p_channel uuid DEFAULT NULL::uuid, p_contact bigint DEFAULT NULL::bigint, p_before timestamp with time zone DEFAULT NULL::timestamp with time zone, p_id uuid DEFAULT NULL::uuid) RETURNS SETOF public.activities
    LANGUAGE sql STABLE ROWS 60
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select a.*
    from gleaner.match_words(p_text, p_status, p_type, p_owner, p_unowned, p_channel, p_contact, p_before, p_id) as found (id)
    join public.activities as a on a.id = found.id
$$;

COMMENT ON FUNCTION public.search_activities(p_text text, p_status text, p_type text, p_owner bigint, p_unowned boolean, p_channel uuid, p_contact bigint, p_before timestamp with time zone, p_id uuid) IS 'Activities that contain all these words.';

CREATE FUNCTION public.touch_execution_jobs() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    new.updated_at := clock_timestamp();
    if new.status is distinct from old.status then
        new.version := old.version + 1;
    end if;
    return new;
end
$$;

COMMENT ON FUNCTION public.touch_execution_jobs() IS 'Keeps version and updated_at of test runs.';

CREATE FUNCTION public.touch_scheduled_actions() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    if tg_op = 'INSERT' then
        new.contact_id := coalesce(new.contact_id, gleaner.contact_of_prospect(new.prospect_id));
        new.prospect_id := coalesce(new.prospect_id, 'contact:' || new.contact_id);
        return new;
    end if;
    new.updated_at := clock_timestamp();
    if new.prospect_id is distinct from old.prospect_id and new.contact_id is not distinct from old.contact_id then
        new.contact_id := gleaner.contact_of_prospect(new.prospect_id);
    end if;
    if new.status is distinct from old.status then
        new.executed_at := case when new.status = 'executed' then coalesce(new.executed_at, new.updated_at) end;
        if new.status = 'pending' and old.status in ('executed', 'cancelled', 'failed') then
            new.armed_at := new.updated_at;
            new.cancelled_reason := null;
            if old.status = 'executed' then
                select gen_random_uuid(), null, null into new.idempotency_key, new.message, new.result;
            end if;
        end if;
        if new.status in ('processing', 'executed', 'cancelled') then
            new.deferred_reason := null;
        end if;
    end if;
    return new;
end
$$;

COMMENT ON FUNCTION public.touch_scheduled_actions() IS 'Keeps the contact, updated_at, executed_at and armed_at of follow-ups.';

CREATE FUNCTION public.unlock_stale_locks() RETURNS integer
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select case when gleaner.is_trusted() or gleaner.is_member() then gleaner.recover_activities() else 0 end
$$;

COMMENT ON FUNCTION public.unlock_stale_locks() IS 'Gives activities whose lease has ended back; returns how many.';

CREATE TABLE auth.identities (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    provider_id text NOT NULL,
    user_id uuid NOT NULL,
    identity_data jsonb NOT NULL,
    provider text NOT NULL,
    last_sign_in_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    email text GENERATED ALWAYS AS (lower((identity_data ->> 'email'::text))) STORED
);

COMMENT ON TABLE auth.identities IS 'How a user proves who it is; here always by e-mail address and password.';

CREATE TABLE auth.one_time_tokens (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    user_id uuid NOT NULL,
    token_type text NOT NULL,
    token_hash text NOT NULL,
    relates_to text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT one_time_tokens_type_check CHECK ((token_type = ANY (ARRAY['invite'::text, 'recovery'::text, 'signup'::text])))
);

COMMENT ON TABLE auth.one_time_tokens IS 'Links that were given out and not yet used.';

COMMENT ON COLUMN auth.one_time_tokens.relates_to IS 'The address the link was meant for; a changed address voids it.';

CREATE TABLE auth.refresh_tokens (
    id bigint NOT NULL,
    token text NOT NULL,
    user_id uuid NOT NULL,
    session_id uuid NOT NULL,
    parent text,
    revoked boolean DEFAULT false NOT NULL,
    reused_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE auth.refresh_tokens IS 'Every refresh token of a session, the latest unrevoked.';

COMMENT ON COLUMN auth.refresh_tokens.token IS 'Only the public half. What the client holds adds a signature made with the project secret: this table refreshes nothing.';

COMMENT ON COLUMN auth.refresh_tokens.reused_at IS 'When it was taken once more as the parent of the active one.';

ALTER TABLE auth.refresh_tokens ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME auth.refresh_tokens_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE auth.sessions (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    user_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    refreshed_at timestamp with time zone,
    not_after timestamp with time zone,
    aal text DEFAULT 'aal1'::text NOT NULL,
    method text DEFAULT 'password'::text NOT NULL,
    user_agent text,
    ip inet
);

COMMENT ON TABLE auth.sessions IS 'One row per sign-in; its id is the claim session_id.';

COMMENT ON COLUMN auth.sessions.method IS 'What was proven: password, or otp for a link.';

CREATE TABLE auth.users (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    aud text DEFAULT 'authenticated'::text NOT NULL,
    role text DEFAULT 'authenticated'::text NOT NULL,
    email text,
    encrypted_password text,
    email_confirmed_at timestamp with time zone,
    invited_at timestamp with time zone,
    last_sign_in_at timestamp with time zone,
    raw_app_meta_data jsonb DEFAULT '{"provider": "email", "providers": ["email"]}'::jsonb NOT NULL,
    raw_user_meta_data jsonb DEFAULT '{}'::jsonb NOT NULL,
    phone text,
    banned_until timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    is_anonymous boolean DEFAULT false NOT NULL,
    CONSTRAINT users_email_lower_case CHECK ((email = lower(email))),
    CONSTRAINT users_meta_data_objects CHECK (((jsonb_typeof(raw_app_meta_data) = 'object'::text) AND (jsonb_typeof(raw_user_meta_data) = 'object'::text)))
);

COMMENT ON TABLE auth.users IS 'People who can sign in.';

COMMENT ON COLUMN auth.users.encrypted_password IS 'argon2id in PHC form; bcrypt of imported users until they next sign in; null: no password yet.';

COMMENT ON COLUMN auth.users.banned_until IS 'Until then the user neither signs in nor refreshes.';

CREATE TABLE gleaner.activity_words (
    activity_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    words tsvector NOT NULL
);

COMMENT ON TABLE gleaner.activity_words IS 'The words of each activity, for public.search_activities.';

COMMENT ON COLUMN gleaner.activity_words.created_at IS 'When the activity was created, so that the newest are chosen without reading it.';

CREATE TABLE gleaner.adopted_table (
    name text NOT NULL,
    system text NOT NULL,
    adopted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    own_rights boolean NOT NULL,
    changes text[] DEFAULT '{}'::text[] NOT NULL,
    afterwards text[] DEFAULT '{}'::text[] NOT NULL
);

COMMENT ON TABLE gleaner.adopted_table IS 'Tables that were there before the system they belong to, and what migrate added to them.';

COMMENT ON COLUMN gleaner.adopted_table.own_rights IS 'Whether the table''s own grants and policies decide; else those of the system''s files, which are written for both.';

COMMENT ON COLUMN gleaner.adopted_table.changes IS 'What migrate added, or did not add and why, for people to read.';

COMMENT ON COLUMN gleaner.adopted_table.afterwards IS 'Index builds and validations still to be run; empty once migrate has run to its end.';

CREATE TABLE gleaner.api_key (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    hash bytea NOT NULL,
    hint text NOT NULL,
    queues text[],
    kinds text[],
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_used_at timestamp with time zone,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT api_key_role_check CHECK ((role = ANY (ARRAY['worker'::text, 'service'::text, 'anon'::text]))),
    CONSTRAINT api_key_scope_check CHECK (((role = 'worker'::text) OR ((queues IS NULL) AND (kinds IS NULL))))
);

COMMENT ON TABLE gleaner.api_key IS 'Keys of programs: worker (sees only what it holds), service (everything), anon (a publishable project key).';

COMMENT ON COLUMN gleaner.api_key.hash IS 'sha256 of the key.';

COMMENT ON COLUMN gleaner.api_key.hint IS 'Its first characters, to recognise it by.';

COMMENT ON COLUMN gleaner.api_key.queues IS 'The queues it may work; null: every one its role may.';

COMMENT ON COLUMN gleaner.api_key.kinds IS 'The kinds it may claim; null: every one.';

COMMENT ON COLUMN gleaner.api_key.last_used_at IS 'To the minute.';

CREATE TABLE gleaner.audit (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    queue text NOT NULL,
    tenant text DEFAULT ''::text NOT NULL,
    key text NOT NULL,
    act text NOT NULL,
    caller text NOT NULL,
    detail jsonb
);

ALTER TABLE gleaner.audit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME gleaner.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE SEQUENCE gleaner.batch_lease_seq
    START WITH 0
    INCREMENT BY 1
    MINVALUE 0
    MAXVALUE 1023
    CACHE 1
    CYCLE;

CREATE TABLE gleaner.batch_lease (
    id bigint DEFAULT ((((EXTRACT(epoch FROM clock_timestamp()) * (1000)::numeric))::bigint * 1024) + nextval('gleaner.batch_lease_seq'::regclass)) NOT NULL,
    queue text NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    keys int8multirange NOT NULL,
    mark smallint NOT NULL,
    remaining integer NOT NULL,
    begun int8multirange DEFAULT '{}'::int8multirange NOT NULL,
    agent text,
    session text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    deadline_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

COMMENT ON TABLE gleaner.batch_lease IS 'Rows that one claim took together: one lease for all of them.';

CREATE UNLOGGED TABLE gleaner.change (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    relation oid NOT NULL,
    kind "char" NOT NULL,
    new_row text,
    old_row text,
    CONSTRAINT change_kind_check CHECK ((kind = ANY (ARRAY['I'::"char", 'U'::"char", 'D'::"char"])))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000');

COMMENT ON TABLE gleaner.change IS 'Changes of published tables, where a server follows them without the log.';

COMMENT ON COLUMN gleaner.change.new_row IS 'The row in its text form; null for a delete.';

COMMENT ON COLUMN gleaner.change.old_row IS 'The beginning of the old row: of a delete, or of an update that changed the key.';

ALTER TABLE gleaner.change ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME gleaner.change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE UNLOGGED SEQUENCE gleaner.changes_generation
    START WITH 0
    INCREMENT BY 1
    MINVALUE 0
    NO MAXVALUE
    CACHE 1;

COMMENT ON SEQUENCE gleaner.changes_generation IS 'Another number after every loss of gleaner.change; 0 until somebody follows again.';

CREATE SEQUENCE gleaner.changes_pruned_before
    START WITH 0
    INCREMENT BY 1
    MINVALUE 0
    NO MAXVALUE
    CACHE 1;

COMMENT ON SEQUENCE gleaner.changes_pruned_before IS 'Changes of transactions before this one may be gone.';

CREATE SEQUENCE gleaner.changes_wanted_until
    START WITH 0
    INCREMENT BY 1
    MINVALUE 0
    NO MAXVALUE
    CACHE 1;

COMMENT ON SEQUENCE gleaner.changes_wanted_until IS 'Until then (milliseconds since 1970) somebody follows, and changes are noted.';

CREATE TABLE gleaner.contact_settings (
    only_row boolean DEFAULT true NOT NULL,
    default_region text DEFAULT 'US'::text NOT NULL,
    CONSTRAINT contact_settings_default_region_check CHECK ((default_region ~ '^[A-Z]{2}$'::text)),
    CONSTRAINT contact_settings_only_row_check CHECK (only_row)
);

COMMENT ON TABLE gleaner.contact_settings IS 'How addresses of contacts are read. One row.';

COMMENT ON COLUMN gleaner.contact_settings.default_region IS 'The country of telephone numbers written without one, two letters. Changing it has all numbers of contacts read again.';

CREATE TABLE gleaner.deleted_user (
    id uuid NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

COMMENT ON TABLE gleaner.deleted_user IS 'Users who were deleted; their tokens are refused.';

CREATE TABLE gleaner.forgotten_artefacts (
    artefact_id uuid NOT NULL,
    run_id uuid NOT NULL,
    sha256 text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE gleaner.forgotten_artefacts IS 'Deleted artefacts whose files are still to be deleted.';

CREATE TABLE gleaner.forgotten_dump_files (
    dump_id uuid NOT NULL,
    sha256 text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE gleaner.forgotten_dump_files IS 'Deleted dumps whose files are still to be deleted.';

CREATE TABLE gleaner.forgotten_files (
    activity_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE gleaner.forgotten_files IS 'Deleted activities whose recordings and attachments are still to be deleted.';

COMMENT ON COLUMN gleaner.forgotten_files.at IS 'When the activity was deleted.';

CREATE TABLE gleaner.ingest_memory (
    provider_id uuid NOT NULL,
    key text NOT NULL,
    value jsonb DEFAULT '{}'::jsonb NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE gleaner.ingest_memory IS 'What one request of a channel leaves for the next; forgotten when it expires.';

COMMENT ON COLUMN gleaner.ingest_memory.key IS 'A provider''s own, or once:TOKEN for a token that may be used once.';

CREATE TABLE gleaner.ingest_refusal (
    provider_id uuid,
    at_minute timestamp with time zone NOT NULL,
    reason text NOT NULL,
    status integer NOT NULL,
    count bigint NOT NULL,
    last_at timestamp with time zone NOT NULL,
    last_client inet,
    detail text
);

COMMENT ON TABLE gleaner.ingest_refusal IS 'Requests turned away, counted per channel, minute and reason.';

COMMENT ON COLUMN gleaner.ingest_refusal.provider_id IS 'The channel; null for a key that belongs to none.';

ALTER TABLE gleaner.jobs ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME gleaner.jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE gleaner.late_result (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    queue text NOT NULL,
    tenant text DEFAULT ''::text NOT NULL,
    key text NOT NULL,
    lease bigint NOT NULL,
    caller text,
    result jsonb
);

ALTER TABLE gleaner.late_result ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME gleaner.late_result_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE gleaner.media_reference (
    activity_id uuid NOT NULL,
    provider_id uuid NOT NULL,
    media jsonb NOT NULL
);

COMMENT ON TABLE gleaner.media_reference IS 'The files of activities that came through a channel, as recorded on arrival.';

COMMENT ON COLUMN gleaner.media_reference.provider_id IS 'The channel whose credentials fetch them.';

COMMENT ON COLUMN gleaner.media_reference.media IS '[{place, content_type, name}], in the order in which they are numbered.';

CREATE TABLE gleaner.migration (
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    took_ms bigint NOT NULL
);

CREATE TABLE gleaner.migration_lock (
    id integer DEFAULT 1 NOT NULL,
    holder text DEFAULT ''::text NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    backend_pid integer,
    backend_start timestamp with time zone,
    CONSTRAINT migration_lock_single CHECK ((id = 1))
);

CREATE TABLE gleaner.operation (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    queue text NOT NULL,
    act text NOT NULL,
    filter jsonb NOT NULL,
    caller text NOT NULL,
    state text DEFAULT 'running'::text NOT NULL,
    total integer NOT NULL,
    done integer DEFAULT 0 NOT NULL,
    already integer DEFAULT 0 NOT NULL,
    failed integer DEFAULT 0 NOT NULL,
    stopped boolean DEFAULT false NOT NULL,
    error text,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT operation_state_known CHECK ((state = ANY (ARRAY['running'::text, 'done'::text, 'stopped'::text, 'failed'::text, 'interrupted'::text])))
);

COMMENT ON TABLE gleaner.operation IS 'Acts of an operator on many rows, and how far they have come.';

CREATE TABLE gleaner.pause (
    queue text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    caller text NOT NULL,
    reason text
);

COMMENT ON TABLE gleaner.pause IS 'Queues in which claims find nothing, until they are resumed.';

CREATE TABLE gleaner.prune_mark (
    queue text NOT NULL,
    begins bigint NOT NULL,
    oldest timestamp with time zone NOT NULL,
    unread_since timestamp with time zone
);

COMMENT ON TABLE gleaner.prune_mark IS 'Stretches of keys that prune has walked, and the earliest end it left in each.';

COMMENT ON COLUMN gleaner.prune_mark.oldest IS 'Nothing in the stretch ended earlier: until this is too old, nobody need look.';

COMMENT ON COLUMN gleaner.prune_mark.unread_since IS 'Since when `oldest` is inferred from the rows before, and not read; null when it was read.';

CREATE TABLE gleaner.queue (
    name text NOT NULL,
    table_name text NOT NULL,
    declaration jsonb NOT NULL,
    source text NOT NULL,
    added jsonb DEFAULT '{}'::jsonb NOT NULL,
    rendered text NOT NULL,
    attached_at timestamp with time zone DEFAULT now() NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT queue_name_plain CHECK ((name ~ '^[a-z][a-z0-9_]{0,39}$'::text))
);

COMMENT ON TABLE gleaner.queue IS 'Every attached table; servers and agents find their queues here.';

COMMENT ON COLUMN gleaner.queue.source IS 'The declaration as its author wrote it (TOML).';

COMMENT ON COLUMN gleaner.queue.added IS 'What attach put on the table, and so what detach takes off again.';

COMMENT ON COLUMN gleaner.queue.rendered IS 'The SQL that `gleaner sql` prints, exactly as it was run.';

CREATE TABLE gleaner.raw_request (
    id uuid NOT NULL,
    provider_id uuid NOT NULL,
    received_at timestamp with time zone NOT NULL,
    method text NOT NULL,
    target text NOT NULL,
    headers jsonb DEFAULT '{}'::jsonb NOT NULL,
    body bytea,
    body_file text,
    outcome text NOT NULL,
    activity_ids uuid[] DEFAULT '{}'::uuid[] NOT NULL
);
ALTER TABLE gleaner.raw_request ALTER COLUMN body SET STORAGE EXTERNAL;

COMMENT ON TABLE gleaner.raw_request IS 'Authentic requests as they came, for replay; pruned by age and number.';

COMMENT ON COLUMN gleaner.raw_request.target IS 'Path and query, the ingestion key replaced.';

COMMENT ON COLUMN gleaner.raw_request.headers IS 'Without credentials and signatures: a replay reads again, it does not verify again.';

COMMENT ON COLUMN gleaner.raw_request.body_file IS 'Where a body too large for a row was put; body is null then.';

COMMENT ON COLUMN gleaner.raw_request.outcome IS 'stored or nothing; a request that only repeated an event is not kept.';

CREATE TABLE gleaner.rejected_row (
    queue text NOT NULL,
    tenant text DEFAULT ''::text NOT NULL,
    key text NOT NULL,
    until timestamp with time zone NOT NULL,
    tries integer DEFAULT 1 NOT NULL,
    reason text NOT NULL
);

CREATE TABLE gleaner.request (
    queue text NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    keys text[] DEFAULT '{}'::text[] NOT NULL,
    leases bigint[] DEFAULT '{}'::bigint[] NOT NULL
);

CREATE TABLE gleaner.system (
    name text NOT NULL,
    added_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.activity_failures (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    original_activity_id uuid,
    failure_reason text,
    raw_data jsonb,
    created_at timestamp with time zone DEFAULT now()
);

COMMENT ON TABLE public.activity_failures IS 'Dead letters of activities; one row each time an activity was given up.';

CREATE TABLE public.baskets (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    workspace_id uuid NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE public.baskets IS 'Collections within a workspace.';

CREATE TABLE public.blocks (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    basket_id uuid NOT NULL,
    title text NOT NULL,
    content text DEFAULT ''::text NOT NULL,
    semantic_type text NOT NULL,
    confidence_score numeric,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    dump_id uuid,
    CONSTRAINT blocks_confidence_score_check CHECK (((confidence_score >= (0)::numeric) AND (confidence_score <= (1)::numeric)))
);

COMMENT ON TABLE public.blocks IS 'Structured insights extracted from dumps.';

COMMENT ON COLUMN public.blocks.dump_id IS 'The dump it was extracted from. Null if the worker that stored it did not say.';

CREATE TABLE public.contact_addresses (
    contact_id bigint NOT NULL,
    kind text NOT NULL,
    address text NOT NULL,
    written text DEFAULT ''::text NOT NULL,
    loose text,
    parsed boolean DEFAULT true NOT NULL,
    written_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT contact_addresses_kind_check CHECK ((kind = ANY (ARRAY['email'::text, 'phone'::text])))
);

COMMENT ON TABLE public.contact_addresses IS 'Normalised e-mail addresses and telephone numbers of contacts, for matching.';

COMMENT ON COLUMN public.contact_addresses.address IS 'As normalize_email or normalize_phone give it.';

COMMENT ON COLUMN public.contact_addresses.written IS 'What the contact has, as somebody typed it.';

COMMENT ON COLUMN public.contact_addresses.loose IS 'The form of the second look: an e-mail address without tag, the last ten digits of a number in country code 1 or without country.';

COMMENT ON COLUMN public.contact_addresses.parsed IS 'False while address is only what SQL could make of it.';

COMMENT ON COLUMN public.contact_addresses.written_at IS 'When the contact got it.';

CREATE TABLE public.contact_identities (
    contact_id bigint NOT NULL,
    kind text NOT NULL,
    value text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT contact_identities_kind_check CHECK ((kind ~ '^[a-z][a-z0-9_]{0,31}$'::text)),
    CONSTRAINT contact_identities_value_check CHECK (((value <> ''::text) AND (octet_length(value) <= 512)))
);

COMMENT ON TABLE public.contact_identities IS 'Further names of contacts: (telegram, 7836623698), (prospect, 4711).';

COMMENT ON COLUMN public.contact_identities.kind IS 'Whose name it is: telegram, prospect, or any other word.';

COMMENT ON COLUMN public.contact_identities.value IS 'The name itself, exactly as the other system writes it.';

CREATE TABLE public.contact_preferences (
    contact_id bigint,
    time_zone text DEFAULT 'UTC'::text NOT NULL,
    quiet_from time without time zone,
    quiet_until time without time zone,
    daily_limit integer,
    approval boolean DEFAULT false NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT contact_preferences_daily_limit_check CHECK ((daily_limit > 0)),
    CONSTRAINT contact_preferences_quiet_check CHECK (((quiet_from IS NULL) = (quiet_until IS NULL)))
);

COMMENT ON TABLE public.contact_preferences IS 'When a contact may be written to, and how often. The row without contact holds for all others.';

COMMENT ON COLUMN public.contact_preferences.time_zone IS 'Name of a time zone, such as Europe/Berlin; days and quiet hours are counted there.';

COMMENT ON COLUMN public.contact_preferences.quiet_from IS 'Nothing is sent from this time on …';

COMMENT ON COLUMN public.contact_preferences.quiet_until IS '… until this one, on the next day if it is earlier.';

COMMENT ON COLUMN public.contact_preferences.daily_limit IS 'At most so many messages a local day; null for any number.';

COMMENT ON COLUMN public.contact_preferences.approval IS 'Whether a person approves each message before it is sent.';

CREATE TABLE public.contacts (
    id bigint NOT NULL,
    first_name text,
    last_name text,
    title text,
    company_id bigint,
    sales_id bigint,
    tags text[],
    first_seen timestamp with time zone DEFAULT now(),
    last_seen timestamp with time zone,
    email text,
    phone_number text,
    email_jsonb jsonb,
    phone_jsonb jsonb
);

COMMENT ON TABLE public.contacts IS 'People on the other end of calls and messages.';

ALTER TABLE public.contacts ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.contacts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.context_item_sources (
    context_item_id uuid NOT NULL,
    dump_id uuid,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE public.context_item_sources IS 'Which dumps mention an entity, and what each says of it.';

COMMENT ON COLUMN public.context_item_sources.dump_id IS 'Null if the worker that stored the entity did not say where it came from.';

CREATE TABLE public.context_items (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    basket_id uuid NOT NULL,
    kind text NOT NULL,
    label text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE public.context_items IS 'Entities and concepts of a basket, once each.';

CREATE TABLE public.crm_processing_nodes (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    sales_id bigint NOT NULL,
    app_name text DEFAULT 'atomic-crm'::text NOT NULL,
    device_name text NOT NULL,
    status text DEFAULT 'ready'::text NOT NULL,
    current_activity_id uuid,
    processed_count integer DEFAULT 0 NOT NULL,
    last_heartbeat timestamp with time zone DEFAULT now() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT crm_processing_nodes_status_check CHECK ((status = ANY (ARRAY['ready'::text, 'processing'::text, 'offline'::text])))
);

COMMENT ON TABLE public.crm_processing_nodes IS 'Agents by owner and device, for display only; silent for two minutes means offline.';

CREATE TABLE public.do_not_contact (
    address text NOT NULL,
    contact_id bigint,
    reason text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE public.do_not_contact IS 'People who asked not to be written to, or cannot be.';

COMMENT ON COLUMN public.do_not_contact.address IS 'An e-mail address, a number in E.164, telegram:ID, or contact:ID.';

CREATE VIEW public.dump_agents WITH (security_invoker='true') AS
 SELECT agent,
    completed,
    running,
    round(busy, 3) AS busy_seconds,
    round((busy / GREATEST(since, 0.001)), 3) AS busy_share,
    round(((1)::numeric - (busy / GREATEST(since, 0.001))), 3) AS idle_share
   FROM ( SELECT claimed_by AS agent,
            count(*) FILTER (WHERE (processing_state = 'completed'::public.processing_state)) AS completed,
            count(*) FILTER (WHERE (processing_state = ANY (ARRAY['claimed'::public.processing_state, 'processing'::public.processing_state]))) AS running,
            ( SELECT COALESCE(sum(EXTRACT(epoch FROM (upper(span) - lower(span)))), (0)::numeric) AS "coalesce"
                   FROM unnest(range_agg(span)) span(span)) AS busy,
            EXTRACT(epoch FROM (now() - min(lower(span)))) AS since
           FROM (public.agent_processing_queue q
             CROSS JOIN LATERAL ( SELECT tstzrange(GREATEST(claimed_at, (now() - '01:00:00'::interval)), GREATEST(COALESCE(completed_at, now()), claimed_at, (now() - '01:00:00'::interval))) AS span) held_from)
          WHERE ((claimed_by IS NOT NULL) AND (((processing_state = 'completed'::public.processing_state) AND (completed_at > (now() - '01:00:00'::interval))) OR (processing_state = ANY (ARRAY['claimed'::public.processing_state, 'processing'::public.processing_state]))))
          GROUP BY claimed_by) held;

COMMENT ON VIEW public.dump_agents IS 'How busy each agent was with dumps in the last hour.';

CREATE VIEW public.failed_dumps WITH (security_invoker='true') AS
 SELECT id,
    dump_id,
    basket_id,
    workspace_id,
    processing_state,
    claimed_at,
    claimed_by,
    completed_at,
    attempts,
    error_message,
    created_at,
    progress
   FROM public.agent_processing_queue q
  WHERE ((processing_state = 'failed'::public.processing_state) AND (attempts >= 3))
  ORDER BY created_at
 LIMIT 1000;

COMMENT ON VIEW public.failed_dumps IS 'Failed dumps needing attention; at most 1,000.';

CREATE TABLE public.ingestion_providers (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    provider_code text NOT NULL,
    name text NOT NULL,
    is_active boolean DEFAULT true NOT NULL,
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    sales_id bigint,
    ingestion_key text DEFAULT encode(sha256(((((gen_random_uuid())::text || (gen_random_uuid())::text) || (gen_random_uuid())::text))::bytea), 'hex'::text) NOT NULL,
    auto_create_contacts boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    key_hash bytea,
    previous_key_hash bytea,
    previous_key_expires timestamp with time zone,
    sealed_key text,
    sealed_config text,
    sealed boolean DEFAULT false NOT NULL,
    secrets_expire jsonb DEFAULT '{}'::jsonb NOT NULL,
    state text DEFAULT 'ready'::text NOT NULL,
    state_detail text,
    version bigint DEFAULT 1 NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT ingestion_providers_state_check CHECK ((state = ANY (ARRAY['ready'::text, 'needs_reauth'::text])))
);

COMMENT ON TABLE public.ingestion_providers IS 'Inbound channels: provider, secrets, and who owns what arrives.';

COMMENT ON COLUMN public.ingestion_providers.provider_code IS 'twilio, postmark, gmail, generic.';

COMMENT ON COLUMN public.ingestion_providers.config IS 'Settings of the provider. Secret values read ********: writing that back keeps them, writing anything else replaces them.';

COMMENT ON COLUMN public.ingestion_providers.sales_id IS 'Owner of what arrives here; null for work that belongs to nobody.';

COMMENT ON COLUMN public.ingestion_providers.ingestion_key IS 'Secret part of the webhook''s URL, masked once sealed (ik_…): writing the mask back keeps the key, another text replaces it.';

COMMENT ON COLUMN public.ingestion_providers.auto_create_contacts IS 'Whether an unknown sender becomes a contact.';

COMMENT ON COLUMN public.ingestion_providers.key_hash IS 'SHA-256 of the ingestion key, by which the door finds the channel; kept by trigger.';

COMMENT ON COLUMN public.ingestion_providers.previous_key_hash IS 'Hash of the key before the last rotation, valid until previous_key_expires.';

COMMENT ON COLUMN public.ingestion_providers.sealed_key IS 'The ingestion key, sealed with the master key for this row alone.';

COMMENT ON COLUMN public.ingestion_providers.sealed_config IS 'The secret values of config, sealed with the master key for this row alone.';

COMMENT ON COLUMN public.ingestion_providers.sealed IS 'False after somebody wrote a key or settings in clear, until the server has sealed them.';

COMMENT ON COLUMN public.ingestion_providers.secrets_expire IS 'When previous secrets end: {"auth_token_previous": "2026-11-17T10:00:00Z"}.';

COMMENT ON COLUMN public.ingestion_providers.state IS 'ready, or needs_reauth when the provider has withdrawn its consent.';

COMMENT ON COLUMN public.ingestion_providers.state_detail IS 'Why the channel is not ready, for people.';

COMMENT ON COLUMN public.ingestion_providers.version IS 'Counts changes; whoever writes sealed columns must name the next one.';

CREATE VIEW public.processing_performance WITH (security_invoker='true') AS
 SELECT date_trunc('hour'::text, completed_at) AS hour,
    count(*) AS completed,
    avg(EXTRACT(epoch FROM (completed_at - created_at))) AS avg_duration_seconds,
    max(attempts) AS max_attempts
   FROM public.agent_processing_queue q
  WHERE ((processing_state = 'completed'::public.processing_state) AND (completed_at > (now() - '24:00:00'::interval)))
  GROUP BY (date_trunc('hour'::text, completed_at))
  ORDER BY (date_trunc('hour'::text, completed_at)) DESC;

COMMENT ON VIEW public.processing_performance IS 'Finished dumps of the last 24 hours: number, duration from capture, attempts.';

CREATE TABLE public.workspaces (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE public.workspaces IS 'Teams whose dumps are kept apart.';

CREATE VIEW public.queue_depth_by_workspace WITH (security_invoker='true') AS
 SELECT name AS workspace,
    (sum(pending))::bigint AS pending_dumps
   FROM (public.workspaces w
     CROSS JOIN LATERAL ( SELECT count(*) AS pending
           FROM ( SELECT
                   FROM public.agent_processing_queue queue
                  WHERE ((workspace_id = id) AND (processing_state = 'pending'::public.processing_state))
                 LIMIT 10000) waiting) q)
  WHERE (pending > 0)
  GROUP BY name
  ORDER BY ((sum(pending))::bigint) DESC;

COMMENT ON VIEW public.queue_depth_by_workspace IS 'Waiting dumps by workspace, counted up to 10,000 in each.';

CREATE VIEW public.queue_health WITH (security_invoker='true') AS
 SELECT processing_state,
    count,
    avg_age_seconds,
    max_age_seconds
   FROM (unnest(enum_range(NULL::public.processing_state)) state(processing_state)
     CROSS JOIN LATERAL ( SELECT count(*) AS count,
            avg(EXTRACT(epoch FROM (now() - created_at))) AS avg_age_seconds,
            max(EXTRACT(epoch FROM (now() - created_at))) AS max_age_seconds
           FROM ( SELECT created_at
                   FROM public.agent_processing_queue queue
                  WHERE (processing_state = processing_state)
                  ORDER BY created_at
                 LIMIT 100000) oldest) q)
  WHERE (count > 0);

COMMENT ON VIEW public.queue_health IS 'Dumps by state: how many (counted up to 100,000) and how old.';

CREATE TABLE public.raw_dumps (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    basket_id uuid NOT NULL,
    body_md text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    file_name text,
    file_size bigint,
    media_type text,
    file_sha256 text,
    CONSTRAINT raw_dumps_file_sha256_check CHECK ((file_sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT raw_dumps_file_whole_check CHECK ((num_nonnulls(file_name, file_size, media_type, file_sha256) = ANY (ARRAY[0, 4])))
);

COMMENT ON TABLE public.raw_dumps IS 'Captured text, kept as it came; each one is queued for processing as it arrives.';

COMMENT ON COLUMN public.raw_dumps.body_md IS 'The text: as it was captured, or as it was read from the file.';

COMMENT ON COLUMN public.raw_dumps.file_name IS 'Name of the file it was added as; null for captured text.';

COMMENT ON COLUMN public.raw_dumps.file_size IS 'In bytes.';

COMMENT ON COLUMN public.raw_dumps.file_sha256 IS 'SHA-256 of the file, in hexadecimal digits.';

CREATE TABLE public.recording_versions (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    recording_id uuid NOT NULL,
    version integer NOT NULL,
    format text NOT NULL,
    content jsonb NOT NULL,
    site text,
    created_by uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT recording_versions_content_check CHECK ((octet_length((content)::text) <= 1048576)),
    CONSTRAINT recording_versions_format_check CHECK ((format = ANY (ARRAY['recorder'::text, 'steps'::text])))
);

COMMENT ON TABLE public.recording_versions IS 'The steps of a recording. A version is never changed.';

COMMENT ON COLUMN public.recording_versions.version IS 'Counted from 1; set by the database.';

COMMENT ON COLUMN public.recording_versions.format IS 'recorder: Chrome''s Recorder; steps: our own list. Set by the database.';

COMMENT ON COLUMN public.recording_versions.site IS 'Host and port that the first step opens; null if the data of the run says it.';

CREATE TABLE public.recordings (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    created_by uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT recordings_name_check CHECK (((btrim(name) <> ''::text) AND (length(name) <= 200)))
);

COMMENT ON TABLE public.recordings IS 'Recorded steps in a browser, by name.';

COMMENT ON COLUMN public.recordings.created_by IS 'Who added it; null for the service key.';

CREATE TABLE public.run_artefacts (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    run_id uuid NOT NULL,
    row_number integer NOT NULL,
    step integer NOT NULL,
    name text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    sha256 text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT run_artefacts_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text))
);

COMMENT ON TABLE public.run_artefacts IS 'Screenshots of a run. The files are in the server''s file store.';

COMMENT ON COLUMN public.run_artefacts.size IS 'In bytes.';

COMMENT ON COLUMN public.run_artefacts.expires_at IS 'When the server deletes it.';

CREATE TABLE public.run_rows (
    run_id uuid NOT NULL,
    row_number integer NOT NULL,
    status text NOT NULL,
    error text,
    failed_step integer,
    steps jsonb DEFAULT '[]'::jsonb NOT NULL,
    duration_ms integer NOT NULL,
    worker_id text,
    finished_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT run_rows_status_check CHECK ((status = ANY (ARRAY['passed'::text, 'failed'::text])))
);

COMMENT ON TABLE public.run_rows IS 'Result of a run for one line of its data; a row is written once, when the line is finished.';

COMMENT ON COLUMN public.run_rows.row_number IS 'The line, counted from 1; without data there is one.';

COMMENT ON COLUMN public.run_rows.failed_step IS 'The step that failed, counted from 1.';

COMMENT ON COLUMN public.run_rows.steps IS 'The trace: [{step, do, status, duration_ms, tries, selector, url, error, refused}]. Secrets are masked.';

CREATE TABLE public.run_sites (
    site text NOT NULL,
    slots integer NOT NULL,
    CONSTRAINT run_sites_slots_check CHECK ((slots >= 0))
);

COMMENT ON TABLE public.run_sites IS 'How many runs may use a site at once, by all agents together. Zero: none.';

COMMENT ON COLUMN public.run_sites.site IS 'Host and port, as in execution_jobs.site.';

CREATE TABLE public.sales (
    id bigint NOT NULL,
    first_name text DEFAULT ''::text NOT NULL,
    last_name text DEFAULT ''::text NOT NULL,
    email text,
    user_id uuid,
    administrator boolean DEFAULT false NOT NULL,
    disabled boolean DEFAULT false NOT NULL,
    avatar jsonb,
    stale_threshold_minutes integer DEFAULT 5 NOT NULL,
    allow_remote_processing boolean DEFAULT true NOT NULL,
    CONSTRAINT sales_stale_threshold_minutes_check CHECK ((stale_threshold_minutes >= 0))
);

COMMENT ON TABLE public.sales IS 'People who own work. Their own row decides when, and whether, others may take it.';

COMMENT ON COLUMN public.sales.user_id IS 'The signed-in user (auth.users.id) this owner is.';

COMMENT ON COLUMN public.sales.stale_threshold_minutes IS 'Minutes before my work may be taken by others.';

COMMENT ON COLUMN public.sales.allow_remote_processing IS 'False keeps my work strictly local: nobody else takes it or sees it.';

ALTER TABLE public.sales ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.sales_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW public.stuck_dumps WITH (security_invoker='true') AS
 SELECT id,
    dump_id,
    basket_id,
    workspace_id,
    processing_state,
    claimed_at,
    claimed_by,
    completed_at,
    attempts,
    error_message,
    created_at,
    progress
   FROM public.agent_processing_queue q
  WHERE ((processing_state = ANY (ARRAY['claimed'::public.processing_state, 'processing'::public.processing_state])) AND (claimed_at < (now() - '00:10:00'::interval)))
  ORDER BY claimed_at
 LIMIT 1000;

COMMENT ON VIEW public.stuck_dumps IS 'Dumps taken more than ten minutes ago and not finished; at most 1,000.';

CREATE TABLE public.substrate_relationships (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    basket_id uuid NOT NULL,
    from_type text NOT NULL,
    from_id uuid NOT NULL,
    to_type text NOT NULL,
    to_id uuid NOT NULL,
    relationship_type text NOT NULL,
    strength numeric,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    dump_id uuid,
    description text,
    CONSTRAINT substrate_relationships_from_type_check CHECK ((from_type = ANY (ARRAY['dump'::text, 'block'::text, 'context_item'::text]))),
    CONSTRAINT substrate_relationships_strength_check CHECK (((strength >= (0)::numeric) AND (strength <= (1)::numeric))),
    CONSTRAINT substrate_relationships_to_type_check CHECK ((to_type = ANY (ARRAY['dump'::text, 'block'::text, 'context_item'::text])))
);

COMMENT ON TABLE public.substrate_relationships IS 'How dumps, blocks and context items of a basket relate.';

COMMENT ON COLUMN public.substrate_relationships.dump_id IS 'The dump it was found in. Null if the worker that stored it did not say.';

CREATE VIEW public.unmatched_activities WITH (security_invoker='true') AS
 SELECT id,
    type,
    direction,
    sales_id,
    processing_status,
    raw_data,
    processed_data,
    metadata,
    provider_id,
    created_at,
    sender_kind,
    sender_address,
    (metadata #> '{match,candidates}'::text[]) AS candidates
   FROM public.activities a
  WHERE ((contact_id IS NULL) AND (NOT ((processing_status = 'cancelled'::text) AND (metadata @> '{"test": true}'::jsonb))));

COMMENT ON VIEW public.unmatched_activities IS 'Activities without a contact, for a person to link.';

CREATE VIEW public.workspace_health WITH (security_invoker='true') AS
 SELECT id AS workspace_id,
    name AS workspace,
    pending,
    running,
    failed,
    oldest_pending_seconds,
    completed_24h,
    avg_duration_seconds,
    p95_duration_seconds
   FROM ((public.workspaces w
     CROSS JOIN LATERAL ( SELECT count(*) FILTER (WHERE (processing_state = 'pending'::public.processing_state)) AS pending,
            count(*) FILTER (WHERE (processing_state = ANY (ARRAY['claimed'::public.processing_state, 'processing'::public.processing_state]))) AS running,
            count(*) FILTER (WHERE (processing_state = 'failed'::public.processing_state)) AS failed,
            max(EXTRACT(epoch FROM (now() - created_at))) FILTER (WHERE (processing_state = 'pending'::public.processing_state)) AS oldest_pending_seconds
           FROM ( SELECT processing_state,
                    created_at
                   FROM (unnest('{pending,claimed,processing,failed}'::public.processing_state[]) state(processing_state)
                     CROSS JOIN LATERAL ( SELECT created_at
                           FROM public.agent_processing_queue queue
                          WHERE ((workspace_id = id) AND (processing_state = processing_state))
                         LIMIT 10000) found)) waiting) q)
     CROSS JOIN LATERAL ( SELECT count(*) AS completed_24h,
            avg(seconds) AS avg_duration_seconds,
            percentile_cont((0.95)::double precision) WITHIN GROUP (ORDER BY ((seconds)::double precision)) AS p95_duration_seconds
           FROM ( SELECT EXTRACT(epoch FROM (completed_at - created_at)) AS seconds
                   FROM public.agent_processing_queue queue
                  WHERE ((workspace_id = id) AND (processing_state = 'completed'::public.processing_state) AND (completed_at > (now() - '24:00:00'::interval)))
                 LIMIT 10000) took) done);

COMMENT ON VIEW public.workspace_health IS 'Dumps by workspace: waiting, running, failed, and the speed of the last 24 hours.';

CREATE TABLE public.workspace_invitations (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    workspace_id uuid NOT NULL,
    email text NOT NULL,
    role text DEFAULT 'member'::text NOT NULL,
    token_hash bytea NOT NULL,
    invited_by uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone DEFAULT (now() + '7 days'::interval) NOT NULL,
    accepted_at timestamp with time zone,
    accepted_by uuid,
    CONSTRAINT workspace_invitations_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'member'::text])))
);

COMMENT ON TABLE public.workspace_invitations IS 'Invitations to a workspace. The token itself is shown once and not stored.';

CREATE TABLE public.workspace_members (
    workspace_id uuid NOT NULL,
    user_id uuid NOT NULL,
    role text DEFAULT 'member'::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT workspace_members_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'member'::text])))
);

COMMENT ON TABLE public.workspace_members IS 'Who belongs to a workspace.';

ALTER TABLE auth.identities
    ADD CONSTRAINT identities_pkey PRIMARY KEY (id);

ALTER TABLE auth.identities
    ADD CONSTRAINT identities_provider_id_provider_key UNIQUE (provider_id, provider);

ALTER TABLE auth.one_time_tokens
    ADD CONSTRAINT one_time_tokens_pkey PRIMARY KEY (id);

ALTER TABLE auth.one_time_tokens
    ADD CONSTRAINT one_time_tokens_token_hash_key UNIQUE (token_hash);

ALTER TABLE auth.refresh_tokens
    ADD CONSTRAINT refresh_tokens_pkey PRIMARY KEY (id);

ALTER TABLE auth.refresh_tokens
    ADD CONSTRAINT refresh_tokens_token_key UNIQUE (token);

ALTER TABLE auth.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);

ALTER TABLE auth.users
    ADD CONSTRAINT users_email_key UNIQUE (email);

ALTER TABLE auth.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);

ALTER TABLE gleaner.activity_words
    ADD CONSTRAINT activity_words_pkey PRIMARY KEY (activity_id);

ALTER TABLE gleaner.adopted_table
    ADD CONSTRAINT adopted_table_pkey PRIMARY KEY (name);

ALTER TABLE gleaner.api_key
    ADD CONSTRAINT api_key_hash_key UNIQUE (hash);

ALTER TABLE gleaner.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);

ALTER TABLE gleaner.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);

ALTER TABLE gleaner.batch_lease
    ADD CONSTRAINT batch_lease_pkey PRIMARY KEY (id);

ALTER TABLE gleaner.bulk_range
    ADD CONSTRAINT bulk_range_pkey PRIMARY KEY (queue, kind, class, due_at, first);

ALTER TABLE gleaner.contact_settings
    ADD CONSTRAINT contact_settings_pkey PRIMARY KEY (only_row);

ALTER TABLE gleaner.deleted_user
    ADD CONSTRAINT deleted_user_pkey PRIMARY KEY (id);

ALTER TABLE gleaner.forgotten_artefacts
    ADD CONSTRAINT forgotten_artefacts_pkey PRIMARY KEY (artefact_id);

ALTER TABLE gleaner.forgotten_dump_files
    ADD CONSTRAINT forgotten_dump_files_pkey PRIMARY KEY (dump_id);

ALTER TABLE gleaner.forgotten_files
    ADD CONSTRAINT forgotten_files_pkey PRIMARY KEY (activity_id);

ALTER TABLE gleaner.ingest_memory
    ADD CONSTRAINT ingest_memory_pkey PRIMARY KEY (provider_id, key);

ALTER TABLE gleaner.ingest_refusal
    ADD CONSTRAINT ingest_refusal_key UNIQUE NULLS NOT DISTINCT (provider_id, at_minute, reason);

ALTER TABLE gleaner.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id) WITH (fillfactor='50');

ALTER TABLE gleaner.late_result
    ADD CONSTRAINT late_result_pkey PRIMARY KEY (id);

ALTER TABLE gleaner.media_reference
    ADD CONSTRAINT media_reference_pkey PRIMARY KEY (activity_id);

ALTER TABLE gleaner.migration_lock
    ADD CONSTRAINT migration_lock_pkey PRIMARY KEY (id);

ALTER TABLE gleaner.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (name);

ALTER TABLE gleaner.operation
    ADD CONSTRAINT operation_pkey PRIMARY KEY (id);

ALTER TABLE gleaner.pause
    ADD CONSTRAINT pause_pkey PRIMARY KEY (queue);

ALTER TABLE gleaner.polls
    ADD CONSTRAINT polls_pkey PRIMARY KEY (provider_id);

ALTER TABLE gleaner.prune_mark
    ADD CONSTRAINT prune_mark_pkey PRIMARY KEY (queue, begins);

ALTER TABLE gleaner.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (name);

ALTER TABLE gleaner.queue
    ADD CONSTRAINT queue_table_name_key UNIQUE (table_name);

ALTER TABLE gleaner.raw_request
    ADD CONSTRAINT raw_request_pkey PRIMARY KEY (id);

ALTER TABLE gleaner.rejected_row
    ADD CONSTRAINT rejected_row_pkey PRIMARY KEY (queue, tenant, key);

ALTER TABLE gleaner.request
    ADD CONSTRAINT request_pkey PRIMARY KEY (queue, id);

ALTER TABLE gleaner.system
    ADD CONSTRAINT system_pkey PRIMARY KEY (name);

ALTER TABLE public.activities
    ADD CONSTRAINT activities_pkey PRIMARY KEY (id);

ALTER TABLE public.activity_failures
    ADD CONSTRAINT activity_failures_pkey PRIMARY KEY (id);

ALTER TABLE public.agent_processing_queue
    ADD CONSTRAINT agent_processing_queue_pkey PRIMARY KEY (id);

ALTER TABLE public.baskets
    ADD CONSTRAINT baskets_pkey PRIMARY KEY (id);

ALTER TABLE public.blocks
    ADD CONSTRAINT blocks_pkey PRIMARY KEY (id);

ALTER TABLE public.contact_addresses
    ADD CONSTRAINT contact_addresses_pkey PRIMARY KEY (kind, address, contact_id, written);

ALTER TABLE public.contact_identities
    ADD CONSTRAINT contact_identities_pkey PRIMARY KEY (kind, value);

ALTER TABLE public.contact_preferences
    ADD CONSTRAINT contact_preferences_key UNIQUE NULLS NOT DISTINCT (contact_id);

ALTER TABLE public.contacts
    ADD CONSTRAINT contacts_pkey PRIMARY KEY (id);

ALTER TABLE public.context_item_sources
    ADD CONSTRAINT context_item_sources_once_key UNIQUE NULLS NOT DISTINCT (context_item_id, dump_id);

ALTER TABLE public.context_items
    ADD CONSTRAINT context_items_basket_id_kind_label_key UNIQUE (basket_id, kind, label);

ALTER TABLE public.context_items
    ADD CONSTRAINT context_items_pkey PRIMARY KEY (id);

ALTER TABLE public.crm_processing_nodes
    ADD CONSTRAINT crm_processing_nodes_pkey PRIMARY KEY (id);

ALTER TABLE public.crm_processing_nodes
    ADD CONSTRAINT crm_processing_nodes_sales_id_app_name_device_name_key UNIQUE (sales_id, app_name, device_name);

ALTER TABLE public.do_not_contact
    ADD CONSTRAINT do_not_contact_pkey PRIMARY KEY (address);

ALTER TABLE public.execution_jobs
    ADD CONSTRAINT execution_jobs_pkey PRIMARY KEY (id);

ALTER TABLE public.followup_schedules
    ADD CONSTRAINT followup_schedules_pkey PRIMARY KEY (id);

ALTER TABLE public.ingestion_providers
    ADD CONSTRAINT ingestion_providers_ingestion_key_key UNIQUE (ingestion_key);

ALTER TABLE public.ingestion_providers
    ADD CONSTRAINT ingestion_providers_pkey PRIMARY KEY (id);

ALTER TABLE public.raw_dumps
    ADD CONSTRAINT raw_dumps_pkey PRIMARY KEY (id);

ALTER TABLE public.recording_versions
    ADD CONSTRAINT recording_versions_pkey PRIMARY KEY (id);

ALTER TABLE public.recording_versions
    ADD CONSTRAINT recording_versions_version_key UNIQUE (recording_id, version);

ALTER TABLE public.recordings
    ADD CONSTRAINT recordings_pkey PRIMARY KEY (id);

ALTER TABLE public.run_artefacts
    ADD CONSTRAINT run_artefacts_pkey PRIMARY KEY (id);

ALTER TABLE public.run_rows
    ADD CONSTRAINT run_rows_pkey PRIMARY KEY (run_id, row_number);

ALTER TABLE public.run_sites
    ADD CONSTRAINT run_sites_pkey PRIMARY KEY (site);

ALTER TABLE public.sales
    ADD CONSTRAINT sales_pkey PRIMARY KEY (id);

ALTER TABLE public.scheduled_actions
    ADD CONSTRAINT scheduled_actions_pkey PRIMARY KEY (id);

ALTER TABLE public.substrate_relationships
    ADD CONSTRAINT substrate_relationships_once_key UNIQUE NULLS NOT DISTINCT (basket_id, dump_id, from_id, to_id, relationship_type);

ALTER TABLE public.substrate_relationships
    ADD CONSTRAINT substrate_relationships_pkey PRIMARY KEY (id);

ALTER TABLE public.workspace_invitations
    ADD CONSTRAINT workspace_invitations_pkey PRIMARY KEY (id);

ALTER TABLE public.workspace_invitations
    ADD CONSTRAINT workspace_invitations_token_hash_key UNIQUE (token_hash);

ALTER TABLE public.workspace_members
    ADD CONSTRAINT workspace_members_pkey PRIMARY KEY (workspace_id, user_id);

ALTER TABLE public.workspaces
    ADD CONSTRAINT workspaces_pkey PRIMARY KEY (id);

CREATE INDEX identities_user_id_idx ON auth.identities USING btree (user_id);

CREATE INDEX one_time_tokens_user_id_idx ON auth.one_time_tokens USING btree (user_id);

CREATE INDEX refresh_tokens_session_id_idx ON auth.refresh_tokens USING btree (session_id);

CREATE INDEX sessions_user_id_idx ON auth.sessions USING btree (user_id);

CREATE INDEX activity_words_words_idx ON gleaner.activity_words USING gin (words);

CREATE UNIQUE INDEX api_key_name_key ON gleaner.api_key USING btree (name) WHERE (revoked_at IS NULL);

CREATE INDEX audit_caller_idx ON gleaner.audit USING btree (caller text_pattern_ops, id DESC);

CREATE INDEX audit_key_idx ON gleaner.audit USING btree (queue, key, id);

CREATE INDEX audit_queue_idx ON gleaner.audit USING btree (queue, id DESC);

CREATE INDEX batch_lease_queue_idx ON gleaner.batch_lease USING btree (queue, xid);

CREATE INDEX change_xid_idx ON gleaner.change USING btree (xid);

CREATE INDEX forgotten_artefacts_at_idx ON gleaner.forgotten_artefacts USING btree (at);

CREATE INDEX forgotten_dump_files_at_idx ON gleaner.forgotten_dump_files USING btree (at);

CREATE INDEX forgotten_files_at_idx ON gleaner.forgotten_files USING btree (at);

CREATE INDEX gleaner_jobs_dead ON gleaner.jobs USING btree (id) WHERE ((due_at IS NULL) AND (status = 'failed'::text));

CREATE INDEX gleaner_jobs_global ON gleaner.jobs USING btree ((((hashtextextended((kind COLLATE "C"), (0)::bigint) & ('-16'::integer)::bigint) +
CASE
    WHEN (priority >= 2) THEN 0
    WHEN (priority >= 1) THEN 1
    WHEN (priority >= 0) THEN 2
    ELSE 3
END)), due_at, id) WHERE ((lease <> '-1'::integer) AND (status = ANY (ARRAY['ready'::text, 'running'::text, 'failed'::text])) AND (due_at IS NOT NULL));

CREATE UNIQUE INDEX gleaner_jobs_unique ON gleaner.jobs USING btree (unique_key) WHERE ((unique_key IS NOT NULL) AND (due_at IS NOT NULL) AND (status = ANY (ARRAY['ready'::text, 'failed'::text])));

CREATE INDEX gleaner_polls_dead ON gleaner.polls USING btree (provider_id) WHERE ((due_at IS NULL) AND (status = 'failed'::text));

CREATE INDEX gleaner_polls_global ON gleaner.polls USING btree (due_at, provider_id) WHERE ((status = ANY (ARRAY['ready'::text, 'running'::text, 'failed'::text])) AND (due_at IS NOT NULL));

CREATE INDEX ingest_memory_expires_at_idx ON gleaner.ingest_memory USING btree (expires_at);

CREATE INDEX ingest_refusal_at_minute_idx ON gleaner.ingest_refusal USING btree (at_minute);

CREATE INDEX late_result_key_idx ON gleaner.late_result USING btree (queue, key);

CREATE INDEX operation_queue_idx ON gleaner.operation USING btree (queue, started_at DESC);

CREATE UNIQUE INDEX operation_running_idx ON gleaner.operation USING btree (queue) WHERE (state = 'running'::text);

CREATE INDEX prune_mark_oldest_idx ON gleaner.prune_mark USING btree (queue, oldest);

CREATE INDEX raw_request_received_at_idx ON gleaner.raw_request USING btree (received_at);

CREATE INDEX request_at_idx ON gleaner.request USING btree (at);

CREATE INDEX activities_contact_id_idx ON public.activities USING btree (contact_id, created_at DESC, id DESC);

CREATE INDEX activities_feed_idx ON public.activities USING btree (created_at DESC, id DESC);

CREATE UNIQUE INDEX activities_provider_id_external_id_key ON public.activities USING btree (provider_id, external_id) WHERE (provider_id IS NOT NULL);

CREATE INDEX activities_provider_id_idx ON public.activities USING btree (provider_id, created_at DESC, id DESC) WHERE (provider_id IS NOT NULL);

CREATE INDEX activities_sales_id_idx ON public.activities USING btree (sales_id, created_at DESC, id DESC);

CREATE INDEX activities_status_idx ON public.activities USING btree (processing_status, created_at DESC, id DESC) WHERE (processing_status <> 'processing'::text);

CREATE INDEX activities_type_idx ON public.activities USING btree (type, created_at DESC, id DESC);

CREATE INDEX activities_unmatched_idx ON public.activities USING btree (created_at DESC, id DESC) WHERE (contact_id IS NULL);

CREATE INDEX activities_unmatched_sender_idx ON public.activities USING btree (sender_kind, sender_address, created_at) WHERE ((contact_id IS NULL) AND (sender_address IS NOT NULL));

CREATE INDEX activities_unowned_idx ON public.activities USING btree (created_at DESC, id DESC) WHERE (sales_id IS NULL);

CREATE INDEX activity_failures_created_at_idx ON public.activity_failures USING btree (created_at);

CREATE INDEX activity_failures_original_activity_id_idx ON public.activity_failures USING btree (original_activity_id);

CREATE INDEX baskets_workspace_id_idx ON public.baskets USING btree (workspace_id);

CREATE INDEX blocks_dump_id_idx ON public.blocks USING btree (dump_id);

CREATE UNIQUE INDEX blocks_same_insight_key ON public.blocks USING btree (basket_id, dump_id, semantic_type, md5(title), md5(content)) NULLS NOT DISTINCT;

CREATE INDEX contact_addresses_contact_id_idx ON public.contact_addresses USING btree (contact_id);

CREATE INDEX contact_addresses_loose_idx ON public.contact_addresses USING btree (kind, loose) WHERE (loose IS NOT NULL);

CREATE INDEX contact_addresses_unparsed_idx ON public.contact_addresses USING btree (contact_id) WHERE (NOT parsed);

CREATE INDEX contact_identities_contact_id_idx ON public.contact_identities USING btree (contact_id);

CREATE INDEX contact_identities_value_idx ON public.contact_identities USING btree (value);

CREATE INDEX context_item_sources_dump_id_idx ON public.context_item_sources USING btree (dump_id);

CREATE UNIQUE INDEX context_items_same_entity_key ON public.context_items USING btree (basket_id, kind, md5(lower(btrim(regexp_replace(label, '\s+'::text, ' '::text, 'g'::text)))));

CREATE INDEX crm_processing_nodes_current_activity_id_idx ON public.crm_processing_nodes USING btree (current_activity_id) WHERE (current_activity_id IS NOT NULL);

CREATE INDEX do_not_contact_contact_id_idx ON public.do_not_contact USING btree (contact_id) WHERE (contact_id IS NOT NULL);

CREATE INDEX execution_jobs_recording_version_id_idx ON public.execution_jobs USING btree (recording_version_id);

CREATE INDEX execution_jobs_site_idx ON public.execution_jobs USING btree (site) WHERE (status = 'running'::text);

CREATE INDEX followup_schedules_contact_id_idx ON public.followup_schedules USING btree (contact_id) WHERE (contact_id IS NOT NULL);

CREATE INDEX followup_schedules_prospect_id_idx ON public.followup_schedules USING btree (prospect_id);

CREATE INDEX gleaner_activities_dead ON public.activities USING btree (id) WHERE ((due_at IS NULL) AND (processing_status = 'failed'::text));

CREATE INDEX gleaner_activities_global ON public.activities USING btree (((hashtextextended((type COLLATE "C"), (0)::bigint) & ('-16'::integer)::bigint)), due_at, id) WHERE ((processing_status = ANY (ARRAY['raw'::text, 'processing'::text, 'failed'::text])) AND (due_at IS NOT NULL) AND (sales_id IS NULL));

CREATE INDEX gleaner_activities_own ON public.activities USING btree (sales_id, ((hashtextextended((type COLLATE "C"), (0)::bigint) & ('-16'::integer)::bigint)), due_at, id) WHERE ((processing_status = ANY (ARRAY['raw'::text, 'processing'::text, 'failed'::text])) AND (due_at IS NOT NULL) AND (sales_id IS NOT NULL));

CREATE INDEX gleaner_activities_stale ON public.activities USING btree (((hashtextextended((type COLLATE "C"), (0)::bigint) & ('-16'::integer)::bigint)), open_at, id) WHERE ((processing_status = ANY (ARRAY['raw'::text, 'processing'::text, 'failed'::text])) AND (due_at IS NOT NULL) AND (sales_id IS NOT NULL) AND (open_at IS NOT NULL));

CREATE INDEX gleaner_dumps_dead ON public.agent_processing_queue USING btree (id) WHERE ((due_at IS NULL) AND (processing_state = 'failed'::public.processing_state));

CREATE INDEX gleaner_dumps_global ON public.agent_processing_queue USING btree (due_at, id) WHERE ((processing_state = ANY (ARRAY['pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state])) AND (due_at IS NOT NULL));

CREATE INDEX gleaner_followups_dead ON public.scheduled_actions USING btree (id) WHERE ((due_at IS NULL) AND ((status)::text = 'failed'::text));

CREATE INDEX gleaner_followups_global ON public.scheduled_actions USING btree (((hashtextextended((action_type COLLATE "C"), (0)::bigint) & ('-16'::integer)::bigint)), due_at, id) WHERE (((status)::text = ANY ((ARRAY['pending'::character varying, 'processing'::character varying, 'failed'::character varying])::text[])) AND (due_at IS NOT NULL));

CREATE INDEX gleaner_runs_dead ON public.execution_jobs USING btree (id) WHERE ((due_at IS NULL) AND (status = 'failed'::text));

CREATE INDEX gleaner_runs_global ON public.execution_jobs USING btree (((hashtextextended((COALESCE(kind, ''::text) COLLATE "C"), (0)::bigint) & ('-16'::integer)::bigint)), due_at, id) WHERE ((status = ANY (ARRAY['queued'::text, 'running'::text, 'failed'::text])) AND (due_at IS NOT NULL));

CREATE INDEX gleaner_schedules_dead ON public.followup_schedules USING btree (id) WHERE ((due_at IS NULL) AND ((status)::text = 'failed'::text));

CREATE INDEX gleaner_schedules_global ON public.followup_schedules USING btree (due_at, id) WHERE (((status)::text = ANY ((ARRAY['active'::character varying, 'working'::character varying, 'failed'::character varying])::text[])) AND (due_at IS NOT NULL));

CREATE INDEX idx_execution_jobs_created_at ON public.execution_jobs USING btree (created_at);

CREATE INDEX idx_execution_jobs_status ON public.execution_jobs USING btree (status);

CREATE INDEX idx_execution_jobs_status_created ON public.execution_jobs USING btree (status, created_at);

CREATE INDEX idx_queue_completed ON public.agent_processing_queue USING btree (completed_at) WHERE (processing_state = 'completed'::public.processing_state);

CREATE INDEX idx_queue_dump ON public.agent_processing_queue USING btree (dump_id);

CREATE INDEX idx_queue_state_created ON public.agent_processing_queue USING btree (processing_state, created_at);

CREATE INDEX idx_queue_workspace ON public.agent_processing_queue USING btree (workspace_id, processing_state);

CREATE INDEX idx_scheduled_actions_contact ON public.scheduled_actions USING btree (contact_id, scheduled_for) WHERE (contact_id IS NOT NULL);

CREATE INDEX idx_scheduled_actions_polling ON public.scheduled_actions USING btree (scheduled_for, status) WHERE ((status)::text = ANY ((ARRAY['pending'::character varying, 'processing'::character varying])::text[]));

CREATE INDEX idx_scheduled_actions_prospect ON public.scheduled_actions USING btree (prospect_id, scheduled_for);

CREATE UNIQUE INDEX ingestion_providers_key_hash_key ON public.ingestion_providers USING btree (key_hash);

CREATE UNIQUE INDEX ingestion_providers_previous_key_hash_key ON public.ingestion_providers USING btree (previous_key_hash) WHERE (previous_key_hash IS NOT NULL);

CREATE INDEX ingestion_providers_sales_id_idx ON public.ingestion_providers USING btree (sales_id);

CREATE INDEX raw_dumps_basket_id_idx ON public.raw_dumps USING btree (basket_id, created_at DESC, id DESC);

CREATE UNIQUE INDEX raw_dumps_same_file_key ON public.raw_dumps USING btree (basket_id, file_sha256);

CREATE UNIQUE INDEX recordings_name_key ON public.recordings USING btree (lower(name));

CREATE INDEX run_artefacts_expires_at_idx ON public.run_artefacts USING btree (expires_at);

CREATE UNIQUE INDEX run_artefacts_step_key ON public.run_artefacts USING btree (run_id, row_number, step, name);

CREATE UNIQUE INDEX sales_user_id_key ON public.sales USING btree (user_id);

CREATE UNIQUE INDEX scheduled_actions_occurrence_key ON public.scheduled_actions USING btree (schedule_id, occurrence) WHERE (schedule_id IS NOT NULL);

CREATE INDEX scheduled_actions_receipt_idx ON public.scheduled_actions USING btree (((result ->> 'receipt_id'::text))) WHERE ((result ->> 'receipt_id'::text) IS NOT NULL);

CREATE INDEX scheduled_actions_timeline_idx ON public.scheduled_actions USING btree (status, scheduled_for, id);

CREATE INDEX substrate_relationships_dump_id_idx ON public.substrate_relationships USING btree (dump_id);

CREATE INDEX substrate_relationships_from_id_idx ON public.substrate_relationships USING btree (from_id);

CREATE INDEX substrate_relationships_to_id_idx ON public.substrate_relationships USING btree (to_id);

CREATE INDEX workspace_invitations_workspace_id_idx ON public.workspace_invitations USING btree (workspace_id);

CREATE INDEX workspace_members_user_id_idx ON public.workspace_members USING btree (user_id);

CREATE TRIGGER note_deleted_user AFTER INSERT OR DELETE ON auth.users FOR EACH ROW EXECUTE FUNCTION gleaner.note_deleted_user();

CREATE TRIGGER change_region AFTER UPDATE OF default_region ON gleaner.contact_settings FOR EACH ROW WHEN ((new.default_region IS DISTINCT FROM old.default_region)) EXECUTE FUNCTION gleaner.change_region();

CREATE TRIGGER hear_receipts AFTER INSERT OR UPDATE ON gleaner.ingest_memory FOR EACH ROW WHEN ((new.key ~~ 'receipt:%'::text)) EXECUTE FUNCTION gleaner.hear_receipts();

CREATE TRIGGER zz_gleaner_delete_jobs AFTER DELETE ON gleaner.jobs FOR EACH ROW WHEN (((old.lease = ANY (ARRAY[(0)::bigint, ('-1'::integer)::bigint])) AND (old.status = 'ready'::text))) EXECUTE FUNCTION gleaner.leave_batch('jobs', 'id');

CREATE TRIGGER zz_gleaner_lock_jobs BEFORE DELETE ON gleaner.jobs FOR EACH STATEMENT WHEN (((CURRENT_USER <> 'gleaner_engine'::name) OR ((pg_trigger_depth() > 0) AND (pg_trigger_depth() > (current_setting('vacuum_cost_page_hit'::text))::integer)))) EXECUTE FUNCTION gleaner.leave_batch('jobs');

CREATE TRIGGER zz_gleaner_notify_polls AFTER INSERT ON gleaner.polls FOR EACH STATEMENT EXECUTE FUNCTION gleaner.notify_rows('polls');

CREATE TRIGGER zz_gleaner_truncate_jobs AFTER TRUNCATE ON gleaner.jobs FOR EACH STATEMENT EXECUTE FUNCTION gleaner.leave_batch('jobs');

CREATE TRIGGER zz_gleaner_update_jobs BEFORE UPDATE OF due_at, lease, deadline_at, attempts, lost, started, agent, session, id, status, kind, priority, unique_key ON gleaner.jobs FOR EACH STATEMENT WHEN (((CURRENT_USER <> 'gleaner_engine'::name) OR ((pg_trigger_depth() > 0) AND (pg_trigger_depth() > (current_setting('vacuum_cost_page_hit'::text))::integer)))) EXECUTE FUNCTION gleaner.refuse_update('jobs');

CREATE TRIGGER zz_gleaner_update_polls BEFORE INSERT OR UPDATE ON gleaner.polls FOR EACH ROW WHEN (((CURRENT_USER <> 'gleaner_engine'::name) OR ((pg_trigger_depth() > 0) AND (pg_trigger_depth() > (current_setting('vacuum_cost_page_hit'::text))::integer)))) EXECUTE FUNCTION gleaner.adapt_polls();

CREATE TRIGGER after_dump_insert AFTER INSERT ON public.raw_dumps FOR EACH ROW EXECUTE FUNCTION public.queue_agent_processing();

CREATE TRIGGER arrange_schedule BEFORE INSERT OR UPDATE ON public.followup_schedules FOR EACH ROW EXECUTE FUNCTION gleaner.arrange_schedule();

CREATE TRIGGER audit_link AFTER UPDATE OF contact_id ON public.activities FOR EACH ROW WHEN (((new.contact_id IS DISTINCT FROM old.contact_id) AND (((CURRENT_USER)::text = ANY (ARRAY['anon'::text, 'authenticated'::text, 'service_role'::text])) OR (current_setting('gleaner.by_hand'::text, true) = 'on'::text)))) EXECUTE FUNCTION gleaner.audit_link();

CREATE TRIGGER before_insert_activity_link_contact BEFORE INSERT ON public.activities FOR EACH ROW WHEN (((new.contact_id IS NULL) AND ((new.sender_address IS NOT NULL) OR (new.metadata ? 'from'::text) OR (new.raw_data ? 'sender'::text)))) EXECUTE FUNCTION public.auto_link_contact();

CREATE TRIGGER forget_artefacts AFTER DELETE ON public.run_artefacts REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION gleaner.forget_artefacts();

CREATE TRIGGER forget_context_items AFTER DELETE ON public.context_item_sources REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION gleaner.forget_context_items();

CREATE TRIGGER forget_dump_files AFTER DELETE ON public.raw_dumps REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION gleaner.forget_dump_files();

CREATE TRIGGER forget_files AFTER DELETE ON public.activities REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION gleaner.forget_files();

CREATE TRIGGER forget_relationships AFTER DELETE ON public.blocks REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION gleaner.forget_relationships();

CREATE TRIGGER forget_relationships AFTER DELETE ON public.context_items REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION gleaner.forget_relationships();

CREATE TRIGGER forget_relationships AFTER DELETE ON public.raw_dumps REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION gleaner.forget_relationships();

CREATE TRIGGER guard_activity BEFORE INSERT OR UPDATE OF provider_id, external_id, sender_kind, sender_address, raw_data, sales_id ON public.activities FOR EACH ROW WHEN (((CURRENT_USER)::text = ANY (ARRAY['anon'::text, 'authenticated'::text]))) EXECUTE FUNCTION public.guard_activity();

CREATE TRIGGER hear_linked AFTER UPDATE OF contact_id ON public.activities FOR EACH ROW WHEN (((new.contact_id IS NOT NULL) AND (new.contact_id IS DISTINCT FROM old.contact_id) AND (new.direction = 'inbound'::text) AND (new.type = ANY (ARRAY['email'::text, 'call'::text, 'sms'::text, 'whatsapp'::text, 'other'::text])))) EXECUTE FUNCTION gleaner.hear_linked();

CREATE TRIGGER hear_replies AFTER INSERT ON public.activities REFERENCING NEW TABLE AS heard FOR EACH STATEMENT EXECUTE FUNCTION gleaner.hear_replies();

CREATE TRIGGER keep_an_owner AFTER DELETE ON public.workspace_members REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION gleaner.keep_an_owner();

CREATE TRIGGER keep_channel_secrets BEFORE INSERT OR UPDATE ON public.ingestion_providers FOR EACH ROW EXECUTE FUNCTION public.keep_channel_secrets();

CREATE TRIGGER keep_recording_versions BEFORE INSERT OR UPDATE ON public.recording_versions FOR EACH ROW EXECUTE FUNCTION gleaner.keep_recording_versions();

CREATE TRIGGER keep_recordings BEFORE INSERT ON public.recordings FOR EACH ROW EXECUTE FUNCTION gleaner.keep_recordings();

CREATE TRIGGER link_identity AFTER INSERT OR UPDATE OF kind, value ON public.contact_identities FOR EACH ROW EXECUTE FUNCTION gleaner.link_identity();

CREATE TRIGGER prepare_run BEFORE INSERT ON public.execution_jobs FOR EACH ROW EXECUTE FUNCTION gleaner.prepare_run();

CREATE TRIGGER record_outbound AFTER UPDATE OF status ON public.scheduled_actions FOR EACH ROW WHEN ((((new.status)::text = 'executed'::text) AND ((old.status)::text IS DISTINCT FROM 'executed'::text) AND (new.message IS NOT NULL) AND ((new.result ->> 'dry_run'::text) IS DISTINCT FROM 'true'::text))) EXECUTE FUNCTION gleaner.record_outbound();

CREATE TRIGGER refresh_contact_addresses AFTER INSERT OR UPDATE OF email, phone_number, email_jsonb, phone_jsonb ON public.contacts FOR EACH ROW EXECUTE FUNCTION public.refresh_contact_addresses();

CREATE TRIGGER schedule_first_poll AFTER INSERT ON public.ingestion_providers FOR EACH ROW WHEN (((new.provider_code = 'gmail'::text) AND new.is_active)) EXECUTE FUNCTION gleaner.schedule_poll();

CREATE TRIGGER schedule_poll AFTER UPDATE OF provider_code, is_active ON public.ingestion_providers FOR EACH ROW WHEN (((new.provider_code = 'gmail'::text) AND new.is_active AND ((old.provider_code IS DISTINCT FROM new.provider_code) OR (old.is_active IS DISTINCT FROM new.is_active)))) EXECUTE FUNCTION gleaner.schedule_poll();

CREATE TRIGGER store_words AFTER INSERT OR UPDATE OF raw_data, processed_data, sender_address, created_at ON public.activities FOR EACH ROW EXECUTE FUNCTION gleaner.store_words();

CREATE TRIGGER touch_execution_jobs BEFORE UPDATE ON public.execution_jobs FOR EACH ROW EXECUTE FUNCTION public.touch_execution_jobs();

CREATE TRIGGER touch_scheduled_actions BEFORE INSERT OR UPDATE ON public.scheduled_actions FOR EACH ROW EXECUTE FUNCTION public.touch_scheduled_actions();

CREATE TRIGGER zz_gleaner_again_activities BEFORE UPDATE OF processing_status ON public.activities FOR EACH ROW WHEN (((old.processing_status = 'completed'::text) AND (new.processing_status = 'completed'::text))) EXECUTE FUNCTION gleaner.adapt_activities('again');

CREATE TRIGGER zz_gleaner_again_dumps BEFORE UPDATE OF processing_state ON public.agent_processing_queue FOR EACH ROW WHEN (((old.processing_state = 'completed'::public.processing_state) AND (new.processing_state = 'completed'::public.processing_state))) EXECUTE FUNCTION gleaner.adapt_dumps('again');

CREATE TRIGGER zz_gleaner_again_followups BEFORE UPDATE OF status ON public.scheduled_actions FOR EACH ROW WHEN ((((old.status)::text = 'executed'::text) AND ((new.status)::text = 'executed'::text))) EXECUTE FUNCTION gleaner.adapt_followups('again');

CREATE TRIGGER zz_gleaner_again_runs BEFORE UPDATE OF status ON public.execution_jobs FOR EACH ROW WHEN (((old.status = 'completed'::text) AND (new.status = 'completed'::text))) EXECUTE FUNCTION gleaner.adapt_runs('again');

CREATE TRIGGER zz_gleaner_notify_activities AFTER INSERT ON public.activities FOR EACH STATEMENT EXECUTE FUNCTION gleaner.notify_rows('activities');

CREATE TRIGGER zz_gleaner_notify_dumps AFTER INSERT ON public.agent_processing_queue FOR EACH STATEMENT EXECUTE FUNCTION gleaner.notify_rows('dumps');

CREATE TRIGGER zz_gleaner_notify_followups AFTER INSERT ON public.scheduled_actions FOR EACH STATEMENT EXECUTE FUNCTION gleaner.notify_rows('followups');

CREATE TRIGGER zz_gleaner_notify_runs AFTER INSERT ON public.execution_jobs FOR EACH STATEMENT EXECUTE FUNCTION gleaner.notify_rows('runs');

CREATE TRIGGER zz_gleaner_notify_schedules AFTER INSERT ON public.followup_schedules FOR EACH STATEMENT EXECUTE FUNCTION gleaner.notify_rows('schedules');

CREATE TRIGGER zz_gleaner_update_activities BEFORE INSERT OR UPDATE ON public.activities FOR EACH ROW WHEN (((CURRENT_USER <> 'gleaner_engine'::name) OR ((pg_trigger_depth() > 0) AND (pg_trigger_depth() > (current_setting('vacuum_cost_page_hit'::text))::integer)))) EXECUTE FUNCTION gleaner.adapt_activities();

CREATE TRIGGER zz_gleaner_update_dumps BEFORE INSERT OR UPDATE ON public.agent_processing_queue FOR EACH ROW WHEN (((CURRENT_USER <> 'gleaner_engine'::name) OR ((pg_trigger_depth() > 0) AND (pg_trigger_depth() > (current_setting('vacuum_cost_page_hit'::text))::integer)))) EXECUTE FUNCTION gleaner.adapt_dumps();

CREATE TRIGGER zz_gleaner_update_followups BEFORE INSERT OR UPDATE ON public.scheduled_actions FOR EACH ROW WHEN (((CURRENT_USER <> 'gleaner_engine'::name) OR ((pg_trigger_depth() > 0) AND (pg_trigger_depth() > (current_setting('vacuum_cost_page_hit'::text))::integer)))) EXECUTE FUNCTION gleaner.adapt_followups();

CREATE TRIGGER zz_gleaner_update_runs BEFORE INSERT OR UPDATE ON public.execution_jobs FOR EACH ROW WHEN (((CURRENT_USER <> 'gleaner_engine'::name) OR ((pg_trigger_depth() > 0) AND (pg_trigger_depth() > (current_setting('vacuum_cost_page_hit'::text))::integer)))) EXECUTE FUNCTION gleaner.adapt_runs();

CREATE TRIGGER zz_gleaner_update_schedules BEFORE INSERT OR UPDATE ON public.followup_schedules FOR EACH ROW WHEN (((CURRENT_USER <> 'gleaner_engine'::name) OR ((pg_trigger_depth() > 0) AND (pg_trigger_depth() > (current_setting('vacuum_cost_page_hit'::text))::integer)))) EXECUTE FUNCTION gleaner.adapt_schedules();

CREATE TRIGGER zzz_store_substrate BEFORE UPDATE ON public.agent_processing_queue FOR EACH ROW WHEN (((new.result IS DISTINCT FROM old.result) OR ((new.processing_state = 'completed'::public.processing_state) AND (old.processing_state <> 'completed'::public.processing_state)))) EXECUTE FUNCTION gleaner.store_substrate();

ALTER TABLE auth.identities
    ADD CONSTRAINT identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE auth.one_time_tokens
    ADD CONSTRAINT one_time_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE auth.refresh_tokens
    ADD CONSTRAINT refresh_tokens_session_id_fkey FOREIGN KEY (session_id) REFERENCES auth.sessions(id) ON DELETE CASCADE;

ALTER TABLE auth.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE gleaner.activity_words
    ADD CONSTRAINT activity_words_activity_id_fkey FOREIGN KEY (activity_id) REFERENCES public.activities(id) ON DELETE CASCADE;

ALTER TABLE gleaner.media_reference
    ADD CONSTRAINT media_reference_activity_id_fkey FOREIGN KEY (activity_id) REFERENCES public.activities(id) ON DELETE CASCADE;

ALTER TABLE gleaner.polls
    ADD CONSTRAINT polls_provider_id_fkey FOREIGN KEY (provider_id) REFERENCES public.ingestion_providers(id) ON DELETE CASCADE;

ALTER TABLE public.activities
    ADD CONSTRAINT activities_contact_id_fkey FOREIGN KEY (contact_id) REFERENCES public.contacts(id) ON DELETE SET NULL;

ALTER TABLE public.activities
    ADD CONSTRAINT activities_provider_id_fkey FOREIGN KEY (provider_id) REFERENCES public.ingestion_providers(id) ON DELETE SET NULL;

ALTER TABLE public.activities
    ADD CONSTRAINT activities_sales_id_fkey FOREIGN KEY (sales_id) REFERENCES public.sales(id) ON DELETE RESTRICT;

ALTER TABLE public.activity_failures
    ADD CONSTRAINT activity_failures_original_activity_id_fkey FOREIGN KEY (original_activity_id) REFERENCES public.activities(id) ON DELETE CASCADE;

ALTER TABLE public.agent_processing_queue
    ADD CONSTRAINT agent_processing_queue_basket_id_fkey FOREIGN KEY (basket_id) REFERENCES public.baskets(id);

ALTER TABLE public.agent_processing_queue
    ADD CONSTRAINT agent_processing_queue_dump_id_fkey FOREIGN KEY (dump_id) REFERENCES public.raw_dumps(id) ON DELETE CASCADE;

ALTER TABLE public.agent_processing_queue
    ADD CONSTRAINT agent_processing_queue_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(id);

ALTER TABLE public.baskets
    ADD CONSTRAINT baskets_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(id);

ALTER TABLE public.blocks
    ADD CONSTRAINT blocks_basket_id_fkey FOREIGN KEY (basket_id) REFERENCES public.baskets(id);

ALTER TABLE public.blocks
    ADD CONSTRAINT blocks_dump_id_fkey FOREIGN KEY (dump_id) REFERENCES public.raw_dumps(id) ON DELETE CASCADE;

ALTER TABLE public.contact_addresses
    ADD CONSTRAINT contact_addresses_contact_id_fkey FOREIGN KEY (contact_id) REFERENCES public.contacts(id) ON DELETE CASCADE;

ALTER TABLE public.contact_identities
    ADD CONSTRAINT contact_identities_contact_id_fkey FOREIGN KEY (contact_id) REFERENCES public.contacts(id) ON DELETE CASCADE;

ALTER TABLE public.contacts
    ADD CONSTRAINT contacts_sales_id_fkey FOREIGN KEY (sales_id) REFERENCES public.sales(id);

ALTER TABLE public.context_item_sources
    ADD CONSTRAINT context_item_sources_context_item_id_fkey FOREIGN KEY (context_item_id) REFERENCES public.context_items(id) ON DELETE CASCADE;

ALTER TABLE public.context_item_sources
    ADD CONSTRAINT context_item_sources_dump_id_fkey FOREIGN KEY (dump_id) REFERENCES public.raw_dumps(id) ON DELETE CASCADE;

ALTER TABLE public.context_items
    ADD CONSTRAINT context_items_basket_id_fkey FOREIGN KEY (basket_id) REFERENCES public.baskets(id);

ALTER TABLE public.crm_processing_nodes
    ADD CONSTRAINT crm_processing_nodes_current_activity_id_fkey FOREIGN KEY (current_activity_id) REFERENCES public.activities(id) ON DELETE SET NULL;

ALTER TABLE public.crm_processing_nodes
    ADD CONSTRAINT crm_processing_nodes_sales_id_fkey FOREIGN KEY (sales_id) REFERENCES public.sales(id) ON DELETE CASCADE;

ALTER TABLE public.execution_jobs
    ADD CONSTRAINT execution_jobs_recording_version_id_fkey FOREIGN KEY (recording_version_id) REFERENCES public.recording_versions(id) ON DELETE SET NULL;

ALTER TABLE public.ingestion_providers
    ADD CONSTRAINT ingestion_providers_sales_id_fkey FOREIGN KEY (sales_id) REFERENCES public.sales(id) ON DELETE RESTRICT;

ALTER TABLE public.raw_dumps
    ADD CONSTRAINT raw_dumps_basket_id_fkey FOREIGN KEY (basket_id) REFERENCES public.baskets(id);

ALTER TABLE public.recording_versions
    ADD CONSTRAINT recording_versions_recording_id_fkey FOREIGN KEY (recording_id) REFERENCES public.recordings(id) ON DELETE CASCADE;

ALTER TABLE public.run_artefacts
    ADD CONSTRAINT run_artefacts_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.execution_jobs(id) ON DELETE CASCADE;

ALTER TABLE public.run_rows
    ADD CONSTRAINT run_rows_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.execution_jobs(id) ON DELETE CASCADE;

ALTER TABLE public.scheduled_actions
    ADD CONSTRAINT scheduled_actions_schedule_id_fkey FOREIGN KEY (schedule_id) REFERENCES public.followup_schedules(id) ON DELETE SET NULL;

ALTER TABLE public.substrate_relationships
    ADD CONSTRAINT substrate_relationships_basket_id_fkey FOREIGN KEY (basket_id) REFERENCES public.baskets(id);

ALTER TABLE public.substrate_relationships
    ADD CONSTRAINT substrate_relationships_dump_id_fkey FOREIGN KEY (dump_id) REFERENCES public.raw_dumps(id) ON DELETE CASCADE;

ALTER TABLE public.workspace_invitations
    ADD CONSTRAINT workspace_invitations_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(id) ON DELETE CASCADE;

ALTER TABLE public.workspace_members
    ADD CONSTRAINT workspace_members_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(id) ON DELETE CASCADE;

ALTER TABLE gleaner.activity_words ENABLE ROW LEVEL SECURITY;

ALTER TABLE gleaner.audit ENABLE ROW LEVEL SECURITY;

CREATE POLICY audit_people ON gleaner.audit FOR SELECT TO authenticated USING ((( SELECT gleaner.is_administrator() AS is_administrator) OR (( SELECT gleaner.is_member() AS is_member) AND ((caller ~~ ( SELECT ((auth.uid())::text || '/%'::text))) OR gleaner.sees(queue, key)))));

CREATE POLICY audit_programs ON gleaner.audit USING ((CURRENT_USER <> ALL (ARRAY['anon'::name, 'authenticated'::name]))) WITH CHECK (true);

ALTER TABLE gleaner.forgotten_artefacts ENABLE ROW LEVEL SECURITY;

ALTER TABLE gleaner.forgotten_dump_files ENABLE ROW LEVEL SECURITY;

ALTER TABLE gleaner.forgotten_files ENABLE ROW LEVEL SECURITY;

ALTER TABLE gleaner.ingest_memory ENABLE ROW LEVEL SECURITY;

ALTER TABLE gleaner.ingest_refusal ENABLE ROW LEVEL SECURITY;

CREATE POLICY ingest_refusal_administrators ON gleaner.ingest_refusal FOR SELECT TO authenticated USING (( SELECT gleaner.is_administrator() AS is_administrator));

CREATE POLICY ingest_refusal_service ON gleaner.ingest_refusal FOR SELECT TO service_role USING (true);

ALTER TABLE gleaner.late_result ENABLE ROW LEVEL SECURITY;

CREATE POLICY late_result_people ON gleaner.late_result FOR SELECT TO authenticated USING ((( SELECT gleaner.is_administrator() AS is_administrator) OR (( SELECT gleaner.is_member() AS is_member) AND gleaner.sees(queue, key))));

CREATE POLICY late_result_programs ON gleaner.late_result USING ((CURRENT_USER <> ALL (ARRAY['anon'::name, 'authenticated'::name]))) WITH CHECK (true);

ALTER TABLE gleaner.media_reference ENABLE ROW LEVEL SECURITY;

ALTER TABLE gleaner.polls ENABLE ROW LEVEL SECURITY;

CREATE POLICY polls_engine ON gleaner.polls TO gleaner_engine USING (true) WITH CHECK (true);

CREATE POLICY polls_service ON gleaner.polls TO service_role USING (true) WITH CHECK (true);

ALTER TABLE gleaner.queue ENABLE ROW LEVEL SECURITY;

CREATE POLICY queue_people ON gleaner.queue FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY queue_programs ON gleaner.queue USING ((CURRENT_USER <> ALL (ARRAY['anon'::name, 'authenticated'::name]))) WITH CHECK (true);

ALTER TABLE gleaner.raw_request ENABLE ROW LEVEL SECURITY;

CREATE POLICY raw_request_administrators ON gleaner.raw_request FOR SELECT TO authenticated USING (( SELECT gleaner.is_administrator() AS is_administrator));

CREATE POLICY raw_request_service ON gleaner.raw_request FOR SELECT TO service_role USING (true);

ALTER TABLE public.activities ENABLE ROW LEVEL SECURITY;

CREATE POLICY activities_engine ON public.activities TO gleaner_engine USING (true) WITH CHECK (true);

CREATE POLICY activities_insert ON public.activities FOR INSERT TO authenticated WITH CHECK (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY activities_privacy ON public.activities AS RESTRICTIVE TO authenticated USING (((sales_id IS NULL) OR (session = ( SELECT gleaner.worker_session() AS worker_session)) OR (EXISTS ( SELECT
   FROM public.sales owner
  WHERE ((owner.id = activities.sales_id) AND (owner.allow_remote_processing OR (owner.user_id = ( SELECT auth.uid() AS uid)) OR ( SELECT gleaner.is_administrator() AS is_administrator))))))) WITH CHECK (true);

CREATE POLICY activities_read ON public.activities FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY activities_service ON public.activities TO service_role USING (true) WITH CHECK (true);

CREATE POLICY activities_update ON public.activities FOR UPDATE TO authenticated USING (( SELECT gleaner.is_member() AS is_member)) WITH CHECK (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY activities_workers ON public.activities AS RESTRICTIVE TO authenticated USING (((( SELECT gleaner.worker_session() AS worker_session) IS NULL) OR (session = ( SELECT gleaner.worker_session() AS worker_session)))) WITH CHECK (true);

CREATE POLICY activities_workers_insert ON public.activities AS RESTRICTIVE FOR INSERT TO authenticated WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.activity_failures ENABLE ROW LEVEL SECURITY;

CREATE POLICY activity_failures_engine ON public.activity_failures TO gleaner_engine USING (true) WITH CHECK (true);

CREATE POLICY activity_failures_read ON public.activity_failures FOR SELECT TO authenticated USING ((EXISTS ( SELECT
   FROM public.activities a
  WHERE (a.id = activity_failures.original_activity_id))));

CREATE POLICY activity_failures_service ON public.activity_failures TO service_role USING (true) WITH CHECK (true);

ALTER TABLE public.agent_processing_queue ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_processing_queue_engine ON public.agent_processing_queue TO gleaner_engine USING (true) WITH CHECK (true);

CREATE POLICY agent_processing_queue_read ON public.agent_processing_queue FOR SELECT TO authenticated USING (((workspace_id = ANY (( SELECT gleaner.my_workspaces() AS my_workspaces)::uuid[])) OR ( SELECT gleaner.is_administrator() AS is_administrator) OR (( SELECT gleaner.worker_session() AS worker_session) IS NOT NULL)));

CREATE POLICY agent_processing_queue_service ON public.agent_processing_queue TO service_role USING (true) WITH CHECK (true);

CREATE POLICY agent_processing_queue_workers ON public.agent_processing_queue AS RESTRICTIVE TO authenticated USING (((( SELECT gleaner.worker_session() AS worker_session) IS NULL) OR (session = ( SELECT gleaner.worker_session() AS worker_session)))) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.baskets ENABLE ROW LEVEL SECURITY;

CREATE POLICY baskets_insert ON public.baskets FOR INSERT TO authenticated WITH CHECK (((workspace_id = ANY (( SELECT gleaner.my_workspaces() AS my_workspaces)::uuid[])) OR ( SELECT gleaner.is_administrator() AS is_administrator)));

CREATE POLICY baskets_read ON public.baskets FOR SELECT TO authenticated USING (((workspace_id = ANY (( SELECT gleaner.my_workspaces() AS my_workspaces)::uuid[])) OR ( SELECT gleaner.is_administrator() AS is_administrator)));

CREATE POLICY baskets_service ON public.baskets TO service_role USING (true) WITH CHECK (true);

CREATE POLICY baskets_workers ON public.baskets AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.blocks ENABLE ROW LEVEL SECURITY;

CREATE POLICY blocks_read ON public.blocks FOR SELECT TO authenticated USING ((basket_id IN ( SELECT b.id
   FROM public.baskets b)));

CREATE POLICY blocks_service ON public.blocks TO service_role USING (true) WITH CHECK (true);

CREATE POLICY blocks_workers ON public.blocks AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.contact_addresses ENABLE ROW LEVEL SECURITY;

CREATE POLICY contact_addresses_service ON public.contact_addresses FOR SELECT TO service_role USING (true);

ALTER TABLE public.contact_identities ENABLE ROW LEVEL SECURITY;

CREATE POLICY contact_identities_engine ON public.contact_identities FOR SELECT TO gleaner_engine USING (true);

CREATE POLICY contact_identities_service ON public.contact_identities TO service_role USING (true) WITH CHECK (true);

CREATE POLICY contact_identities_team ON public.contact_identities TO authenticated USING (( SELECT gleaner.is_member() AS is_member)) WITH CHECK (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY contact_identities_workers ON public.contact_identities AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.contact_preferences ENABLE ROW LEVEL SECURITY;

CREATE POLICY contact_preferences_read ON public.contact_preferences FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY contact_preferences_service ON public.contact_preferences TO service_role USING (true) WITH CHECK (true);

CREATE POLICY contact_preferences_workers ON public.contact_preferences AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

CREATE POLICY contact_preferences_write ON public.contact_preferences TO authenticated USING ((( SELECT gleaner.is_member() AS is_member) AND ((contact_id IS NOT NULL) OR ( SELECT gleaner.is_administrator() AS is_administrator)))) WITH CHECK ((( SELECT gleaner.is_member() AS is_member) AND ((contact_id IS NOT NULL) OR ( SELECT gleaner.is_administrator() AS is_administrator))));

ALTER TABLE public.contacts ENABLE ROW LEVEL SECURITY;

CREATE POLICY contacts_engine ON public.contacts FOR SELECT TO gleaner_engine USING (true);

CREATE POLICY contacts_service ON public.contacts TO service_role USING (true) WITH CHECK (true);

CREATE POLICY contacts_team ON public.contacts TO authenticated USING (( SELECT gleaner.is_member() AS is_member)) WITH CHECK (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY contacts_workers ON public.contacts AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.context_item_sources ENABLE ROW LEVEL SECURITY;

CREATE POLICY context_item_sources_read ON public.context_item_sources FOR SELECT TO authenticated USING ((context_item_id IN ( SELECT c.id
   FROM public.context_items c)));

CREATE POLICY context_item_sources_service ON public.context_item_sources TO service_role USING (true) WITH CHECK (true);

CREATE POLICY context_item_sources_workers ON public.context_item_sources AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.context_items ENABLE ROW LEVEL SECURITY;

CREATE POLICY context_items_read ON public.context_items FOR SELECT TO authenticated USING ((basket_id IN ( SELECT b.id
   FROM public.baskets b)));

CREATE POLICY context_items_service ON public.context_items TO service_role USING (true) WITH CHECK (true);

CREATE POLICY context_items_workers ON public.context_items AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.crm_processing_nodes ENABLE ROW LEVEL SECURITY;

CREATE POLICY crm_processing_nodes_engine ON public.crm_processing_nodes TO gleaner_engine USING (true) WITH CHECK (true);

CREATE POLICY crm_processing_nodes_own ON public.crm_processing_nodes TO authenticated USING ((( SELECT gleaner.is_member() AS is_member) AND (sales_id IN ( SELECT s.id
   FROM public.sales s
  WHERE (s.user_id = ( SELECT auth.uid() AS uid)))))) WITH CHECK ((( SELECT gleaner.is_member() AS is_member) AND (sales_id IN ( SELECT s.id
   FROM public.sales s
  WHERE (s.user_id = ( SELECT auth.uid() AS uid))))));

CREATE POLICY crm_processing_nodes_read ON public.crm_processing_nodes FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY crm_processing_nodes_service ON public.crm_processing_nodes TO service_role USING (true) WITH CHECK (true);

CREATE POLICY crm_processing_nodes_workers ON public.crm_processing_nodes AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.do_not_contact ENABLE ROW LEVEL SECURITY;

CREATE POLICY do_not_contact_service ON public.do_not_contact TO service_role USING (true) WITH CHECK (true);

CREATE POLICY do_not_contact_team ON public.do_not_contact TO authenticated USING (( SELECT gleaner.is_member() AS is_member)) WITH CHECK (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY do_not_contact_workers ON public.do_not_contact AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.execution_jobs ENABLE ROW LEVEL SECURITY;

CREATE POLICY execution_jobs_engine ON public.execution_jobs TO gleaner_engine USING (true) WITH CHECK (true);

CREATE POLICY execution_jobs_insert ON public.execution_jobs FOR INSERT TO authenticated WITH CHECK (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY execution_jobs_read ON public.execution_jobs FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY execution_jobs_service ON public.execution_jobs TO service_role USING (true) WITH CHECK (true);

CREATE POLICY execution_jobs_workers ON public.execution_jobs AS RESTRICTIVE TO authenticated USING (((( SELECT gleaner.worker_session() AS worker_session) IS NULL) OR (session = ( SELECT gleaner.worker_session() AS worker_session)))) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.followup_schedules ENABLE ROW LEVEL SECURITY;

CREATE POLICY followup_schedules_engine ON public.followup_schedules TO gleaner_engine USING (true) WITH CHECK (true);

CREATE POLICY followup_schedules_read ON public.followup_schedules FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY followup_schedules_service ON public.followup_schedules TO service_role USING (true) WITH CHECK (true);

CREATE POLICY followup_schedules_workers ON public.followup_schedules AS RESTRICTIVE TO authenticated USING (((( SELECT gleaner.worker_session() AS worker_session) IS NULL) OR (session = ( SELECT gleaner.worker_session() AS worker_session)))) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.ingestion_providers ENABLE ROW LEVEL SECURITY;

CREATE POLICY ingestion_providers_administrators ON public.ingestion_providers TO authenticated USING (( SELECT gleaner.is_administrator() AS is_administrator)) WITH CHECK (( SELECT gleaner.is_administrator() AS is_administrator));

CREATE POLICY ingestion_providers_service ON public.ingestion_providers TO service_role USING (true) WITH CHECK (true);

ALTER TABLE public.raw_dumps ENABLE ROW LEVEL SECURITY;

CREATE POLICY raw_dumps_delete ON public.raw_dumps FOR DELETE TO authenticated USING ((basket_id IN ( SELECT b.id
   FROM public.baskets b)));

CREATE POLICY raw_dumps_insert ON public.raw_dumps FOR INSERT TO authenticated WITH CHECK ((basket_id IN ( SELECT b.id
   FROM public.baskets b)));

CREATE POLICY raw_dumps_read ON public.raw_dumps FOR SELECT TO authenticated USING ((basket_id IN ( SELECT b.id
   FROM public.baskets b)));

CREATE POLICY raw_dumps_service ON public.raw_dumps TO service_role USING (true) WITH CHECK (true);

CREATE POLICY raw_dumps_workers ON public.raw_dumps AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.recording_versions ENABLE ROW LEVEL SECURITY;

CREATE POLICY recording_versions_insert ON public.recording_versions FOR INSERT TO authenticated WITH CHECK (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY recording_versions_read ON public.recording_versions FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY recording_versions_service ON public.recording_versions TO service_role USING (true) WITH CHECK (true);

CREATE POLICY recording_versions_workers ON public.recording_versions AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.recordings ENABLE ROW LEVEL SECURITY;

CREATE POLICY recordings_delete ON public.recordings FOR DELETE TO authenticated USING ((( SELECT gleaner.is_member() AS is_member) AND ((created_by = ( SELECT auth.uid() AS uid)) OR ( SELECT gleaner.is_administrator() AS is_administrator))));

CREATE POLICY recordings_insert ON public.recordings FOR INSERT TO authenticated WITH CHECK (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY recordings_read ON public.recordings FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY recordings_service ON public.recordings TO service_role USING (true) WITH CHECK (true);

CREATE POLICY recordings_workers ON public.recordings AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.run_artefacts ENABLE ROW LEVEL SECURITY;

CREATE POLICY run_artefacts_read ON public.run_artefacts FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY run_artefacts_service ON public.run_artefacts TO service_role USING (true) WITH CHECK (true);

CREATE POLICY run_artefacts_workers ON public.run_artefacts AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.run_rows ENABLE ROW LEVEL SECURITY;

CREATE POLICY run_rows_read ON public.run_rows FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY run_rows_service ON public.run_rows TO service_role USING (true) WITH CHECK (true);

CREATE POLICY run_rows_workers ON public.run_rows AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.run_sites ENABLE ROW LEVEL SECURITY;

CREATE POLICY run_sites_read ON public.run_sites FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY run_sites_service ON public.run_sites TO service_role USING (true) WITH CHECK (true);

CREATE POLICY run_sites_workers ON public.run_sites AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

CREATE POLICY run_sites_write ON public.run_sites TO authenticated USING (( SELECT gleaner.is_administrator() AS is_administrator)) WITH CHECK (( SELECT gleaner.is_administrator() AS is_administrator));

ALTER TABLE public.sales ENABLE ROW LEVEL SECURITY;

CREATE POLICY sales_engine ON public.sales FOR SELECT TO gleaner_engine USING (true);

CREATE POLICY sales_own_row_only ON public.sales AS RESTRICTIVE FOR UPDATE TO authenticated USING (((user_id = ( SELECT auth.uid() AS uid)) AND (NOT disabled))) WITH CHECK (((user_id = ( SELECT auth.uid() AS uid)) AND ((NOT administrator) OR ( SELECT gleaner.is_administrator() AS is_administrator))));

CREATE POLICY sales_read ON public.sales FOR SELECT TO authenticated USING (((user_id = ( SELECT auth.uid() AS uid)) OR ( SELECT gleaner.is_member() AS is_member)));

CREATE POLICY sales_service ON public.sales TO service_role USING (true) WITH CHECK (true);

CREATE POLICY sales_update_own ON public.sales FOR UPDATE TO authenticated USING ((user_id = ( SELECT auth.uid() AS uid))) WITH CHECK (true);

CREATE POLICY sales_workers ON public.sales AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.scheduled_actions ENABLE ROW LEVEL SECURITY;

CREATE POLICY scheduled_actions_engine ON public.scheduled_actions TO gleaner_engine USING (true) WITH CHECK (true);

CREATE POLICY scheduled_actions_read ON public.scheduled_actions FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY scheduled_actions_service ON public.scheduled_actions TO service_role USING (true) WITH CHECK (true);

CREATE POLICY scheduled_actions_workers ON public.scheduled_actions AS RESTRICTIVE TO authenticated USING (((( SELECT gleaner.worker_session() AS worker_session) IS NULL) OR (session = ( SELECT gleaner.worker_session() AS worker_session)))) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.substrate_relationships ENABLE ROW LEVEL SECURITY;

CREATE POLICY substrate_relationships_read ON public.substrate_relationships FOR SELECT TO authenticated USING ((basket_id IN ( SELECT b.id
   FROM public.baskets b)));

CREATE POLICY substrate_relationships_service ON public.substrate_relationships TO service_role USING (true) WITH CHECK (true);

CREATE POLICY substrate_relationships_workers ON public.substrate_relationships AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.workspace_invitations ENABLE ROW LEVEL SECURITY;

CREATE POLICY workspace_invitations_delete ON public.workspace_invitations FOR DELETE TO authenticated USING (gleaner.owns_workspace(workspace_id));

CREATE POLICY workspace_invitations_read ON public.workspace_invitations FOR SELECT TO authenticated USING (gleaner.owns_workspace(workspace_id));

CREATE POLICY workspace_invitations_service ON public.workspace_invitations TO service_role USING (true) WITH CHECK (true);

CREATE POLICY workspace_invitations_workers ON public.workspace_invitations AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.workspace_members ENABLE ROW LEVEL SECURITY;

CREATE POLICY workspace_members_delete ON public.workspace_members FOR DELETE TO authenticated USING (((user_id = ( SELECT auth.uid() AS uid)) OR gleaner.owns_workspace(workspace_id)));

CREATE POLICY workspace_members_read ON public.workspace_members FOR SELECT TO authenticated USING (((workspace_id = ANY (( SELECT gleaner.my_workspaces() AS my_workspaces)::uuid[])) OR ( SELECT gleaner.is_administrator() AS is_administrator)));

CREATE POLICY workspace_members_service ON public.workspace_members TO service_role USING (true) WITH CHECK (true);

CREATE POLICY workspace_members_workers ON public.workspace_members AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.workspaces ENABLE ROW LEVEL SECURITY;

CREATE POLICY workspaces_read ON public.workspaces FOR SELECT TO authenticated USING (((id = ANY (( SELECT gleaner.my_workspaces() AS my_workspaces)::uuid[])) OR ( SELECT gleaner.is_administrator() AS is_administrator)));

CREATE POLICY workspaces_service ON public.workspaces TO service_role USING (true) WITH CHECK (true);

CREATE POLICY workspaces_workers ON public.workspaces AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

GRANT USAGE ON SCHEMA auth TO anon;
GRANT USAGE ON SCHEMA auth TO authenticated;
GRANT USAGE ON SCHEMA auth TO service_role;
GRANT USAGE ON SCHEMA auth TO gleaner_engine;

GRANT ALL ON SCHEMA gleaner TO gleaner_engine;
GRANT USAGE ON SCHEMA gleaner TO authenticated;
GRANT USAGE ON SCHEMA gleaner TO service_role;

GRANT USAGE ON SCHEMA public TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.adapt_activities() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.adapt_dumps() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.adapt_followups() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.adapt_polls() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.adapt_runs() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.adapt_schedules() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.add_first_administrator(p_email text, p_password text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.add_user(p_email text, p_password text, p_user_meta jsonb, p_app_meta jsonb, p_confirmed boolean, p_administrator boolean, p_link boolean, p_id uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.admit_activities(p_ids uuid[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.admit_dumps(p_ids uuid[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.admit_followups(p_ids uuid[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.admit_schedules(p_ids uuid[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.advance_schedule(p_request jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.advance_schedule(p_request jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.answer_replies(p_heard jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.arrange_schedule() FROM PUBLIC;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.jobs TO gleaner_engine;
GRANT SELECT,DELETE,UPDATE ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(id) ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(due_at) ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(created_at) ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(priority) ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(kind) ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(unique_key) ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(payload) ON TABLE gleaner.jobs TO service_role;

REVOKE ALL ON FUNCTION gleaner.as_held_jobs(p_row gleaner.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.assign_activities(p_ids uuid[], p_owner bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.assign_activities(p_ids uuid[], p_owner bigint) TO authenticated;
GRANT ALL ON FUNCTION gleaner.assign_activities(p_ids uuid[], p_owner bigint) TO service_role;

REVOKE ALL ON FUNCTION gleaner.audit_link() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.backoff(p_first interval, p_cap interval, p_attempt integer, p_key text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.backoff(p_first interval, p_cap interval, p_attempt integer, p_key text) TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.backoff(p_first interval, p_cap interval, p_attempt integer, p_key text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.batch_keys(p_queue text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.batch_keys(p_queue text) TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.batch_keys(p_queue text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.batch_keys(p_queue text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.begin_claim(p_queue text, p_agent text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.begin_claim(p_queue text, p_agent text) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.begin_run(p_request jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.begin_run(p_request jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.begin_sending(p_request jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.begin_sending(p_request jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.bury_activities(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.bury_activities(p_ids uuid[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.bury_activities(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.bury_dumps(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.bury_dumps(p_ids uuid[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.bury_dumps(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.bury_followups(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.bury_followups(p_ids uuid[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.bury_followups(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.bury_jobs(p_ids bigint[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.bury_jobs(p_ids bigint[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.bury_jobs(p_ids bigint[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.bury_polls(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.bury_polls(p_ids uuid[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.bury_polls(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.bury_runs(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.bury_runs(p_ids uuid[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.bury_runs(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.bury_schedules(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.bury_schedules(p_ids uuid[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.bury_schedules(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.caller_role() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.caller_role() TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.caller_role() TO service_role;

REVOKE ALL ON FUNCTION gleaner.caller_session() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.caller_session() TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.caller_session() TO service_role;

REVOKE ALL ON FUNCTION gleaner.caller_uid() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.caller_uid() TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.caller_uid() TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_activities(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_activities(p_ids uuid[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_activities(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_activities_matching(p_match jsonb, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_activities_matching(p_match jsonb, p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_activities_matching(p_match jsonb, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_dumps(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_dumps(p_ids uuid[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_dumps(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_dumps_matching(p_match jsonb, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_dumps_matching(p_match jsonb, p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_dumps_matching(p_match jsonb, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_followups(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_followups(p_ids uuid[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_followups(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_followups_matching(p_match jsonb, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_followups_matching(p_match jsonb, p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_followups_matching(p_match jsonb, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_jobs(p_ids bigint[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_jobs(p_ids bigint[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_jobs(p_ids bigint[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_jobs_matching(p_match jsonb, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_jobs_matching(p_match jsonb, p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_jobs_matching(p_match jsonb, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_polls(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_polls(p_ids uuid[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_polls(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_polls_matching(p_match jsonb, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_polls_matching(p_match jsonb, p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_polls_matching(p_match jsonb, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_runs(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_runs(p_ids uuid[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_runs(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_runs_matching(p_match jsonb, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_runs_matching(p_match jsonb, p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_runs_matching(p_match jsonb, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_schedules(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_schedules(p_ids uuid[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_schedules(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_schedules_matching(p_match jsonb, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_schedules_matching(p_match jsonb, p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.cancel_schedules_matching(p_match jsonb, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.capture_changes(p_table regclass, p_on boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.change_region() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.change_user(p_user uuid, p_changes jsonb, p_session uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.check_columns(p_table regclass, p_columns text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.check_columns(p_table regclass, p_columns text[]) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.check_leases(p_ids anyarray, p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.check_leases(p_ids anyarray, p_leases bigint[]) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.check_plain(p_setting text, p_now timestamp with time zone, p_table regclass, p_columns text[], p_status text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.check_plain(p_setting text, p_now timestamp with time zone, p_table regclass, p_columns text[], p_status text) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.check_time(p_act text, p_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.check_time(p_act text, p_at timestamp with time zone) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.choose_rows(p_held_before smallint[], p_limit integer, p_taken integer, OUT places integer[], OUT passed integer[], OUT ended integer[], OUT alone boolean, OUT room integer) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.choose_rows(p_held_before smallint[], p_limit integer, p_taken integer, OUT places integer[], OUT passed integer[], OUT ended integer[], OUT alone boolean, OUT room integer) TO gleaner_engine;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.activities TO gleaner_engine;
GRANT SELECT,INSERT,UPDATE ON TABLE public.activities TO authenticated;
GRANT ALL ON TABLE public.activities TO service_role;

REVOKE ALL ON FUNCTION gleaner.claim_activities(p_agent text, p_limit integer, p_owner bigint, p_classes text[], p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.claim_activities(p_agent text, p_limit integer, p_owner bigint, p_classes text[], p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.claim_activities(p_agent text, p_limit integer, p_owner bigint, p_classes text[], p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_processing_queue TO gleaner_engine;
GRANT SELECT ON TABLE public.agent_processing_queue TO authenticated;
GRANT ALL ON TABLE public.agent_processing_queue TO service_role;

REVOKE ALL ON FUNCTION gleaner.claim_dumps(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.claim_dumps(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.scheduled_actions TO gleaner_engine;
GRANT SELECT ON TABLE public.scheduled_actions TO authenticated;
GRANT ALL ON TABLE public.scheduled_actions TO service_role;

REVOKE ALL ON FUNCTION gleaner.claim_followups(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.claim_followups(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.claim_jobs(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.claim_jobs(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval) TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.polls TO gleaner_engine;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.polls TO service_role;

REVOKE ALL ON FUNCTION gleaner.claim_polls(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.claim_polls(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval) TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.execution_jobs TO gleaner_engine;
GRANT SELECT,INSERT ON TABLE public.execution_jobs TO authenticated;
GRANT ALL ON TABLE public.execution_jobs TO service_role;

REVOKE ALL ON FUNCTION gleaner.claim_runs(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.claim_runs(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.followup_schedules TO gleaner_engine;
GRANT SELECT ON TABLE public.followup_schedules TO authenticated;
GRANT ALL ON TABLE public.followup_schedules TO service_role;

REVOKE ALL ON FUNCTION gleaner.claim_schedules(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.claim_schedules(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.close_sessions(p_user uuid, p_session uuid, p_scope text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.complete_activities(p_id uuid, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_activities(p_id uuid, p_lease bigint, p_result jsonb) TO authenticated;
GRANT ALL ON FUNCTION gleaner.complete_activities(p_id uuid, p_lease bigint, p_result jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_activities_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_activities_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.complete_activities_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_dumps(p_id uuid, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_dumps(p_id uuid, p_lease bigint, p_result jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_dumps_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_dumps_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_followups(p_id uuid, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_followups(p_id uuid, p_lease bigint, p_result jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_followups_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_followups_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_in_batch_jobs(p_ids bigint[], p_leases bigint[], p_results jsonb[], v_trusted boolean, v_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.complete_jobs(p_id bigint, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_jobs(p_id bigint, p_lease bigint, p_result jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_jobs_many(p_ids bigint[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_jobs_many(p_ids bigint[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_polls(p_id uuid, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_polls(p_id uuid, p_lease bigint, p_result jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_polls_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_polls_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_runs(p_id uuid, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_runs(p_id uuid, p_lease bigint, p_result jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_runs_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_runs_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_schedules(p_id uuid, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_schedules(p_id uuid, p_lease bigint, p_result jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_schedules_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_schedules_many(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.condition_of(p_table regclass, p_match jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.condition_of(p_table regclass, p_match jsonb) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.contact_name(p_contact bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.contact_name(p_contact bigint) TO authenticated;
GRANT ALL ON FUNCTION gleaner.contact_name(p_contact bigint) TO service_role;

REVOKE ALL ON FUNCTION gleaner.contact_of_prospect(p_prospect text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.contact_of_prospect(p_prospect text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.create_contacts(p_activity_ids uuid[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.dead_letter_activities(p_row public.activities, p_reason text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.default_region() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.default_region() TO service_role;

REVOKE ALL ON FUNCTION gleaner.enqueue_activities(p_items jsonb, p_on_duplicate text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.enqueue_activities(p_items jsonb, p_on_duplicate text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.enqueue_dumps(p_items jsonb, p_on_duplicate text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.enqueue_dumps(p_items jsonb, p_on_duplicate text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.enqueue_followups(p_items jsonb, p_on_duplicate text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.enqueue_followups(p_items jsonb, p_on_duplicate text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.enqueue_jobs(p_items jsonb, p_on_duplicate text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.enqueue_jobs(p_items jsonb, p_on_duplicate text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.enqueue_polls(p_items jsonb, p_on_duplicate text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.enqueue_polls(p_items jsonb, p_on_duplicate text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.enqueue_runs(p_items jsonb, p_on_duplicate text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.enqueue_runs(p_items jsonb, p_on_duplicate text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.enqueue_schedules(p_items jsonb, p_on_duplicate text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.enqueue_schedules(p_items jsonb, p_on_duplicate text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.enqueue_unique_jobs(p_items jsonb, p_on_duplicate text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.estimate_rows(p_table regclass) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.estimate_rows(p_table regclass) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.explain_activities(p_id uuid, p_owner bigint, p_kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_activities(p_id uuid, p_owner bigint, p_kinds text[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.explain_activities(p_id uuid, p_owner bigint, p_kinds text[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.explain_dumps(p_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_dumps(p_id uuid) TO authenticated;
GRANT ALL ON FUNCTION gleaner.explain_dumps(p_id uuid) TO service_role;

REVOKE ALL ON FUNCTION gleaner.explain_followups(p_id uuid, p_kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_followups(p_id uuid, p_kinds text[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.explain_followups(p_id uuid, p_kinds text[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.explain_jobs(p_id bigint, p_kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_jobs(p_id bigint, p_kinds text[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.explain_jobs(p_id bigint, p_kinds text[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.explain_polls(p_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_polls(p_id uuid) TO authenticated;
GRANT ALL ON FUNCTION gleaner.explain_polls(p_id uuid) TO service_role;

REVOKE ALL ON FUNCTION gleaner.explain_row(p_queue text, p_tenant text, p_key text, p_now timestamp with time zone, p_session text, p_row jsonb, p_private boolean, p_other_kind text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_row(p_queue text, p_tenant text, p_key text, p_now timestamp with time zone, p_session text, p_row jsonb, p_private boolean, p_other_kind text) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.explain_runs(p_id uuid, p_kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_runs(p_id uuid, p_kinds text[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.explain_runs(p_id uuid, p_kinds text[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.explain_schedules(p_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_schedules(p_id uuid) TO authenticated;
GRANT ALL ON FUNCTION gleaner.explain_schedules(p_id uuid) TO service_role;

REVOKE ALL ON FUNCTION gleaner.fail_activities(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.fail_activities(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) TO authenticated;
GRANT ALL ON FUNCTION gleaner.fail_activities(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.fail_dumps(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.fail_dumps(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.fail_followups(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.fail_followups(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.fail_jobs(p_id bigint, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.fail_jobs(p_id bigint, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.fail_polls(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.fail_polls(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.fail_runs(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.fail_runs(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.fail_schedules(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.fail_schedules(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.find_ban(p_user uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.find_dumps(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.find_followups(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.find_global_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) FROM PUBLIC;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.bulk_range TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.bulk_range TO service_role;

REVOKE ALL ON FUNCTION gleaner.find_jobs(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed bigint[], p_kinds text[], p_batches int8multirange, p_before gleaner.bulk_range, OUT keys bigint[], OUT held_before smallint[], OUT fresh boolean[], OUT seen integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.find_open_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_owner bigint, p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.find_overdue_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_owner bigint, p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.find_own_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_owner bigint, p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.find_polls(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.find_range_jobs(p_kinds text[], p_now timestamp with time zone, p_by timestamp with time zone, p_passed bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.find_runs(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.find_schedules(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.find_stale_activities(p_limit integer, p_now timestamp with time zone, p_by timestamp with time zone, p_passed uuid[], p_owner bigint, p_kinds text[], OUT keys uuid[], OUT held_before smallint[], OUT seen integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.forget_artefacts() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.forget_context_items() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.forget_dump_files() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.forget_files() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.forget_relationships() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.group_items(p_table regclass, p_items jsonb, p_on_duplicate text, p_unwritten text[], OUT items jsonb, OUT names text[], OUT columns text, OUT taken text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.group_items(p_table regclass, p_items jsonb, p_on_duplicate text, p_unwritten text[], OUT items jsonb, OUT names text[], OUT columns text, OUT taken text) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.hear_linked() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.hear_receipts() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.hear_replies() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.hold_batch_jobs(p_keys bigint[], p_agent text, p_session text, p_now timestamp with time zone, p_hold interval, p_started boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.hold_mixed_jobs(p_keys bigint[], p_fresh boolean[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.hold_range_jobs(p_range gleaner.bulk_range, p_limit integer, p_agent text, p_session text, p_now timestamp with time zone, p_hold interval, p_started boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.in_shape_jobs() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.ingest_activities(p_patience text, p_channels uuid[], p_raw_ids uuid[], p_methods text[], p_targets text[], p_headers jsonb[], p_bodies bytea[], p_body_files text[], p_requests integer[], p_ids uuid[], p_types text[], p_directions text[], p_raw_data jsonb[], p_metadata jsonb[], p_external_ids text[], p_sender_kinds text[], p_sender_addresses text[], p_recalls text[], p_once jsonb, p_remember jsonb, p_media jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.insert_contact(p_first text, p_last text, p_kind text, p_address text, p_sales_id bigint, p_seen timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.is_administrator() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.is_administrator() TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.is_administrator() TO authenticated;
GRANT ALL ON FUNCTION gleaner.is_administrator() TO service_role;

REVOKE ALL ON FUNCTION gleaner.is_disabled(p_user uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.is_member() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.is_member() TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.is_member() TO authenticated;
GRANT ALL ON FUNCTION gleaner.is_member() TO service_role;

REVOKE ALL ON FUNCTION gleaner.is_plain(p_table regclass, p_columns text[], p_status text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.is_plain(p_table regclass, p_columns text[], p_status text) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.is_region_of_one(p_provider uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.is_repeated(p_queue text, p_request uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.is_repeated(p_queue text, p_request uuid) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.is_sales_administrator() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.is_salesperson() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.is_trusted() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.is_trusted() TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.is_trusted() TO service_role;

REVOKE ALL ON FUNCTION gleaner.issue_token(p_user uuid, p_type text, p_hash text, p_valid interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.join_team(p_user uuid, p_administrator boolean, p_link boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.keep_an_owner() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.keep_late(p_queue text, p_tenant text, p_key text, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.keep_late(p_queue text, p_tenant text, p_key text, p_lease bigint, p_result jsonb) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.keep_recording_versions() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.keep_recordings() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.leave_batch() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.link_activity(p_activity uuid, p_contact bigint, p_backfill boolean, p_remember boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.link_activity(p_activity uuid, p_contact bigint, p_backfill boolean, p_remember boolean) TO authenticated;
GRANT ALL ON FUNCTION gleaner.link_activity(p_activity uuid, p_contact bigint, p_backfill boolean, p_remember boolean) TO service_role;

REVOKE ALL ON FUNCTION gleaner.link_identity() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.list_captures() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lock_activities(p_id uuid, p_lease bigint, OUT held public.activities, OUT outcome text, OUT status text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lock_dumps(p_id uuid, p_lease bigint, OUT held public.agent_processing_queue, OUT outcome text, OUT status text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lock_followups(p_id uuid, p_lease bigint, OUT held public.scheduled_actions, OUT outcome text, OUT status text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lock_jobs(p_id bigint, p_lease bigint, OUT held gleaner.jobs, OUT outcome text, OUT status text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lock_polls(p_id uuid, p_lease bigint, OUT held gleaner.polls, OUT outcome text, OUT status text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lock_runs(p_id uuid, p_lease bigint, OUT held public.execution_jobs, OUT outcome text, OUT status text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lock_schedules(p_id uuid, p_lease bigint, OUT held public.followup_schedules, OUT outcome text, OUT status text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.look_again(p_kind text, p_addresses text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.look_at_batches(p_queue text, p_now timestamp with time zone, OUT keys int8multirange, OUT ran_out boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.look_at_batches(p_queue text, p_now timestamp with time zone, OUT keys int8multirange, OUT ran_out boolean) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.loose_email(p_address text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lose_activities(v_row public.activities) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lose_dumps(v_row public.agent_processing_queue) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lose_followups(v_row public.scheduled_actions) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lose_jobs(v_row gleaner.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lose_polls(v_row gleaner.polls) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lose_runs(v_row public.execution_jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lose_schedules(v_row public.followup_schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.match_contact(p_kind text, p_address text, p_provider uuid, OUT method text, OUT candidates bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.match_context_items(p_basket_id uuid, p_items jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.match_context_items(p_basket_id uuid, p_items jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.match_words(p_text text, p_status text, p_type text, p_owner bigint, p_unowned boolean, p_channel uuid, p_contact bigint, p_before timestamp with time zone, p_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.match_words(p_text text, p_status text, p_type text, p_owner bigint, p_unowned boolean, p_channel uuid, p_contact bigint, p_before timestamp with time zone, p_id uuid) TO authenticated;
GRANT ALL ON FUNCTION gleaner.match_words(p_text text, p_status text, p_type text, p_owner bigint, p_unowned boolean, p_channel uuid, p_contact bigint, p_before timestamp with time zone, p_id uuid) TO service_role;

REVOKE ALL ON FUNCTION gleaner.me() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.me() TO authenticated;
GRANT ALL ON FUNCTION gleaner.me() TO service_role;

REVOKE ALL ON FUNCTION gleaner.merge_metadata(p_old jsonb, p_new jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.my_workspaces() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.my_workspaces() TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.my_workspaces() TO authenticated;
GRANT ALL ON FUNCTION gleaner.my_workspaces() TO service_role;

REVOKE ALL ON FUNCTION gleaner.next_due_activities(p_owner bigint, p_kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.next_due_activities(p_owner bigint, p_kinds text[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.next_due_activities(p_owner bigint, p_kinds text[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.next_due_dumps() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.next_due_dumps() TO service_role;

REVOKE ALL ON FUNCTION gleaner.next_due_followups(p_kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.next_due_followups(p_kinds text[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.next_due_jobs(p_kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.next_due_jobs(p_kinds text[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.next_due_polls() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.next_due_polls() TO service_role;

REVOKE ALL ON FUNCTION gleaner.next_due_runs(p_kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.next_due_runs(p_kinds text[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.next_due_schedules() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.next_due_schedules() TO service_role;

REVOKE ALL ON FUNCTION gleaner.next_range_jobs(p_kinds text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.note_change() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.note_deleted_user() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.note_prune(p_queue text, p_count integer, p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.note_prune(p_queue text, p_count integer, p_older_than interval) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.note_receipt(p_message_id text, p_receipt jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.notify_rows() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.open_activities(p_owner bigint, p_since timestamp with time zone, p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.open_session(p_user uuid, p_password text, p_token text, p_method text, p_user_agent text, p_ip inet) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.operate_activities(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.operate_dumps(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.operate_followups(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.operate_jobs(p_act text, p_ids bigint[], p_reason text, p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.operate_polls(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.operate_runs(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.operate_schedules(p_act text, p_ids uuid[], p_reason text, p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.operates(p_queue text, p_all text[], p_own text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.operates(p_queue text, p_all text[], p_own text[]) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.opt_out_word(p_text text, p_type text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.own_activities(p_owner bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.owns_contact(p_contact bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.owns_contact(p_contact bigint) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.owns_workspace(p_workspace_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.owns_workspace(p_workspace_id uuid) TO authenticated;
GRANT ALL ON FUNCTION gleaner.owns_workspace(p_workspace_id uuid) TO service_role;

REVOKE ALL ON FUNCTION gleaner.parse_addresses(p_parsed jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.pause_queue(p_queue text, p_paused boolean, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.pause_queue(p_queue text, p_paused boolean, p_reason text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.pause_queue(p_queue text, p_paused boolean, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.pending_addresses(p_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.phone_aliases(p_address text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.prepare_api_login(p_name text, p_verifier text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.prepare_followup(p_request jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.prepare_followup(p_request jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.prepare_run() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.prepare_schedule(p_request jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.prepare_schedule(p_request jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.progress_activities(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.progress_activities(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) TO authenticated;
GRANT ALL ON FUNCTION gleaner.progress_activities(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.progress_dumps(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.progress_dumps(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.progress_followups(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.progress_followups(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.progress_jobs(p_id bigint, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.progress_jobs(p_id bigint, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.progress_polls(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.progress_polls(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.progress_runs(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.progress_runs(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.progress_schedules(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.progress_schedules(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb, p_hold interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.prune_changes(p_before xid8, p_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.prune_dumps(p_limit integer, p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.prune_dumps(p_limit integer, p_older_than interval) TO authenticated;
GRANT ALL ON FUNCTION gleaner.prune_dumps(p_limit integer, p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.prune_followups(p_limit integer, p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.prune_followups(p_limit integer, p_older_than interval) TO authenticated;
GRANT ALL ON FUNCTION gleaner.prune_followups(p_limit integer, p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.prune_ingestion(p_raw_age interval, p_raw_rows bigint, p_refusal_age interval, p_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.prune_jobs(p_limit integer, p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.prune_jobs(p_limit integer, p_older_than interval) TO authenticated;
GRANT ALL ON FUNCTION gleaner.prune_jobs(p_limit integer, p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.prune_notes(p_queue text, p_now timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.prune_notes(p_queue text, p_now timestamp with time zone) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.prune_runs(p_limit integer, p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.prune_runs(p_limit integer, p_older_than interval) TO authenticated;
GRANT ALL ON FUNCTION gleaner.prune_runs(p_limit integer, p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.prune_schedules(p_limit integer, p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.prune_schedules(p_limit integer, p_older_than interval) TO authenticated;
GRANT ALL ON FUNCTION gleaner.prune_schedules(p_limit integer, p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.prune_slice_jobs(p_from bigint, p_upto bigint, p_size integer, p_most integer, p_before timestamp with time zone, OUT old integer, OUT gone integer, OUT stayed integer, OUT ended timestamp with time zone, OUT created timestamp with time zone, OUT next bigint, OUT whole boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.put_back_activities(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.put_back_dumps(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.put_back_followups(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.put_back_jobs(p_ids bigint[], p_leases bigint[], p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.put_back_polls(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.put_back_runs(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.put_back_schedules(p_ids uuid[], p_leases bigint[], p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.raise_if_momentary(p_state text, p_message text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.raise_if_momentary(p_state text, p_message text) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.range_keys(p_queue text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.range_keys(p_queue text) TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.range_keys(p_queue text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.range_keys(p_queue text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.read_cursor(p_setting text, p_asked text, p_now timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.read_cursor(p_setting text, p_asked text, p_now timestamp with time zone) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.reason_not_to_send(p_row public.scheduled_actions, p_to text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.reason_not_to_send(p_row public.scheduled_actions, p_to text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.reason_to_wait(p_row public.scheduled_actions, OUT until timestamp with time zone, OUT reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.reason_to_wait(p_row public.scheduled_actions, OUT until timestamp with time zone, OUT reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.record_nodes(p_nodes jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.record_outbound() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.record_refusals(p_refusals jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.record_row(p_request jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.record_row(p_request jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.recording_problem(p_content jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.recording_problem(p_content jsonb) TO authenticated;
GRANT ALL ON FUNCTION gleaner.recording_problem(p_content jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.recover_activities(p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.recover_activities(p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.recover_dumps(p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.recover_dumps(p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.recover_followups(p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.recover_followups(p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.recover_jobs(p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.recover_jobs(p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.recover_polls(p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.recover_polls(p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.recover_runs(p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.recover_runs(p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.recover_schedules(p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.recover_schedules(p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.redeem_token(p_hash text, p_types text[], p_password text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.refresh_context_items(p_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.refresh_context_items(p_ids uuid[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.refresh_session(p_token text, p_next text, p_grace interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.refuse_banned(p_user uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.refuse_contact(p_request jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.refuse_contact(p_request jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.refuse_update() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.register_range_jobs(p_first bigint[], p_last bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.register_range_jobs(p_first bigint[], p_last bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.reject_row(p_queue text, p_tenant text, p_key text, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.reject_row(p_queue text, p_tenant text, p_key text, p_reason text) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.release_activities(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.release_activities(p_ids uuid[], p_leases bigint[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.release_activities(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.release_dumps(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.release_dumps(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.release_followups(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.release_followups(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.release_jobs(p_ids bigint[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.release_jobs(p_ids bigint[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.release_polls(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.release_polls(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.release_runs(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.release_runs(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.release_schedules(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.release_schedules(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.remember_activities(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.remember_dumps(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.remember_followups(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.remember_jobs(p_request uuid, p_keys bigint[], p_session text, p_now timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.remember_polls(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.remember_runs(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.remember_schedules(p_request uuid, p_keys uuid[], p_lease bigint, p_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.repeat_activities(p_request uuid, v_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.repeat_dumps(p_request uuid, v_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.repeat_followups(p_request uuid, v_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.repeat_jobs(p_request uuid, v_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.repeat_polls(p_request uuid, v_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.repeat_runs(p_request uuid, v_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.repeat_schedules(p_request uuid, v_session text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.request_poll(p_provider_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.request_poll(p_provider_id uuid) TO service_role;

REVOKE ALL ON FUNCTION gleaner.requeue_activities(p_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.requeue_activities(p_ids uuid[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.requeue_activities(p_ids uuid[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.requeue_dumps(p_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.requeue_dumps(p_ids uuid[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.requeue_dumps(p_ids uuid[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.requeue_followups(p_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.requeue_followups(p_ids uuid[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.requeue_followups(p_ids uuid[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.requeue_jobs(p_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.requeue_jobs(p_ids bigint[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.requeue_jobs(p_ids bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.requeue_polls(p_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.requeue_polls(p_ids uuid[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.requeue_polls(p_ids uuid[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.requeue_runs(p_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.requeue_runs(p_ids uuid[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.requeue_runs(p_ids uuid[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.requeue_schedules(p_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.requeue_schedules(p_ids uuid[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.requeue_schedules(p_ids uuid[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.require_own_contact(p_prospect text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.reschedule_activities(p_ids uuid[], p_due timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.reschedule_activities(p_ids uuid[], p_due timestamp with time zone) TO authenticated;
GRANT ALL ON FUNCTION gleaner.reschedule_activities(p_ids uuid[], p_due timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.reschedule_dumps(p_ids uuid[], p_due timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.reschedule_dumps(p_ids uuid[], p_due timestamp with time zone) TO authenticated;
GRANT ALL ON FUNCTION gleaner.reschedule_dumps(p_ids uuid[], p_due timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.reschedule_followups(p_ids uuid[], p_due timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.reschedule_followups(p_ids uuid[], p_due timestamp with time zone) TO authenticated;
GRANT ALL ON FUNCTION gleaner.reschedule_followups(p_ids uuid[], p_due timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.reschedule_jobs(p_ids bigint[], p_due timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.reschedule_jobs(p_ids bigint[], p_due timestamp with time zone) TO authenticated;
GRANT ALL ON FUNCTION gleaner.reschedule_jobs(p_ids bigint[], p_due timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.reschedule_polls(p_ids uuid[], p_due timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.reschedule_polls(p_ids uuid[], p_due timestamp with time zone) TO authenticated;
GRANT ALL ON FUNCTION gleaner.reschedule_polls(p_ids uuid[], p_due timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.reschedule_runs(p_ids uuid[], p_due timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.reschedule_runs(p_ids uuid[], p_due timestamp with time zone) TO authenticated;
GRANT ALL ON FUNCTION gleaner.reschedule_runs(p_ids uuid[], p_due timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.reschedule_schedules(p_ids uuid[], p_due timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.reschedule_schedules(p_ids uuid[], p_due timestamp with time zone) TO authenticated;
GRANT ALL ON FUNCTION gleaner.reschedule_schedules(p_ids uuid[], p_due timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.reserve_keys_jobs(p_count integer) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.reserve_keys_jobs(p_count integer) TO service_role;

REVOKE ALL ON FUNCTION gleaner.restamp_activities(p_ids uuid[], p_open_at timestamp with time zone[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.run_request(p_user uuid, p_settings text[], p_sql text, p_parameters text[], p_limit integer, OUT rows text, OUT shown bigint, OUT total bigint, OUT inserted bigint, OUT status text, OUT headers text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.same_label(p_label text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.same_label(p_label text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.schedule_poll() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.scoped_kinds(p_queue text, p_kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.scoped_kinds(p_queue text, p_kinds text[]) TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.scoped_kinds(p_queue text, p_kinds text[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.sees(p_queue text, p_key text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.sees(p_queue text, p_key text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.sees(p_queue text, p_key text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.serves_auth() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.serves_auth() TO service_role;

REVOKE ALL ON FUNCTION gleaner.settle_activities(p_row public.activities, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.settle_dumps(p_row public.agent_processing_queue, p_status public.processing_state, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.settle_followups(p_row public.scheduled_actions, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.settle_jobs(p_row gleaner.jobs, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.settle_polls(p_row gleaner.polls, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.settle_runs(p_row public.execution_jobs, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.settle_schedules(p_row public.followup_schedules, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.short_key(p_key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.show_user(p_user uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.site_of(p_url text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.site_of(p_url text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.site_of(p_url text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.snooze_activities(p_id uuid, p_lease bigint, p_until timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.snooze_activities(p_id uuid, p_lease bigint, p_until timestamp with time zone) TO authenticated;
GRANT ALL ON FUNCTION gleaner.snooze_activities(p_id uuid, p_lease bigint, p_until timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.snooze_dumps(p_id uuid, p_lease bigint, p_until timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.snooze_dumps(p_id uuid, p_lease bigint, p_until timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.snooze_followups(p_id uuid, p_lease bigint, p_until timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.snooze_followups(p_id uuid, p_lease bigint, p_until timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.snooze_jobs(p_id bigint, p_lease bigint, p_until timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.snooze_jobs(p_id bigint, p_lease bigint, p_until timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.snooze_polls(p_id uuid, p_lease bigint, p_until timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.snooze_polls(p_id uuid, p_lease bigint, p_until timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.snooze_runs(p_id uuid, p_lease bigint, p_until timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.snooze_runs(p_id uuid, p_lease bigint, p_until timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.snooze_schedules(p_id uuid, p_lease bigint, p_until timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.snooze_schedules(p_id uuid, p_lease bigint, p_until timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION gleaner.split_name(p_name text, p_address text, OUT first_name text, OUT last_name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.start_activities(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.start_activities(p_ids uuid[], p_leases bigint[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.start_activities(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.start_dumps(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.start_dumps(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.start_followups(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.start_followups(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.start_in_batch_jobs(p_ids bigint[], p_leases bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.start_jobs(p_ids bigint[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.start_jobs(p_ids bigint[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.start_polls(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.start_polls(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.start_runs(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.start_runs(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.start_schedules(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.start_schedules(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.state_activities(p_row public.activities, p_now timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.state_dumps(p_row public.agent_processing_queue, p_now timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.state_followups(p_row public.scheduled_actions, p_now timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.state_jobs(p_row gleaner.jobs, p_now timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.state_polls(p_row gleaner.polls, p_now timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.state_runs(p_row public.execution_jobs, p_now timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.state_schedules(p_row public.followup_schedules, p_now timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.stats_activities() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.stats_activities() TO authenticated;
GRANT ALL ON FUNCTION gleaner.stats_activities() TO service_role;

REVOKE ALL ON FUNCTION gleaner.stats_dumps() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.stats_dumps() TO authenticated;
GRANT ALL ON FUNCTION gleaner.stats_dumps() TO service_role;

REVOKE ALL ON FUNCTION gleaner.stats_followups() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.stats_followups() TO authenticated;
GRANT ALL ON FUNCTION gleaner.stats_followups() TO service_role;

REVOKE ALL ON FUNCTION gleaner.stats_jobs() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.stats_jobs() TO authenticated;
GRANT ALL ON FUNCTION gleaner.stats_jobs() TO service_role;

REVOKE ALL ON FUNCTION gleaner.stats_polls() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.stats_polls() TO authenticated;
GRANT ALL ON FUNCTION gleaner.stats_polls() TO service_role;

REVOKE ALL ON FUNCTION gleaner.stats_runs() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.stats_runs() TO authenticated;
GRANT ALL ON FUNCTION gleaner.stats_runs() TO service_role;

REVOKE ALL ON FUNCTION gleaner.stats_schedules() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.stats_schedules() TO authenticated;
GRANT ALL ON FUNCTION gleaner.stats_schedules() TO service_role;

REVOKE ALL ON FUNCTION gleaner.store_artefact(p_request jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.store_artefact(p_request jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.store_blocks(p_basket_id uuid, p_dump_id uuid, p_blocks jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.store_context_items(p_basket_id uuid, p_dump_id uuid, p_items jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.store_relationships(p_basket_id uuid, p_dump_id uuid, p_edges jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.store_substrate() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.store_words() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_each_activities(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_each_dumps(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_each_followups(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_each_jobs(p_keys bigint[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_each_polls(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_each_runs(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_each_schedules(p_keys uuid[], p_most integer, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_first_dumps(p_by timestamp with time zone, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_first_followups(p_by timestamp with time zone, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_first_global_activities(p_by timestamp with time zone, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_first_jobs(p_by timestamp with time zone, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_first_own_activities(p_by timestamp with time zone, p_owner bigint, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_first_polls(p_by timestamp with time zone, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_first_runs(p_by timestamp with time zone, p_kinds text[], p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean, v_holder text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.take_first_schedules(p_by timestamp with time zone, p_agent text, v_session text, v_now timestamp with time zone, p_hold interval, p_started boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.unbatch_jobs(p_ids bigint[], p_batches bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.unlink_activity(p_activity uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.unlink_activity(p_activity uuid) TO authenticated;
GRANT ALL ON FUNCTION gleaner.unlink_activity(p_activity uuid) TO service_role;

REVOKE ALL ON FUNCTION gleaner.unpack_range_jobs(p_range gleaner.bulk_range, p_upto bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.verify_key(p_hash bytea) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.with_address(p_list jsonb, p_key text, p_address text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.with_address(p_list jsonb, p_key text, p_address text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.with_address(p_list jsonb, p_key text, p_address text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.words_of(p_text text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.worker_session() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.worker_session() TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.worker_session() TO authenticated;
GRANT ALL ON FUNCTION gleaner.worker_session() TO service_role;

REVOKE ALL ON FUNCTION gleaner.write_cursor(p_setting text, p_asked text, p_before jsonb, p_now timestamp with time zone, p_took interval, p_cursor jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.write_cursor(p_setting text, p_asked text, p_before jsonb, p_now timestamp with time zone, p_took interval, p_cursor jsonb) TO gleaner_engine;

REVOKE ALL ON FUNCTION public.approve_scheduled_actions(p_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION public.approve_scheduled_actions(p_ids uuid[]) TO authenticated;
GRANT ALL ON FUNCTION public.approve_scheduled_actions(p_ids uuid[]) TO service_role;

REVOKE ALL ON FUNCTION public.auto_link_contact() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.cancel_pending_for_prospect(p_prospect_id text, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.cancel_pending_for_prospect(p_prospect_id text, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION public.cancel_scheduled_actions(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.cancel_scheduled_actions(p_ids uuid[], p_reason text) TO authenticated;
GRANT ALL ON FUNCTION public.cancel_scheduled_actions(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION public.claim_due_actions(p_limit integer, p_max_delay_seconds integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.claim_due_actions(p_limit integer, p_max_delay_seconds integer) TO service_role;

REVOKE ALL ON FUNCTION public.claim_next_pending_activity(p_agent_sales_id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION public.claim_next_pending_activity(p_agent_sales_id bigint) TO authenticated;
GRANT ALL ON FUNCTION public.claim_next_pending_activity(p_agent_sales_id bigint) TO service_role;

REVOKE ALL ON FUNCTION public.claim_stale_activity() FROM PUBLIC;
GRANT ALL ON FUNCTION public.claim_stale_activity() TO authenticated;
GRANT ALL ON FUNCTION public.claim_stale_activity() TO service_role;

REVOKE ALL ON FUNCTION public.create_scheduled_action(p_prospect_id text, p_action_type text, p_scheduled_for timestamp with time zone, p_payload jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION public.create_scheduled_action(p_prospect_id text, p_action_type text, p_scheduled_for timestamp with time zone, p_payload jsonb) TO service_role;

REVOKE ALL ON FUNCTION public.fn_block_create(p_basket_id uuid, p_title text, p_content text, p_semantic_type text, p_confidence_score numeric, p_dump_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION public.fn_block_create(p_basket_id uuid, p_title text, p_content text, p_semantic_type text, p_confidence_score numeric, p_dump_id uuid) TO service_role;

REVOKE ALL ON FUNCTION public.fn_claim_next_dumps(p_worker_id text, p_limit integer, p_stale_after_minutes integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.fn_claim_next_dumps(p_worker_id text, p_limit integer, p_stale_after_minutes integer) TO service_role;

REVOKE ALL ON FUNCTION public.fn_context_item_upsert_bulk(p_basket_id uuid, p_items jsonb, p_dump_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION public.fn_context_item_upsert_bulk(p_basket_id uuid, p_items jsonb, p_dump_id uuid) TO service_role;

REVOKE ALL ON FUNCTION public.fn_reflections(p_basket_id uuid, p_days integer, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.fn_reflections(p_basket_id uuid, p_days integer, p_limit integer) TO authenticated;
GRANT ALL ON FUNCTION public.fn_reflections(p_basket_id uuid, p_days integer, p_limit integer) TO service_role;

REVOKE ALL ON FUNCTION public.fn_relationship_upsert_bulk(p_basket_id uuid, p_edges jsonb, p_dump_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION public.fn_relationship_upsert_bulk(p_basket_id uuid, p_edges jsonb, p_dump_id uuid) TO service_role;

REVOKE ALL ON FUNCTION public.fn_workspace_create(p_name text, p_basket text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.fn_workspace_create(p_name text, p_basket text) TO authenticated;
GRANT ALL ON FUNCTION public.fn_workspace_create(p_name text, p_basket text) TO service_role;

REVOKE ALL ON FUNCTION public.fn_workspace_invite(p_workspace_id uuid, p_email text, p_role text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.fn_workspace_invite(p_workspace_id uuid, p_email text, p_role text) TO authenticated;
GRANT ALL ON FUNCTION public.fn_workspace_invite(p_workspace_id uuid, p_email text, p_role text) TO service_role;

REVOKE ALL ON FUNCTION public.fn_workspace_join(p_token text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.fn_workspace_join(p_token text) TO authenticated;

REVOKE ALL ON FUNCTION public.get_pending_actions(p_prospect_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.get_pending_actions(p_prospect_id text) TO authenticated;
GRANT ALL ON FUNCTION public.get_pending_actions(p_prospect_id text) TO service_role;

REVOKE ALL ON FUNCTION public.guard_activity() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.keep_channel_secrets() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.list_contact_addresses(p_email text, p_phone text, p_emails jsonb, p_phones jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION public.list_contact_addresses(p_email text, p_phone text, p_emails jsonb, p_phones jsonb) TO service_role;

REVOKE ALL ON FUNCTION public.mark_processing(p_action_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION public.mark_processing(p_action_id uuid) TO service_role;

REVOKE ALL ON FUNCTION public.normalize_email(p_text text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.normalize_email(p_text text) TO authenticated;
GRANT ALL ON FUNCTION public.normalize_email(p_text text) TO service_role;

REVOKE ALL ON FUNCTION public.normalize_phone(p_text text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.normalize_phone(p_text text) TO authenticated;
GRANT ALL ON FUNCTION public.normalize_phone(p_text text) TO service_role;

REVOKE ALL ON FUNCTION public.queue_agent_processing() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.refresh_contact_addresses() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.reset_stale_locks() FROM PUBLIC;
GRANT ALL ON FUNCTION public.reset_stale_locks() TO authenticated;
GRANT ALL ON FUNCTION public.reset_stale_locks() TO service_role;

REVOKE ALL ON FUNCTION public.reset_stale_processing(p_stale_after_seconds integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.reset_stale_processing(p_stale_after_seconds integer) TO service_role;

REVOKE ALL ON FUNCTION public.save_recording(p_name text, p_content jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION public.save_recording(p_name text, p_content jsonb) TO authenticated;
GRANT ALL ON FUNCTION public.save_recording(p_name text, p_content jsonb) TO service_role;

REVOKE ALL ON FUNCTION public.schedule_followup(p_prospect_id text, p_scheduled_for timestamp with time zone, p_payload jsonb, p_action_type text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.schedule_followup(p_prospect_id text, p_scheduled_for timestamp with time zone, p_payload jsonb, p_action_type text) TO authenticated;
GRANT ALL ON FUNCTION public.schedule_followup(p_prospect_id text, p_scheduled_for timestamp with time zone, p_payload jsonb, p_action_type text) TO service_role;

REVOKE ALL ON FUNCTION public.schedule_recurring_followup(p_prospect_id text, p_cron text, p_time_zone text, p_payload jsonb, p_options jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION public.schedule_recurring_followup(p_prospect_id text, p_cron text, p_time_zone text, p_payload jsonb, p_options jsonb) TO authenticated;
GRANT ALL ON FUNCTION public.schedule_recurring_followup(p_prospect_id text, p_cron text, p_time_zone text, p_payload jsonb, p_options jsonb) TO service_role;

REVOKE ALL ON FUNCTION public.search_activities(p_text text, p_status text, p_type text, p_owner bigint, p_unowned boolean, p_channel uuid, p_contact bigint, p_before timestamp with time zone, p_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION public.search_activities(p_text text, p_status text, p_type text, p_owner bigint, p_unowned boolean, p_channel uuid, p_contact bigint, p_before timestamp with time zone, p_id uuid) TO authenticated;
GRANT ALL ON FUNCTION public.search_activities(p_text text, p_status text, p_type text, p_owner bigint, p_unowned boolean, p_channel uuid, p_contact bigint, p_before timestamp with time zone, p_id uuid) TO service_role;

REVOKE ALL ON FUNCTION public.touch_execution_jobs() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.touch_scheduled_actions() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.unlock_stale_locks() FROM PUBLIC;
GRANT ALL ON FUNCTION public.unlock_stale_locks() TO authenticated;
GRANT ALL ON FUNCTION public.unlock_stale_locks() TO service_role;

GRANT SELECT ON TABLE gleaner.adopted_table TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.audit TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.audit TO service_role;
GRANT SELECT ON TABLE gleaner.audit TO authenticated;

GRANT USAGE ON SEQUENCE gleaner.batch_lease_seq TO gleaner_engine;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.batch_lease TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.batch_lease TO service_role;

GRANT SELECT,UPDATE ON TABLE gleaner.contact_settings TO service_role;

GRANT SELECT ON TABLE gleaner.ingest_refusal TO authenticated;
GRANT SELECT ON TABLE gleaner.ingest_refusal TO service_role;

GRANT USAGE ON SEQUENCE gleaner.jobs_id_seq TO gleaner_engine;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.late_result TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.late_result TO service_role;
GRANT SELECT ON TABLE gleaner.late_result TO authenticated;

GRANT SELECT ON TABLE gleaner.operation TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.operation TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.pause TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.pause TO authenticated;
GRANT SELECT ON TABLE gleaner.pause TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.prune_mark TO gleaner_engine;

GRANT SELECT ON TABLE gleaner.queue TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.queue TO service_role;
GRANT SELECT ON TABLE gleaner.queue TO authenticated;

GRANT SELECT ON TABLE gleaner.raw_request TO authenticated;
GRANT SELECT ON TABLE gleaner.raw_request TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.rejected_row TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.rejected_row TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.request TO gleaner_engine;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.activity_failures TO gleaner_engine;
GRANT SELECT ON TABLE public.activity_failures TO authenticated;
GRANT ALL ON TABLE public.activity_failures TO service_role;

GRANT SELECT,INSERT ON TABLE public.baskets TO authenticated;
GRANT ALL ON TABLE public.baskets TO service_role;

GRANT SELECT ON TABLE public.blocks TO authenticated;
GRANT ALL ON TABLE public.blocks TO service_role;

GRANT SELECT ON TABLE public.contact_addresses TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.contact_identities TO authenticated;
GRANT ALL ON TABLE public.contact_identities TO service_role;
GRANT SELECT ON TABLE public.contact_identities TO gleaner_engine;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.contact_preferences TO authenticated;
GRANT ALL ON TABLE public.contact_preferences TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.contacts TO authenticated;
GRANT ALL ON TABLE public.contacts TO service_role;
GRANT SELECT ON TABLE public.contacts TO gleaner_engine;

GRANT SELECT ON TABLE public.context_item_sources TO authenticated;
GRANT ALL ON TABLE public.context_item_sources TO service_role;

GRANT SELECT ON TABLE public.context_items TO authenticated;
GRANT ALL ON TABLE public.context_items TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.crm_processing_nodes TO authenticated;
GRANT ALL ON TABLE public.crm_processing_nodes TO service_role;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.crm_processing_nodes TO gleaner_engine;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.do_not_contact TO authenticated;
GRANT ALL ON TABLE public.do_not_contact TO service_role;

GRANT SELECT ON TABLE public.dump_agents TO authenticated;
GRANT SELECT ON TABLE public.dump_agents TO service_role;

GRANT SELECT ON TABLE public.failed_dumps TO authenticated;
GRANT SELECT ON TABLE public.failed_dumps TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.ingestion_providers TO authenticated;
GRANT ALL ON TABLE public.ingestion_providers TO service_role;

GRANT SELECT ON TABLE public.processing_performance TO authenticated;
GRANT SELECT ON TABLE public.processing_performance TO service_role;

GRANT SELECT ON TABLE public.workspaces TO authenticated;
GRANT ALL ON TABLE public.workspaces TO service_role;

GRANT SELECT ON TABLE public.queue_depth_by_workspace TO authenticated;
GRANT SELECT ON TABLE public.queue_depth_by_workspace TO service_role;

GRANT SELECT ON TABLE public.queue_health TO authenticated;
GRANT SELECT ON TABLE public.queue_health TO service_role;

GRANT SELECT,INSERT,DELETE ON TABLE public.raw_dumps TO authenticated;
GRANT ALL ON TABLE public.raw_dumps TO service_role;

GRANT SELECT,INSERT ON TABLE public.recording_versions TO authenticated;
GRANT SELECT,INSERT,DELETE ON TABLE public.recording_versions TO service_role;

GRANT SELECT,INSERT,DELETE ON TABLE public.recordings TO authenticated;
GRANT ALL ON TABLE public.recordings TO service_role;

GRANT SELECT ON TABLE public.run_artefacts TO authenticated;
GRANT ALL ON TABLE public.run_artefacts TO service_role;

GRANT SELECT ON TABLE public.run_rows TO authenticated;
GRANT ALL ON TABLE public.run_rows TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.run_sites TO authenticated;
GRANT ALL ON TABLE public.run_sites TO service_role;

GRANT SELECT ON TABLE public.sales TO gleaner_engine;
GRANT SELECT,UPDATE ON TABLE public.sales TO authenticated;
GRANT ALL ON TABLE public.sales TO service_role;

GRANT SELECT ON TABLE public.stuck_dumps TO authenticated;
GRANT SELECT ON TABLE public.stuck_dumps TO service_role;

GRANT SELECT ON TABLE public.substrate_relationships TO authenticated;
GRANT ALL ON TABLE public.substrate_relationships TO service_role;

GRANT SELECT ON TABLE public.unmatched_activities TO authenticated;
GRANT SELECT ON TABLE public.unmatched_activities TO service_role;

GRANT SELECT ON TABLE public.workspace_health TO authenticated;
GRANT SELECT ON TABLE public.workspace_health TO service_role;

GRANT SELECT,DELETE ON TABLE public.workspace_invitations TO authenticated;
GRANT ALL ON TABLE public.workspace_invitations TO service_role;

GRANT SELECT,DELETE ON TABLE public.workspace_members TO authenticated;
GRANT ALL ON TABLE public.workspace_members TO service_role;

