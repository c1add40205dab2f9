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
    v_session  text;
    v_mine     boolean;
    v_attempts integer;
begin
    if tg_op = 'INSERT' then
        new.lease := 0;
        new.lost := 0;
        new.started := 0;
        new.deadline_at := null;
        new.agent := null;
        new.session := null;
        new.attempts := 0;
        if new.processing_status is null then
            new.processing_status := 'raw';
        end if;
        if new.processing_status in ('raw', 'failed', 'processing') then
            -- A due time in the future is an appointment; otherwise the row has waited since it was created.
        new.due_at := case when new.due_at > v_now then new.due_at else least(coalesce(new.created_at, v_now), v_now) end;
        new.open_at := case when new.sales_id is null then new.due_at
            else gleaner.open_activities(new.sales_id, coalesce(new.created_at, new.due_at), new.due_at) end;
            if new.processing_status = 'failed' then
                -- Written as failed by somebody who knows better: history, not work.
                new.due_at := null;
            elsif new.processing_status in ('processing') then
                -- Inserted as already being worked on: the inserter holds it.
                new.lease := (extract(epoch from v_now) * 1000000)::bigint;
                -- Taken when the row says so: one inserted with an old lock has lost its holder already.
                v_now := least(coalesce(new.locked_at, v_now), v_now);
                new.deadline_at := v_now + (case new.type when 'call' then interval '2 hours' else interval '30 minutes' end);
                new.due_at := v_now + interval '5 minutes';
                new.open_at := case when new.open_at is null then null else greatest(new.open_at, new.due_at) end;
                new.started := 1;
                new.session := gleaner.caller_session();
            end if;
        else
            new.due_at := null;
        end if;
        return new;
    end if;

    -- The holder is known by its sign-in. Without a token only roles can be told apart, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session := gleaner.caller_session();
    v_mine := old.session = v_session and (gleaner.caller_uid() is not null or old.agent is null);
    if tg_nargs = 1 then
        -- Finished work is being finished again, with another result. The one who finished it may, or whoever likes where
        -- nobody ever held it; a former holder's late result must not take the place of the one that counts.
        if old.session is not null and v_mine is not true then
            return null;
        end if;
        return new;
    end if;

    -- Out of reach, always.
    new.lease := old.lease;
    new.due_at := old.due_at;
    new.lost := old.lost;
    new.started := old.started;
    new.deadline_at := old.deadline_at;
    new.agent := old.agent;
    new.session := old.session;
    new.attempts := old.attempts;
    new.open_at := old.open_at;

    if old.processing_status in ('processing') then
        if new.processing_status in ('processing') then
            if coalesce(v_mine, false) then
                -- A sign of life: a holder that writes results, progress or its lock keeps the row, up to the deadline.
                if (false or new.processed_data is distinct from old.processed_data or new.progress is distinct from old.progress or new.locked_at is distinct from old.locked_at) and old.due_at - v_now < (interval '5 minutes') / 2 then
                    new.due_at := greatest(old.due_at, least(v_now + interval '5 minutes', old.deadline_at));
                    new.open_at := case when old.open_at is null then null else greatest(old.open_at, new.due_at) end;
                end if;
            else
                -- Somebody else edits the row while it is held: what belongs to the work stays as the holder left it.
                new.processing_status := old.processing_status;
                new.processed_data := old.processed_data;
                new.progress := old.progress;
                new.locked_by := old.locked_by;
                new.locked_at := old.locked_at;
            end if;
            if new.sales_id is distinct from old.sales_id then
        new.due_at := old.due_at;
        new.open_at := case when new.sales_id is null then new.due_at
            else gleaner.open_activities(new.sales_id, coalesce(new.created_at, new.due_at), new.due_at) end;
            end if;
            return new;
        end if;
        if new.processing_status = 'completed' then
            if v_mine is not true then
                return null;
            end if;
        new.deadline_at := null;
        new.started := 0;
        new.locked_by := null;
        new.locked_at := null;
            return new;
        end if;
        if new.processing_status = 'cancelled' then
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := null;
        new.deadline_at := null;
        new.started := 0;
        new.locked_by := null;
        new.locked_at := null;
            return new;
        end if;
        -- Failed or put back by one who does not hold it: only once the lease has run out, or by an operator.
        if v_mine is not true and not (old.due_at <= v_now) and not (gleaner.is_trusted() and new.processing_status = 'raw') then
            return null;
        end if;
    elsif new.processing_status in ('completed', 'failed') and new.processing_status is distinct from old.processing_status
          and (old.processing_status in ('raw', 'failed', 'cancelled') and v_mine
               or old.processing_status in ('completed', 'cancelled') and new.processing_status = 'failed') then
        -- A late end: the one who held it last comes back to a row that waits for the next agent, or was called off; or
        -- somebody who no longer holds it gives up what another has finished.
        return null;
    end if;

    if new.processing_status is not distinct from old.processing_status then
        if new.sales_id is distinct from old.sales_id and old.due_at is not null then
        new.due_at := old.due_at;
        new.open_at := case when new.sales_id is null then new.due_at
            else gleaner.open_activities(new.sales_id, coalesce(new.created_at, new.due_at), new.due_at) end;
        end if;
        return new;
    end if;

    if new.processing_status in ('processing') then
        -- A plain claim. What is finished or dead is not claimable, whoever means to begin it now; it is put back first.
        if old.processing_status in ('completed', 'cancelled') or old.processing_status = 'failed' and old.due_at is null then
            return null;
        end if;
        if old.sales_id is not null and not gleaner.is_trusted()
           and old.sales_id is distinct from gleaner.own_activities(null)
           and (gleaner.open_activities(old.sales_id, old.created_at, old.due_at) <= v_now) is not true then
            return null;
        end if;
        new.lease := greatest(old.lease + 1, (extract(epoch from v_now) * 1000000)::bigint);
        new.due_at := v_now + interval '5 minutes';
        new.deadline_at := v_now + (case new.type when 'call' then interval '2 hours' else interval '30 minutes' end);
        new.open_at := case when old.open_at is null then null else greatest(old.open_at, new.due_at) end;
        new.started := 1;
        new.agent := null;
        new.session := v_session;
    elsif new.processing_status = 'raw' then
        -- A requeue, or the holder's release.
        new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
        if not (old.processing_status in ('processing') and v_mine is true) then
            new.attempts := 0;
            new.lost := 0;
        end if;
        new.due_at := v_now;
        new.open_at := case when new.sales_id is null then new.due_at
            else gleaner.open_activities(new.sales_id, coalesce(new.created_at, new.due_at), new.due_at) end;
        new.deadline_at := null;
        new.started := 0;
        new.locked_by := null;
        new.locked_at := null;
    elsif new.processing_status = 'failed' then
        -- A plain failure counts an attempt, backs off, and is dead in the end.
        v_attempts := old.attempts + 1;
        new.attempts := v_attempts;
        new.lease := old.lease + 1;
        -- An account of an earlier try is not the writer's of this one.
        if new.metadata #> '{error}' is null or new.metadata #> '{error}' = old.metadata #> '{error}' then
            new.metadata := jsonb_set(coalesce(new.metadata, '{}'), '{error}', jsonb_build_object('timestamp', v_now, 'type', 'Error', 'message', 'marked as failed', 'agent_id', coalesce(old.agent, old.session), 'retry_count', v_attempts));
        end if;
        if (v_attempts < 3 and coalesce(old.created_at, v_now) + interval '24 hours' > v_now) then
        new.due_at := v_now + gleaner.backoff(interval '30 seconds', interval '1 hour', v_attempts, old.id::text);
        new.open_at := case when new.sales_id is null then new.due_at
            else gleaner.open_activities(new.sales_id, coalesce(new.created_at, new.due_at), new.due_at) end;
        else
            new.due_at := null;
            perform gleaner.dead_letter_activities(new, new.metadata #>> ('{error}'::text[] || '{message}'::text[]));
        end if;
        new.deadline_at := null;
        new.started := 0;
        new.locked_by := null;
        new.locked_at := null;
    else
        -- Finished without a claim: a note, a decision by hand. Nobody's late result may reopen it.
        new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
        new.due_at := null;
        new.deadline_at := null;
        new.started := 0;
        new.locked_by := null;
        new.locked_at := null;
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
    v_session  text;
    v_mine     boolean;
    v_attempts integer;
begin
    if tg_op = 'INSERT' then
        new.lease := 0;
        new.lost := 0;
        new.started := 0;
        new.deadline_at := null;
        new.agent := null;
        new.session := null;
        new.attempts := coalesce(new.attempts, 0);
        if new.processing_state is null then
            new.processing_state := 'pending'::public.processing_state;
        end if;
        if new.processing_state in ('pending'::public.processing_state, 'failed'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state) then
            -- A due time in the future is an appointment; otherwise the row has waited since it was created.
        new.due_at := case when new.due_at > v_now then new.due_at else least(coalesce(new.created_at, v_now), v_now) end;
            if new.processing_state = 'failed'::public.processing_state then
                -- Written as failed by somebody who knows better: history, not work.
                new.due_at := null;
            elsif new.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) then
                -- Inserted as already being worked on: the inserter holds it.
                new.lease := (extract(epoch from v_now) * 1000000)::bigint;
                -- Taken when the row says so: one inserted with an old lock has lost its holder already.
                v_now := least(coalesce(new.claimed_at, v_now), v_now);
                new.deadline_at := v_now + interval '30 minutes';
                new.due_at := v_now + interval '5 minutes';
                new.started := 1;
                new.session := gleaner.caller_session();
            end if;
        else
            new.due_at := null;
        end if;
        return new;
    end if;

    -- The holder is known by its sign-in. Without a token only roles can be told apart, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session := gleaner.caller_session();
    v_mine := old.session = v_session and (gleaner.caller_uid() is not null or old.agent is null);
    if tg_nargs = 1 then
        -- Finished work is being finished again, with another result. The one who finished it may, or whoever likes where
        -- nobody ever held it; a former holder's late result must not take the place of the one that counts.
        if old.session is not null and v_mine is not true then
            return null;
        end if;
        return new;
    end if;

    -- Out of reach, always.
    new.lease := old.lease;
    new.due_at := old.due_at;
    new.lost := old.lost;
    new.started := old.started;
    new.deadline_at := old.deadline_at;
    new.agent := old.agent;
    new.session := old.session;
    new.attempts := old.attempts;

    if old.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) then
        if new.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) then
            if coalesce(v_mine, false) then
                if old.processing_state = 'claimed'::public.processing_state and new.processing_state = 'processing'::public.processing_state then
                    new.started := greatest(old.started, 1);
                end if;
                -- A sign of life: a holder that writes results, progress or its lock keeps the row, up to the deadline.
                if (false or new.result is distinct from old.result or new.progress is distinct from old.progress or new.claimed_at is distinct from old.claimed_at or new.processing_state is distinct from old.processing_state) and old.due_at - v_now < (interval '5 minutes') / 2 then
                    new.due_at := greatest(old.due_at, least(v_now + interval '5 minutes', old.deadline_at));
                end if;
            else
                -- Somebody else edits the row while it is held: what belongs to the work stays as the holder left it.
                new.processing_state := old.processing_state;
                new.result := old.result;
                new.progress := old.progress;
                new.error_message := old.error_message;
                new.claimed_by := old.claimed_by;
                new.claimed_at := old.claimed_at;
            end if;
            return new;
        end if;
        if new.processing_state = 'completed'::public.processing_state then
            if v_mine is not true then
                return null;
            end if;
        new.deadline_at := null;
        new.started := 0;
            new.completed_at := coalesce(nullif(new.completed_at, old.completed_at), v_now);
            return new;
        end if;
        if new.processing_state = 'cancelled'::public.processing_state then
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := null;
        new.deadline_at := null;
        new.started := 0;
            new.completed_at := v_now;
            return new;
        end if;
        -- Failed or put back by one who does not hold it: only once the lease has run out, or by an operator.
        if v_mine is not true and not (old.due_at <= v_now) and not (gleaner.is_trusted() and new.processing_state = 'pending'::public.processing_state) then
            return null;
        end if;
    elsif new.processing_state in ('completed'::public.processing_state, 'failed'::public.processing_state) and new.processing_state is distinct from old.processing_state
          and (old.processing_state in ('pending'::public.processing_state, 'failed'::public.processing_state, 'cancelled'::public.processing_state) and v_mine
               or old.processing_state in ('completed'::public.processing_state, 'cancelled'::public.processing_state) and new.processing_state = 'failed'::public.processing_state) then
        -- A late end: the one who held it last comes back to a row that waits for the next agent, or was called off; or
        -- somebody who no longer holds it gives up what another has finished.
        return null;
    end if;

    if new.processing_state is not distinct from old.processing_state then
        return new;
    end if;

    if new.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) then
        -- A plain claim. What is finished or dead is not claimable, whoever means to begin it now; it is put back first.
        if old.processing_state in ('completed'::public.processing_state, 'cancelled'::public.processing_state) or old.processing_state = 'failed'::public.processing_state and old.due_at is null then
            return null;
        end if;
        new.lease := greatest(old.lease + 1, (extract(epoch from v_now) * 1000000)::bigint);
        new.due_at := v_now + interval '5 minutes';
        new.deadline_at := v_now + interval '30 minutes';
        new.started := 1;
        new.agent := null;
        new.session := v_session;
    elsif new.processing_state = 'pending'::public.processing_state then
        -- A requeue, or the holder's release.
        new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
        if not (old.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and v_mine is true) then
            new.attempts := 0;
            new.lost := 0;
        end if;
        new.due_at := v_now;
        new.deadline_at := null;
        new.started := 0;
        new.completed_at := null;
    elsif new.processing_state = 'failed'::public.processing_state then
        -- A plain failure counts an attempt, backs off, and is dead in the end.
        v_attempts := old.attempts + 1;
        new.attempts := v_attempts;
        new.lease := old.lease + 1;
        -- The same words may well be meant again.
        if new.error_message is null then
            new.error_message := 'marked as failed';
        end if;
        if (v_attempts < 3) then
        new.due_at := v_now + gleaner.backoff(interval '30 seconds', interval '10 minutes', v_attempts, old.id::text);
        else
            new.due_at := null;
            new.completed_at := v_now;
        end if;
        new.deadline_at := null;
        new.started := 0;
    else
        -- Finished without a claim: a note, a decision by hand. Nobody's late result may reopen it.
        new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
        new.due_at := null;
        new.deadline_at := null;
        new.started := 0;
        new.completed_at := coalesce(nullif(new.completed_at, old.completed_at), v_now);
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
    v_session  text;
    v_mine     boolean;
    v_attempts integer;
begin
    if tg_op = 'INSERT' then
        new.lease := 0;
        new.lost := 0;
        new.started := 0;
        new.deadline_at := null;
        new.agent := null;
        new.session := null;
        new.attempts := 0;
        if new.status is null then
            new.status := 'pending';
        end if;
        if new.status in ('pending', 'failed', 'processing') then
        new.due_at := coalesce(new.scheduled_for, v_now);
            if new.status = 'failed' then
                -- Written as failed by somebody who knows better: history, not work.
                new.due_at := null;
            elsif new.status in ('processing') then
                -- Inserted as already being worked on: the inserter holds it.
                new.lease := (extract(epoch from v_now) * 1000000)::bigint;
                -- Taken when the row says so: one inserted with an old lock has lost its holder already.
                v_now := least(coalesce(new.started_processing_at, v_now), v_now);
                new.deadline_at := v_now + interval '15 minutes';
                new.due_at := v_now + interval '5 minutes';
                new.started := 1;
                new.session := gleaner.caller_session();
            end if;
        else
            new.due_at := null;
        end if;
        return new;
    end if;

    -- The holder is known by its sign-in. Without a token only roles can be told apart, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session := gleaner.caller_session();
    v_mine := old.session = v_session and (gleaner.caller_uid() is not null or old.agent is null);

    -- Out of reach, always.
    new.lease := old.lease;
    new.due_at := old.due_at;
    new.lost := old.lost;
    new.started := old.started;
    new.deadline_at := old.deadline_at;
    new.agent := old.agent;
    new.session := old.session;
    new.attempts := old.attempts;

    if old.status in ('processing') then
        if new.status in ('processing') then
            if coalesce(v_mine, false) then
                -- A sign of life: a holder that writes results, progress or its lock keeps the row, up to the deadline.
                if (false or new.started_processing_at is distinct from old.started_processing_at) and old.due_at - v_now < (interval '5 minutes') / 2 then
                    new.due_at := greatest(old.due_at, least(v_now + interval '5 minutes', old.deadline_at));
                end if;
            else
                -- Somebody else edits the row while it is held: what belongs to the work stays as the holder left it.
                new.status := old.status;
                new.error_message := old.error_message;
                new.started_processing_at := old.started_processing_at;
            end if;
            return new;
        end if;
        if new.status = 'executed' then
            if v_mine is not true then
                return null;
            end if;
        new.deadline_at := null;
        new.started := 0;
            new.finished_at := coalesce(nullif(new.finished_at, old.finished_at), v_now);
            return new;
        end if;
        if new.status = 'cancelled' then
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := null;
        new.deadline_at := null;
        new.started := 0;
            new.finished_at := v_now;
            return new;
        end if;
        -- Failed or put back by one who does not hold it: only once the lease has run out, or by an operator.
        if v_mine is not true and not (old.due_at <= v_now) and not (gleaner.is_trusted() and new.status = 'pending') then
            return null;
        end if;
    elsif new.status in ('executed', 'failed') and new.status is distinct from old.status
          and (old.status in ('pending', 'failed', 'cancelled') and v_mine
               or old.status in ('executed', 'cancelled') and new.status = 'failed') then
        -- A late end: the one who held it last comes back to a row that waits for the next agent, or was called off; or
        -- somebody who no longer holds it gives up what another has finished.
        return null;
    end if;

    if new.status is not distinct from old.status then
        if new.scheduled_for is distinct from old.scheduled_for and old.due_at is not null and old.status in ('pending', 'failed') then
        new.due_at := coalesce(new.scheduled_for, v_now);
            return new;
        end if;
        return new;
    end if;

    if new.status in ('processing') then
        -- A plain claim. What is finished or dead is not claimable, whoever means to begin it now; it is put back first.
        if old.status in ('executed', 'cancelled') or old.status = 'failed' and old.due_at is null then
            return null;
        end if;
        new.lease := greatest(old.lease + 1, (extract(epoch from v_now) * 1000000)::bigint);
        new.due_at := v_now + interval '5 minutes';
        new.deadline_at := v_now + interval '15 minutes';
        new.started := 1;
        new.agent := null;
        new.session := v_session;
    elsif new.status = 'pending' then
        -- A requeue, or the holder's release.
        new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
        if not (old.status in ('processing') and v_mine is true) then
            new.attempts := 0;
            new.lost := 0;
        end if;
        new.due_at := v_now;
        new.deadline_at := null;
        new.started := 0;
        new.finished_at := null;
    elsif new.status = 'failed' then
        -- A plain failure counts an attempt, backs off, and is dead in the end.
        v_attempts := old.attempts + 1;
        new.attempts := v_attempts;
        new.lease := old.lease + 1;
        -- The same words may well be meant again.
        if new.error_message is null then
            new.error_message := 'marked as failed';
        end if;
        if (v_attempts < 3) then
        new.due_at := v_now + gleaner.backoff(interval '60 seconds', interval '15 minutes', v_attempts, old.id::text);
        else
            new.due_at := null;
            new.finished_at := v_now;
        end if;
        new.deadline_at := null;
        new.started := 0;
    else
        -- Finished without a claim: a note, a decision by hand. Nobody's late result may reopen it.
        new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
        new.due_at := null;
        new.deadline_at := null;
        new.started := 0;
        new.finished_at := coalesce(nullif(new.finished_at, old.finished_at), v_now);
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
    v_session  text;
    v_mine     boolean;
    v_attempts integer;
begin
    if tg_op = 'INSERT' then
        new.lease := 0;
        new.lost := 0;
        new.started := 0;
        new.deadline_at := null;
        new.agent := null;
        new.session := null;
        new.attempts := 0;
        if new.status is null then
            new.status := 'ready';
        end if;
        if new.status in ('ready', 'failed', 'running') then
        new.due_at := coalesce(new.wanted_at, v_now);
            if new.status = 'failed' then
                -- Written as failed by somebody who knows better: history, not work.
                new.due_at := null;
            elsif new.status in ('running') then
                -- Inserted as already being worked on: the inserter holds it.
                new.lease := (extract(epoch from v_now) * 1000000)::bigint;
                new.deadline_at := v_now + interval '6 hours';
                new.due_at := v_now + interval '2 minutes';
                new.started := 1;
                new.session := gleaner.caller_session();
            end if;
        else
            new.due_at := null;
        end if;
        return new;
    end if;

    -- The holder is known by its sign-in. Without a token only roles can be told apart, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session := gleaner.caller_session();
    v_mine := old.session = v_session and (gleaner.caller_uid() is not null or old.agent is null);

    -- Out of reach, always.
    new.lease := old.lease;
    new.due_at := old.due_at;
    new.lost := old.lost;
    new.started := old.started;
    new.deadline_at := old.deadline_at;
    new.agent := old.agent;
    new.session := old.session;
    new.attempts := old.attempts;

    if old.status in ('running') then
        if new.status in ('running') then
            if coalesce(v_mine, false) then
                -- A sign of life: a holder that writes results, progress or its lock keeps the row, up to the deadline.
                if (false) and old.due_at - v_now < (interval '2 minutes') / 2 then
                    new.due_at := greatest(old.due_at, least(v_now + interval '2 minutes', old.deadline_at));
                end if;
            else
                -- Somebody else edits the row while it is held: what belongs to the work stays as the holder left it.
                new.status := old.status;
            end if;
            return new;
        end if;
        if new.status = 'done' then
            if v_mine is not true then
                return null;
            end if;
        new.deadline_at := null;
        new.started := 0;
            return new;
        end if;
        -- Failed or put back by one who does not hold it: only once the lease has run out, or by an operator.
        if v_mine is not true and not (old.due_at <= v_now) and not (gleaner.is_trusted() and new.status = 'ready') then
            return null;
        end if;
    elsif new.status in ('done', 'failed') and new.status is distinct from old.status
          and (old.status in ('ready', 'failed') and v_mine
               or old.status in ('done') and new.status = 'failed') then
        -- A late end: the one who held it last comes back to a row that waits for the next agent, or was called off; or
        -- somebody who no longer holds it gives up what another has finished.
        return null;
    end if;

    if new.status is not distinct from old.status then
        if new.wanted_at is distinct from old.wanted_at and old.due_at is not null and old.status in ('ready', 'failed') then
        new.due_at := coalesce(new.wanted_at, v_now);
            return new;
        end if;
        return new;
    end if;

    if new.status in ('running') then
        -- A plain claim. What is finished or dead is not claimable, whoever means to begin it now; it is put back first.
        if old.status in ('done') or old.status = 'failed' and old.due_at is null then
            return null;
        end if;
        new.lease := greatest(old.lease + 1, (extract(epoch from v_now) * 1000000)::bigint);
        new.due_at := v_now + interval '2 minutes';
        new.deadline_at := v_now + interval '6 hours';
        new.started := 1;
        new.agent := null;
        new.session := v_session;
    elsif new.status = 'ready' then
        -- A requeue, or the holder's release.
        new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
        if not (old.status in ('running') and v_mine is true) then
            new.attempts := 0;
            new.lost := 0;
        end if;
        new.due_at := v_now;
        new.deadline_at := null;
        new.started := 0;
    elsif new.status = 'failed' then
        -- A plain failure counts an attempt, backs off, and is dead in the end.
        v_attempts := old.attempts + 1;
        new.attempts := v_attempts;
        new.lease := old.lease + 1;
        if (v_attempts < 3) then
        new.due_at := v_now + gleaner.backoff(interval '30 seconds', interval '1 hour', v_attempts, old.provider_id::text);
        else
            new.due_at := null;
        end if;
        new.deadline_at := null;
        new.started := 0;
    else
        -- Finished without a claim: a note, a decision by hand. Nobody's late result may reopen it.
        new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
        new.due_at := null;
        new.deadline_at := null;
        new.started := 0;
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
    v_session  text;
    v_mine     boolean;
    v_attempts integer;
begin
    if tg_op = 'INSERT' then
        new.lease := 0;
        new.lost := 0;
        new.started := 0;
        new.deadline_at := null;
        new.agent := null;
        new.session := null;
        new.attempts := 0;
        if new.status is null then
            new.status := 'queued';
        end if;
        if new.status in ('queued', 'failed', 'running') then
            -- A due time in the future is an appointment; otherwise the row has waited since it was created.
        new.due_at := case when new.due_at > v_now then new.due_at else least(coalesce(new.created_at, v_now), v_now) end;
            if new.status = 'failed' then
                -- Written as failed by somebody who knows better: history, not work.
                new.due_at := null;
            elsif new.status in ('running') then
                -- Inserted as already being worked on: the inserter holds it.
                new.lease := (extract(epoch from v_now) * 1000000)::bigint;
                -- Taken when the row says so: one inserted with an old lock has lost its holder already.
                v_now := least(coalesce(new.started_at, v_now), v_now);
                new.deadline_at := v_now + interval '2 hours';
                new.due_at := v_now + interval '30 minutes';
                new.started := 1;
                new.session := gleaner.caller_session();
            end if;
        else
            new.due_at := null;
        end if;
        return new;
    end if;

    -- The holder is known by its sign-in. Without a token only roles can be told apart, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session := gleaner.caller_session();
    v_mine := old.session = v_session and (gleaner.caller_uid() is not null or old.agent is null);
    if tg_nargs = 1 then
        -- Finished work is being finished again, with another result. The one who finished it may, or whoever likes where
        -- nobody ever held it; a former holder's late result must not take the place of the one that counts.
        if old.session is not null and v_mine is not true then
            return null;
        end if;
        return new;
    end if;

    -- Out of reach, always.
    new.lease := old.lease;
    new.due_at := old.due_at;
    new.lost := old.lost;
    new.started := old.started;
    new.deadline_at := old.deadline_at;
    new.agent := old.agent;
    new.session := old.session;
    new.attempts := old.attempts;

    if old.status in ('running') then
        if new.status in ('running') then
            if coalesce(v_mine, false) then
                -- A sign of life: a holder that writes results, progress or its lock keeps the row, up to the deadline.
                if (false or new.result is distinct from old.result or new.progress is distinct from old.progress or new.started_at is distinct from old.started_at) and old.due_at - v_now < (interval '30 minutes') / 2 then
                    new.due_at := greatest(old.due_at, least(v_now + interval '30 minutes', old.deadline_at));
                end if;
            else
                -- Somebody else edits the row while it is held: what belongs to the work stays as the holder left it.
                new.status := old.status;
                new.result := old.result;
                new.progress := old.progress;
                new.error := old.error;
                new.worker_id := old.worker_id;
                new.started_at := old.started_at;
            end if;
            return new;
        end if;
        if new.status = 'completed' then
            if v_mine is not true then
                return null;
            end if;
        new.deadline_at := null;
        new.started := 0;
            new.completed_at := coalesce(nullif(new.completed_at, old.completed_at), v_now);
            return new;
        end if;
        if new.status = 'cancelled' then
            new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
            new.due_at := null;
        new.deadline_at := null;
        new.started := 0;
            new.completed_at := v_now;
            return new;
        end if;
        -- Failed or put back by one who does not hold it: only once the lease has run out, or by an operator.
        if v_mine is not true and not (old.due_at <= v_now) and not (gleaner.is_trusted() and new.status = 'queued') then
            return null;
        end if;
    elsif new.status in ('completed', 'failed') and new.status is distinct from old.status
          and (old.status in ('queued', 'failed', 'cancelled') and v_mine
               or old.status in ('completed', 'cancelled') and new.status = 'failed') then
        -- A late end: the one who held it last comes back to a row that waits for the next agent, or was called off; or
        -- somebody who no longer holds it gives up what another has finished.
        return null;
    end if;

    if new.status is not distinct from old.status then
        return new;
    end if;

    if new.status in ('running') then
        -- A plain claim. What is finished or dead is not claimable, whoever means to begin it now; it is put back first.
        if old.status in ('completed', 'cancelled') or old.status = 'failed' and old.due_at is null then
            return null;
        end if;
        new.lease := greatest(old.lease + 1, (extract(epoch from v_now) * 1000000)::bigint);
        new.due_at := v_now + interval '30 minutes';
        new.deadline_at := v_now + interval '2 hours';
        new.started := 1;
        new.agent := null;
        new.session := v_session;
    elsif new.status = 'queued' then
        -- A requeue, or the holder's release.
        new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
        if not (old.status in ('running') and v_mine is true) then
            new.attempts := 0;
            new.lost := 0;
        end if;
        new.due_at := v_now;
        new.deadline_at := null;
        new.started := 0;
        new.completed_at := null;
    elsif new.status = 'failed' then
        -- A plain failure counts an attempt, backs off, and is dead in the end.
        v_attempts := old.attempts + 1;
        new.attempts := v_attempts;
        new.lease := old.lease + 1;
        -- The same words may well be meant again.
        if new.error is null then
            new.error := 'marked as failed';
        end if;
        if (v_attempts < 3) then
        new.due_at := v_now + gleaner.backoff(interval '30 seconds', interval '10 minutes', v_attempts, old.id::text);
        else
            new.due_at := null;
            new.completed_at := v_now;
        end if;
        new.deadline_at := null;
        new.started := 0;
    else
        -- Finished without a claim: a note, a decision by hand. Nobody's late result may reopen it.
        new.lease := greatest(old.lease + 2, (extract(epoch from v_now) * 1000000)::bigint);
        new.due_at := null;
        new.deadline_at := null;
        new.started := 0;
        new.completed_at := coalesce(nullif(new.completed_at, old.completed_at), v_now);
    end if;
    return new;
end
$$;

ALTER FUNCTION gleaner.adapt_runs() OWNER TO gleaner_engine;

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
    -- Whoever only claims an address joins when it is confirmed.
    if p_confirmed then
        perform gleaner.join_team(v_id, p_administrator, p_link);
    end if;
    return v_id;
end
$$;

COMMENT ON FUNCTION gleaner.add_user(p_email text, p_password text, p_user_meta jsonb, p_app_meta jsonb, p_confirmed boolean, p_administrator boolean, p_link boolean, p_id uuid) IS 'Makes a user and its owner''s row; null when the address is taken.';

CREATE FUNCTION gleaner.assign_activities(p_ids uuid[], p_owner bigint) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_done uuid[];
begin
    perform from public.activities as q where q.id = any (p_ids) order by q.id for no key update;
    insert into gleaner.audit (queue, key, act, caller, detail)
    select 'activities', q.id::text, 'assign', gleaner.caller_session(), jsonb_build_object('from', q.sales_id, 'to', p_owner)
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
    return query
    select u.id,
           case when u.id = any (v_done) then 'done' when q.id is null then 'gone' else 'already' end,
           q.processing_status::text
    from unnest(p_ids) as u (id)
    left join public.activities as q on q.id = u.id;
end
$$;

ALTER FUNCTION gleaner.assign_activities(p_ids uuid[], p_owner bigint) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.audit_link(p_activities uuid[], p_act text, p_from bigint, p_to bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    if p_act not in ('link', 'unlink') then
        raise exception 'no such act: %', p_act using errcode = 'GL002', hint = 'It is link or unlink.';
    end if;
    insert into gleaner.audit (queue, key, act, caller, detail)
    select 'activities', a.id::text, p_act, gleaner.caller_session(),
           jsonb_build_object('from', p_from, 'to', p_to, 'sender', a.sender_address)
    from public.activities as a
    where a.id = any (p_activities) and a.contact_id is not distinct from p_to
    order by a.id;
end
$$;

COMMENT ON FUNCTION gleaner.audit_link(p_activities uuid[], p_act text, p_from bigint, p_to bigint) IS 'Records who linked or unlinked activities.';

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

CREATE FUNCTION gleaner.bury_activities(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_row public.activities;
begin
    for v_row in
        select q.*
        from public.activities as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        if v_row.processing_status not in ('raw', 'processing', 'failed') or v_row.due_at is null then
            return query select v_row.id, 'already', v_row.processing_status::text;
            continue;
        end if;
        insert into gleaner.audit (queue, key, act, caller, detail)
        values ('activities', v_row.id::text, 'bury', gleaner.caller_session(),
                jsonb_build_object('from', v_row.processing_status, 'reason', p_reason));
        perform gleaner.rest_activities(v_row, coalesce(p_reason, 'buried by hand'), 'Buried', v_row.attempts, v_row.lost);
        return query select v_row.id, 'done', ('failed')::text;
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from public.activities as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.bury_activities(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.bury_dumps(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_row public.agent_processing_queue;
begin
    for v_row in
        select q.*
        from public.agent_processing_queue as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        if v_row.processing_state not in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) or v_row.due_at is null then
            return query select v_row.id, 'already', v_row.processing_state::text;
            continue;
        end if;
        insert into gleaner.audit (queue, key, act, caller, detail)
        values ('dumps', v_row.id::text, 'bury', gleaner.caller_session(),
                jsonb_build_object('from', v_row.processing_state, 'reason', p_reason));
        perform gleaner.rest_dumps(v_row, coalesce(p_reason, 'buried by hand'), 'Buried', v_row.attempts, v_row.lost);
        return query select v_row.id, 'done', ('failed'::public.processing_state)::text;
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from public.agent_processing_queue as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.bury_dumps(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.bury_followups(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_row public.scheduled_actions;
begin
    for v_row in
        select q.*
        from public.scheduled_actions as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        if v_row.status not in ('pending', 'processing', 'failed') or v_row.due_at is null then
            return query select v_row.id, 'already', v_row.status::text;
            continue;
        end if;
        insert into gleaner.audit (queue, key, act, caller, detail)
        values ('followups', v_row.id::text, 'bury', gleaner.caller_session(),
                jsonb_build_object('from', v_row.status, 'reason', p_reason));
        perform gleaner.rest_followups(v_row, coalesce(p_reason, 'buried by hand'), 'Buried', v_row.attempts, v_row.lost);
        return query select v_row.id, 'done', ('failed')::text;
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from public.scheduled_actions as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.bury_followups(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.bury_jobs(p_ids bigint[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_row gleaner.jobs;
begin
    perform gleaner.loosen_jobs(p_ids);
    for v_row in
        select q.*
        from gleaner.jobs as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        if v_row.status not in ('ready', 'running', 'failed') or v_row.due_at is null then
            return query select v_row.id, 'already', v_row.status::text;
            continue;
        end if;
        insert into gleaner.audit (queue, key, act, caller, detail)
        values ('jobs', v_row.id::text, 'bury', gleaner.caller_session(),
                jsonb_build_object('from', v_row.status, 'reason', p_reason));
        perform gleaner.rest_jobs(v_row, coalesce(p_reason, 'buried by hand'), 'Buried', v_row.attempts, v_row.lost);
        return query select v_row.id, 'done', ('failed')::text;
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from gleaner.jobs as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.bury_jobs(p_ids bigint[], p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.bury_polls(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_row gleaner.polls;
begin
    for v_row in
        select q.*
        from gleaner.polls as q
        where q.provider_id = any (p_ids)
        order by q.provider_id
        for no key update
    loop
        if v_row.status not in ('ready', 'running', 'failed') or v_row.due_at is null then
            return query select v_row.provider_id, 'already', v_row.status::text;
            continue;
        end if;
        insert into gleaner.audit (queue, key, act, caller, detail)
        values ('polls', v_row.provider_id::text, 'bury', gleaner.caller_session(),
                jsonb_build_object('from', v_row.status, 'reason', p_reason));
        perform gleaner.rest_polls(v_row, coalesce(p_reason, 'buried by hand'), 'Buried', v_row.attempts, v_row.lost);
        return query select v_row.provider_id, 'done', ('failed')::text;
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from gleaner.polls as q where q.provider_id = u.id);
end
$$;

ALTER FUNCTION gleaner.bury_polls(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.bury_runs(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_row public.execution_jobs;
begin
    for v_row in
        select q.*
        from public.execution_jobs as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        if v_row.status not in ('queued', 'running', 'failed') or v_row.due_at is null then
            return query select v_row.id, 'already', v_row.status::text;
            continue;
        end if;
        insert into gleaner.audit (queue, key, act, caller, detail)
        values ('runs', v_row.id::text, 'bury', gleaner.caller_session(),
                jsonb_build_object('from', v_row.status, 'reason', p_reason));
        perform gleaner.rest_runs(v_row, coalesce(p_reason, 'buried by hand'), 'Buried', v_row.attempts, v_row.lost);
        return query select v_row.id, 'done', ('failed')::text;
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from public.execution_jobs as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.bury_runs(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

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
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now  timestamptz := clock_timestamp();
    v_done uuid[];
begin
    -- Key order, and waiting for whoever is about to move the row: cancel must not miss what is moving.
    perform from public.activities as q where q.id = any (p_ids) order by q.id for no key update;
    with changed as (
        update public.activities as q
        set processing_status = 'cancelled',
            due_at = null,
            lease = greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint),
            metadata = case when p_reason is null then q.metadata else jsonb_set(coalesce(q.metadata, '{}'), '{error}', jsonb_build_object('timestamp', v_now, 'type', 'Cancelled', 'message', p_reason, 'agent_id', gleaner.caller_session(), 'retry_count', q.attempts)) end,
deadline_at = null,
        started = 0,
        locked_by = null,
        locked_at = null
        where q.id = any (p_ids) and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    insert into gleaner.audit (queue, key, act, caller, detail)
    select 'activities', d::text, 'cancel', gleaner.caller_session(), jsonb_build_object('reason', p_reason)
    from unnest(v_done) as d;
    return query
    select u.id,
           case when u.id = any (v_done) then 'done' when q.id is null then 'gone' else 'already' end,
           q.processing_status::text
    from unnest(p_ids) as u (id)
    left join public.activities as q on q.id = u.id;
end
$$;

ALTER FUNCTION gleaner.cancel_activities(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.cancel_activities_matching(p_match jsonb, p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    v_column    text;
    v_value     text;
    v_condition text := '';
    v_unknown   text;
    v_ids       uuid[];
    v_lane      bigint;
begin
    if p_match is null or p_match = '{}' then
        raise exception 'cancel needs at least one column to match' using errcode = 'GL002', hint = 'To cancel rows by key use gleaner.cancel_activities.';
    end if;
    select string_agg(k, ', ') into v_unknown
    from jsonb_object_keys(p_match) as k
    where not exists (
        select from pg_attribute as a where a.attrelid = 'public.activities'::regclass and a.attname = k and a.attnum > 0 and not a.attisdropped);
    if v_unknown is not null then
        raise exception 'no such column in public.activities: %', v_unknown using errcode = '42703';
    end if;
    -- Values stand in the statement as they are, so that the planner knows how rare they are and takes an index.
    for v_column in select jsonb_object_keys(p_match) loop
        execute format('select (jsonb_populate_record(null::public.activities, $1)).%I::text', v_column) into v_value using p_match;
        v_condition := v_condition || case when v_value is null then format(' and q.%I is null', v_column)
                                           else format(' and q.%I = %L', v_column, v_value) end;
        if v_column = 'type' and v_value is not null then
            -- The index knows a kind by the numbers of its lanes.
            v_lane := (hashtextextended(v_value::text collate "C", 0) & -16);
            v_condition := v_condition || ' and (hashtextextended(q.type collate "C", 0) & -16)' || format(' between %L::bigint and %L::bigint', v_lane, v_lane | 15);
        end if;
    end loop;
    execute format('select array(select q.id from (select q.* from public.activities as q where q.processing_status in (''raw'', ''processing'', ''failed'') and q.due_at is not null) as q where true%s)', v_condition)
    into v_ids;
    return query select * from gleaner.cancel_activities(v_ids, p_reason);
end
$_$;

ALTER FUNCTION gleaner.cancel_activities_matching(p_match jsonb, p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.cancel_dumps(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now  timestamptz := clock_timestamp();
    v_done uuid[];
begin
    -- Key order, and waiting for whoever is about to move the row: cancel must not miss what is moving.
    perform from public.agent_processing_queue as q where q.id = any (p_ids) order by q.id for no key update;
    with changed as (
        update public.agent_processing_queue as q
        set processing_state = 'cancelled'::public.processing_state,
            due_at = null,
            lease = greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint),
            error_message = case when p_reason is null then q.error_message else p_reason end,
            completed_at = v_now,
deadline_at = null,
        started = 0
        where q.id = any (p_ids) and q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    insert into gleaner.audit (queue, key, act, caller, detail)
    select 'dumps', d::text, 'cancel', gleaner.caller_session(), jsonb_build_object('reason', p_reason)
    from unnest(v_done) as d;
    return query
    select u.id,
           case when u.id = any (v_done) then 'done' when q.id is null then 'gone' else 'already' end,
           q.processing_state::text
    from unnest(p_ids) as u (id)
    left join public.agent_processing_queue as q on q.id = u.id;
end
$$;

ALTER FUNCTION gleaner.cancel_dumps(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.cancel_dumps_matching(p_match jsonb, p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    v_column    text;
    v_value     text;
    v_condition text := '';
    v_unknown   text;
    v_ids       uuid[];
begin
    if p_match is null or p_match = '{}' then
        raise exception 'cancel needs at least one column to match' using errcode = 'GL002', hint = 'To cancel rows by key use gleaner.cancel_dumps.';
    end if;
    select string_agg(k, ', ') into v_unknown
    from jsonb_object_keys(p_match) as k
    where not exists (
        select from pg_attribute as a where a.attrelid = 'public.agent_processing_queue'::regclass and a.attname = k and a.attnum > 0 and not a.attisdropped);
    if v_unknown is not null then
        raise exception 'no such column in public.agent_processing_queue: %', v_unknown using errcode = '42703';
    end if;
    -- Values stand in the statement as they are, so that the planner knows how rare they are and takes an index.
    for v_column in select jsonb_object_keys(p_match) loop
        execute format('select (jsonb_populate_record(null::public.agent_processing_queue, $1)).%I::text', v_column) into v_value using p_match;
        v_condition := v_condition || case when v_value is null then format(' and q.%I is null', v_column)
                                           else format(' and q.%I = %L', v_column, v_value) end;
    end loop;
    execute format('select array(select q.id from (select q.* from public.agent_processing_queue as q where q.processing_state in (''pending''::public.processing_state, ''claimed''::public.processing_state, ''processing''::public.processing_state, ''failed''::public.processing_state) and q.due_at is not null) as q where true%s)', v_condition)
    into v_ids;
    return query select * from gleaner.cancel_dumps(v_ids, p_reason);
end
$_$;

ALTER FUNCTION gleaner.cancel_dumps_matching(p_match jsonb, p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.cancel_followups(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now  timestamptz := clock_timestamp();
    v_done uuid[];
begin
    -- Key order, and waiting for whoever is about to move the row: cancel must not miss what is moving.
    perform from public.scheduled_actions as q where q.id = any (p_ids) order by q.id for no key update;
    with changed as (
        update public.scheduled_actions as q
        set status = 'cancelled',
            due_at = null,
            lease = greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint),
            error_message = case when p_reason is null then q.error_message else p_reason end,
            finished_at = v_now,
deadline_at = null,
        started = 0
        where q.id = any (p_ids) and q.status in ('pending', 'processing', 'failed') and q.due_at is not null
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    insert into gleaner.audit (queue, key, act, caller, detail)
    select 'followups', d::text, 'cancel', gleaner.caller_session(), jsonb_build_object('reason', p_reason)
    from unnest(v_done) as d;
    return query
    select u.id,
           case when u.id = any (v_done) then 'done' when q.id is null then 'gone' else 'already' end,
           q.status::text
    from unnest(p_ids) as u (id)
    left join public.scheduled_actions as q on q.id = u.id;
end
$$;

ALTER FUNCTION gleaner.cancel_followups(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.cancel_followups_matching(p_match jsonb, p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    v_column    text;
    v_value     text;
    v_condition text := '';
    v_unknown   text;
    v_ids       uuid[];
    v_lane      bigint;
begin
    if p_match is null or p_match = '{}' then
        raise exception 'cancel needs at least one column to match' using errcode = 'GL002', hint = 'To cancel rows by key use gleaner.cancel_followups.';
    end if;
    select string_agg(k, ', ') into v_unknown
    from jsonb_object_keys(p_match) as k
    where not exists (
        select from pg_attribute as a where a.attrelid = 'public.scheduled_actions'::regclass and a.attname = k and a.attnum > 0 and not a.attisdropped);
    if v_unknown is not null then
        raise exception 'no such column in public.scheduled_actions: %', v_unknown using errcode = '42703';
    end if;
    -- Values stand in the statement as they are, so that the planner knows how rare they are and takes an index.
    for v_column in select jsonb_object_keys(p_match) loop
        execute format('select (jsonb_populate_record(null::public.scheduled_actions, $1)).%I::text', v_column) into v_value using p_match;
        v_condition := v_condition || case when v_value is null then format(' and q.%I is null', v_column)
                                           else format(' and q.%I = %L', v_column, v_value) end;
        if v_column = 'action_type' and v_value is not null then
            -- The index knows a kind by the numbers of its lanes.
            v_lane := (hashtextextended(v_value::text collate "C", 0) & -16);
            v_condition := v_condition || ' and (hashtextextended(q.action_type collate "C", 0) & -16)' || format(' between %L::bigint and %L::bigint', v_lane, v_lane | 15);
        end if;
    end loop;
    execute format('select array(select q.id from (select q.* from public.scheduled_actions as q where q.status in (''pending'', ''processing'', ''failed'') and q.due_at is not null) as q where true%s)', v_condition)
    into v_ids;
    return query select * from gleaner.cancel_followups(v_ids, p_reason);
end
$_$;

ALTER FUNCTION gleaner.cancel_followups_matching(p_match jsonb, p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.cancel_jobs(p_ids bigint[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now  timestamptz := clock_timestamp();
    v_done bigint[];
begin
    perform gleaner.loosen_jobs(p_ids);
    -- Key order, and waiting for whoever is about to move the row: cancel must not miss what is moving.
    perform from gleaner.jobs as q where q.id = any (p_ids) order by q.id for no key update;
    with changed as (
        update gleaner.jobs as q
        set status = 'cancelled',
            due_at = null,
            lease = greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint),
            error = case when p_reason is null then q.error else jsonb_build_object('timestamp', v_now, 'type', 'Cancelled', 'message', p_reason, 'agent_id', gleaner.caller_session(), 'retry_count', q.attempts) end,
            finished_at = v_now,
deadline_at = null,
        started = 0
        where q.id = any (p_ids) and q.status in ('ready', 'running', 'failed') and q.due_at is not null
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    insert into gleaner.audit (queue, key, act, caller, detail)
    select 'jobs', d::text, 'cancel', gleaner.caller_session(), jsonb_build_object('reason', p_reason)
    from unnest(v_done) as d;
    return query
    select u.id,
           case when u.id = any (v_done) then 'done' when q.id is null then 'gone' else 'already' end,
           q.status::text
    from unnest(p_ids) as u (id)
    left join gleaner.jobs as q on q.id = u.id;
end
$$;

ALTER FUNCTION gleaner.cancel_jobs(p_ids bigint[], p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.cancel_jobs_matching(p_match jsonb, p_reason text DEFAULT NULL::text) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    v_column    text;
    v_value     text;
    v_condition text := '';
    v_unknown   text;
    v_ids       bigint[];
    v_lane      bigint;
begin
    if p_match is null or p_match = '{}' then
        raise exception 'cancel needs at least one column to match' using errcode = 'GL002', hint = 'To cancel rows by key use gleaner.cancel_jobs.';
    end if;
    select string_agg(k, ', ') into v_unknown
    from jsonb_object_keys(p_match) as k
    where not exists (
        select from pg_attribute as a where a.attrelid = 'gleaner.jobs'::regclass and a.attname = k and a.attnum > 0 and not a.attisdropped);
    if v_unknown is not null then
        raise exception 'no such column in gleaner.jobs: %', v_unknown using errcode = '42703';
    end if;
    -- Values stand in the statement as they are, so that the planner knows how rare they are and takes an index.
    for v_column in select jsonb_object_keys(p_match) loop
        execute format('select (jsonb_populate_record(null::gleaner.jobs, $1)).%I::text', v_column) into v_value using p_match;
        v_condition := v_condition || case when v_value is null then format(' and q.%I is null', v_column)
                                           else format(' and q.%I = %L', v_column, v_value) end;
        if v_column = 'kind' and v_value is not null then
            -- The index knows a kind by the numbers of its lanes.
            v_lane := (hashtextextended(v_value::text collate "C", 0) & -16);
            v_condition := v_condition || ' and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end))' || format(' between %L::bigint and %L::bigint', v_lane, v_lane | 15);
        end if;
    end loop;
    execute format('select array(select q.id from (select q.* from gleaner.jobs as q where q.lease <> -1 and q.status in (''ready'', ''running'', ''failed'') and q.due_at is not null union all
                select q.* from unnest(gleaner.swaths(''jobs'') + gleaner.sheaves(''jobs'')) as r cross join lateral (
                    select q.* from gleaner.jobs as q where q.id >= lower(r) and q.id < upper(r) order by q.id offset 0
                ) as q
                where q.lease = -1 and q.status in (''ready'', ''running'', ''failed'') and q.due_at is not null) as q where true%s)', v_condition)
    into v_ids;
    return query select * from gleaner.cancel_jobs(v_ids, p_reason);
end
$_$;

ALTER FUNCTION gleaner.cancel_jobs_matching(p_match jsonb, p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.cancel_polls(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now  timestamptz := clock_timestamp();
    v_done uuid[];
begin
    -- Key order, and waiting for whoever is about to move the row: cancel must not miss what is moving.
    perform from gleaner.polls as q where q.provider_id = any (p_ids) order by q.provider_id for no key update;
    with changed as (
        update gleaner.polls as q
        set status = 'failed',
            due_at = null,
            lease = greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint),
deadline_at = null,
        started = 0
        where q.provider_id = any (p_ids) and q.status in ('ready', 'running', 'failed') and q.due_at is not null
        returning q.provider_id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    insert into gleaner.audit (queue, key, act, caller, detail)
    select 'polls', d::text, 'cancel', gleaner.caller_session(), jsonb_build_object('reason', p_reason)
    from unnest(v_done) as d;
    return query
    select u.id,
           case when u.id = any (v_done) then 'done' when q.provider_id is null then 'gone' else 'already' end,
           q.status::text
    from unnest(p_ids) as u (id)
    left join gleaner.polls as q on q.provider_id = u.id;
end
$$;

ALTER FUNCTION gleaner.cancel_polls(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.cancel_polls_matching(p_match jsonb, p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    v_column    text;
    v_value     text;
    v_condition text := '';
    v_unknown   text;
    v_ids       uuid[];
begin
    if p_match is null or p_match = '{}' then
        raise exception 'cancel needs at least one column to match' using errcode = 'GL002', hint = 'To cancel rows by key use gleaner.cancel_polls.';
    end if;
    select string_agg(k, ', ') into v_unknown
    from jsonb_object_keys(p_match) as k
    where not exists (
        select from pg_attribute as a where a.attrelid = 'gleaner.polls'::regclass and a.attname = k and a.attnum > 0 and not a.attisdropped);
    if v_unknown is not null then
        raise exception 'no such column in gleaner.polls: %', v_unknown using errcode = '42703';
    end if;
    -- Values stand in the statement as they are, so that the planner knows how rare they are and takes an index.
    for v_column in select jsonb_object_keys(p_match) loop
        execute format('select (jsonb_populate_record(null::gleaner.polls, $1)).%I::text', v_column) into v_value using p_match;
        v_condition := v_condition || case when v_value is null then format(' and q.%I is null', v_column)
                                           else format(' and q.%I = %L', v_column, v_value) end;
    end loop;
    execute format('select array(select q.provider_id from (select q.* from gleaner.polls as q where q.status in (''ready'', ''running'', ''failed'') and q.due_at is not null) as q where true%s)', v_condition)
    into v_ids;
    return query select * from gleaner.cancel_polls(v_ids, p_reason);
end
$_$;

ALTER FUNCTION gleaner.cancel_polls_matching(p_match jsonb, p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.cancel_runs(p_ids uuid[], p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now  timestamptz := clock_timestamp();
    v_done uuid[];
begin
    -- Key order, and waiting for whoever is about to move the row: cancel must not miss what is moving.
    perform from public.execution_jobs as q where q.id = any (p_ids) order by q.id for no key update;
    with changed as (
        update public.execution_jobs as q
        set status = 'cancelled',
            due_at = null,
            lease = greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint),
            error = case when p_reason is null then q.error else p_reason end,
            completed_at = v_now,
deadline_at = null,
        started = 0
        where q.id = any (p_ids) and q.status in ('queued', 'running', 'failed') and q.due_at is not null
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    insert into gleaner.audit (queue, key, act, caller, detail)
    select 'runs', d::text, 'cancel', gleaner.caller_session(), jsonb_build_object('reason', p_reason)
    from unnest(v_done) as d;
    return query
    select u.id,
           case when u.id = any (v_done) then 'done' when q.id is null then 'gone' else 'already' end,
           q.status::text
    from unnest(p_ids) as u (id)
    left join public.execution_jobs as q on q.id = u.id;
end
$$;

ALTER FUNCTION gleaner.cancel_runs(p_ids uuid[], p_reason text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.cancel_runs_matching(p_match jsonb, p_reason text DEFAULT NULL::text) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    v_column    text;
    v_value     text;
    v_condition text := '';
    v_unknown   text;
    v_ids       uuid[];
begin
    if p_match is null or p_match = '{}' then
        raise exception 'cancel needs at least one column to match' using errcode = 'GL002', hint = 'To cancel rows by key use gleaner.cancel_runs.';
    end if;
    select string_agg(k, ', ') into v_unknown
    from jsonb_object_keys(p_match) as k
    where not exists (
        select from pg_attribute as a where a.attrelid = 'public.execution_jobs'::regclass and a.attname = k and a.attnum > 0 and not a.attisdropped);
    if v_unknown is not null then
        raise exception 'no such column in public.execution_jobs: %', v_unknown using errcode = '42703';
    end if;
    -- Values stand in the statement as they are, so that the planner knows how rare they are and takes an index.
    for v_column in select jsonb_object_keys(p_match) loop
        execute format('select (jsonb_populate_record(null::public.execution_jobs, $1)).%I::text', v_column) into v_value using p_match;
        v_condition := v_condition || case when v_value is null then format(' and q.%I is null', v_column)
                                           else format(' and q.%I = %L', v_column, v_value) end;
    end loop;
    execute format('select array(select q.id from (select q.* from public.execution_jobs as q where q.status in (''queued'', ''running'', ''failed'') and q.due_at is not null) as q where true%s)', v_condition)
    into v_ids;
    return query select * from gleaner.cancel_runs(v_ids, p_reason);
end
$_$;

ALTER FUNCTION gleaner.cancel_runs_matching(p_match jsonb, p_reason text) OWNER TO gleaner_engine;

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
            -- The only updates of which more than the new row must be told.
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
        -- Whoever asked for a link to set it no longer needs one, and a thief must not have one left.
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
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now        timestamptz := clock_timestamp();
    v_by         timestamptz := v_now + p_early;
    v_lease      bigint      := (extract(epoch from v_now) * 1000000)::bigint;
    v_session    text        := gleaner.caller_session();
    v_trusted    boolean     := p_request is not null and gleaner.is_trusted();
    v_left       integer     := least(p_limit, 10000);
    v_total      integer     := 0;
    v_class      text;
    v_keys       uuid[];
    v_odd        boolean[];
    v_at         timestamptz[];
    v_lane       integer[];
    v_fine       uuid[];
    v_passed     uuid[];
    v_taken      uuid[] := '{}';
    v_buried     integer;
    v_count      integer;
    v_alone      boolean := false;
    v_stepped    boolean;
    v_rounds     integer;
    v_lane_kind  text[];
    v_lane_class integer[];
    v_take       integer[];
    v_floor_at   timestamptz[];
    v_floor_key  uuid[];
    v_floors     jsonb := coalesce(nullif(current_setting('gleaner.floor_activities', true), '')::jsonb, '{}');
    v_floor      jsonb;
    v_floored    boolean;
    v_kinds_until double precision;
    v_place      text;
    v_hidden     boolean := false;
    v_begun      timestamptz;
    v_slow       interval;
    v_row        public.activities;
    v_reason     text;
    v_refusals   integer := 0;
    -- Nothing can refuse: rows are returned as they change. Otherwise each refusal is looked at.
    v_plain      boolean := gleaner.is_plain('public.activities', array['due_at', 'open_at', 'lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'processing_status', 'metadata', 'locked_by', 'locked_at'], 'processing_status');
    v_lost       integer;
    v_kinds      text[] := p_kinds::text[];
    v_classes    text[] := array(select c from unnest(array['own', 'global', 'stale']) as c where c = any (p_classes));
    v_refused    boolean := false;
    v_mended     uuid[];
    v_mended_at  timestamptz[];
    v_not_now    uuid[];
    v_holder     uuid;
begin
    perform gleaner.require_read_committed();
    if p_agent = '' then
        raise exception 'the agent id is empty' using errcode = 'GL002',
            hint = 'Pass a text that is new at each process start, or null to be known by your sign-in alone and end the work by plain updates.';
    end if;
    -- A worker's key may be for some queues and kinds alone. Direct logins have no key, and pay nothing for the question.
    if current_setting('request.jwt.claims', true) <> '' then
        p_kinds := gleaner.scoped_kinds('activities', p_kinds);
        v_kinds := p_kinds::text[];
    end if;
    p_owner := gleaner.own_activities(p_owner);
    v_holder := coalesce(p_holder::uuid, gleaner.caller_uid());
    if v_holder is null and p_owner is not null then
        select o.user_id into v_holder from public.sales as o where o.id = p_owner;
    end if;

    if p_request is not null then
        insert into gleaner.request (queue, id, at) values ('activities', p_request, v_now) on conflict do nothing;
        if not found then
            -- One that was given nothing yet looks again: a claim that waits does. The lock lets the second of two at once see
            -- what the first was given.
            perform from gleaner.request as r
            where r.queue = 'activities' and r.id = p_request and r.keys = '{}'
            for update;
        end if;
        if not found then
            return query
            select q.*
            from gleaner.request as r
            cross join lateral unnest(r.keys, r.leases) with ordinality as k (id, lease, n)
            join public.activities as q on q.id = k.id::uuid
            -- Whoever knows another's request is not given its rows.
            where r.queue = 'activities' and r.id = p_request
              and (q.lease = k.lease and q.processing_status in ('processing') and (v_trusted or q.session = v_session))
            order by k.n;
            return;
        end if;
    end if;

    -- Rows that refused a change a moment ago are stepped over for a while.
    v_passed := array(select o.key::uuid from gleaner.offender as o where o.queue = 'activities' and o.until > v_now);

    <<passes>>
    for v_pass in 1 .. 2 loop
        -- Second pass: nothing was found, but a floor hid part of the line. A floor never reports "empty".
        if v_pass = 2 then
            exit when v_total > 0 or not v_hidden;
            v_floors := '{}';
        end if;

        <<classes>>
        foreach v_class in array v_classes || '{shared}'::text[] loop
            continue when v_class = 'own' and p_owner is null;
            -- The exact look, owner by owner: needed when policies changed after rows were stamped with them.
            continue when v_class = 'shared' and ('stale' <> all (p_classes) or not (v_refused or v_total = 0));

            v_rounds := 0;
            <<fill>>
            loop
                exit passes when v_left <= 0 or v_alone or v_refusals >= 100;
                v_stepped := false;
                v_begun := clock_timestamp();
                v_place := v_class || case when v_class = 'own' then ':' || p_owner::text else '' end;
                v_floor := case when (v_floors #>> array[v_place, 'until'])::double precision > extract(epoch from v_begun)
                                then v_floors #> array[v_place, 'lanes'] end;
                v_floored := v_floor is not null;
                v_hidden := v_hidden or v_floored;
                if v_class = 'own' then
            -- A kind nobody has seen waits a moment longer while others keep the session busy: see below for floors.
            if p_kinds is null and (v_floors #>> array[v_place, 'kinds_until'])::double precision > extract(epoch from v_begun) then
                v_hidden := true;
                v_kinds := array(select jsonb_array_elements_text(v_floors #> array[v_place, 'kinds']))::text[];
                v_kinds_until := (v_floors #>> array[v_place, 'kinds_until'])::double precision;
            elsif p_kinds is null then
                v_kinds := array(
                    with recursive kinds as (
                        (select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                         where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null order by (hashtextextended(q.type collate "C", 0) & -16) limit 1)
                        union all
                        select next.lane, next.kind
                        from kinds
                        cross join lateral (
                            select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                            where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > (kinds.lane | 15)
                            order by (hashtextextended(q.type collate "C", 0) & -16) limit 1
                        ) as next
                    )
                    select k.kind from kinds as k);
                v_kinds_until := extract(epoch from v_begun + greatest(20 * (clock_timestamp() - v_begun), interval '1 second'));
            end if;
            -- Only lanes with a due row go on, and begin there: what is dead before it is waded through once.
            select coalesce(array_agg(l.kind), '{}'), coalesce(array_agg(l.class), '{}'), array_agg(due.at), array_agg(due.id)
            into v_lane_kind, v_lane_class, v_floor_at, v_floor_key
            from (select k.kind, c.class
                  from unnest(v_kinds) as k (kind) cross join generate_series(0, 0) as c (class)) as l
            -- Not `exists`: the planner would turn that into a join over every due row.
            cross join lateral (
                select q.due_at as at, q.id as id
                from public.activities as q
                where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.type = l.kind
                  and q.due_at <= v_by
                  and (q.due_at, q.id) >= (
                      coalesce((v_floor #>> array[l.class::text || ':' || l.kind, '0'])::timestamptz, '-infinity'),
                      coalesce((v_floor #>> array[l.class::text || ':' || l.kind, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                order by q.due_at, q.id
                limit 1
            ) as due;
            if cardinality(v_lane_class) > 0 then
                v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                if cardinality(v_lane_class) > 1 and v_left > 1 then
                    -- How many rows of each lane the batch will hold, so that no more are locked than are taken.
                    with head as (
                        select l.lane
                        from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key) with ordinality as l (kind, class, floor_at, floor_key, lane)
                        cross join lateral (
                            select q.due_at as at, q.id as id
                            from public.activities as q
                            where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.type = l.kind
                              and q.due_at <= v_by and (q.due_at, q.id) >= (l.floor_at, l.floor_key)
                              and q.id <> all (v_passed)
                            order by q.due_at, q.id
                            limit v_left
                        ) as p
                        order by p.at + l.class * interval '0', p.id
                        limit v_left
                    )
                    select array(select (select count(*)::integer from head where head.lane = i)
                                 from generate_subscripts(v_lane_class, 1) as i order by i)
                    into v_take;
                end if;
                loop
                    if cardinality(v_lane_class) = 1 then
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'), coalesce(array_agg(p.at), '{}')
                        into v_keys, v_odd, v_at
                        from (
                                select q.id as id, q.due_at as at,
                                       (q.processing_status in ('processing') or q.lost > 0) as odd
                                from public.activities as q
                                where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(v_lane_kind[1] collate "C", 0) & -16) and q.type = v_lane_kind[1]
                                  and q.due_at <= v_by and (q.due_at, q.id) >= (v_floor_at[1], v_floor_key[1])
                                  and q.id <> all (v_passed)
                                order by q.due_at, q.id
                                limit v_left
                                for no key update skip locked
                        ) as p;
                        v_lane := '{}';
                    else
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'),
                               coalesce(array_agg(p.at), '{}'), coalesce(array_agg(p.lane), '{}')
                        into v_keys, v_odd, v_at, v_lane
                        from (
                            select p.id, p.odd, p.at, l.lane::integer as lane,
                                   p.at + l.class * interval '0' as rank
                            from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key, v_take) with ordinality as l (kind, class, floor_at, floor_key, take, lane)
                            cross join lateral (
                                select q.id as id, q.due_at as at,
                                       (q.processing_status in ('processing') or q.lost > 0) as odd
                                from public.activities as q
                                where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.type = l.kind
                                  and q.due_at <= v_by and (q.due_at, q.id) >= (l.floor_at, l.floor_key)
                                  and q.id <> all (v_passed)
                                order by q.due_at, q.id
                                limit l.take
                                for no key update skip locked
                            ) as p
                            order by rank, p.id
                            limit v_left
                        ) as p;
                    end if;
                    -- What was counted may be locked by now, and then the other lanes are due: a claim that can find work does.
                    exit when cardinality(v_keys) > 0 or v_left <= all (v_take);
                    v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                end loop;
            else
                v_keys := '{}'; v_odd := '{}'; v_at := '{}'; v_lane := '{}';
            end if;
                elsif v_class = 'global' then
            -- A kind nobody has seen waits a moment longer while others keep the session busy: see below for floors.
            if p_kinds is null and (v_floors #>> array[v_place, 'kinds_until'])::double precision > extract(epoch from v_begun) then
                v_hidden := true;
                v_kinds := array(select jsonb_array_elements_text(v_floors #> array[v_place, 'kinds']))::text[];
                v_kinds_until := (v_floors #>> array[v_place, 'kinds_until'])::double precision;
            elsif p_kinds is null then
                v_kinds := array(
                    with recursive kinds as (
                        (select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                         where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null order by (hashtextextended(q.type collate "C", 0) & -16) limit 1)
                        union all
                        select next.lane, next.kind
                        from kinds
                        cross join lateral (
                            select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                            where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > (kinds.lane | 15)
                            order by (hashtextextended(q.type collate "C", 0) & -16) limit 1
                        ) as next
                    )
                    select k.kind from kinds as k);
                v_kinds_until := extract(epoch from v_begun + greatest(20 * (clock_timestamp() - v_begun), interval '1 second'));
            end if;
            -- Only lanes with a due row go on, and begin there: what is dead before it is waded through once.
            select coalesce(array_agg(l.kind), '{}'), coalesce(array_agg(l.class), '{}'), array_agg(due.at), array_agg(due.id)
            into v_lane_kind, v_lane_class, v_floor_at, v_floor_key
            from (select k.kind, c.class
                  from unnest(v_kinds) as k (kind) cross join generate_series(0, 0) as c (class)) as l
            -- Not `exists`: the planner would turn that into a join over every due row.
            cross join lateral (
                select q.due_at as at, q.id as id
                from public.activities as q
                where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.type = l.kind
                  and q.due_at <= v_by
                  and (q.due_at, q.id) >= (
                      coalesce((v_floor #>> array[l.class::text || ':' || l.kind, '0'])::timestamptz, '-infinity'),
                      coalesce((v_floor #>> array[l.class::text || ':' || l.kind, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                order by q.due_at, q.id
                limit 1
            ) as due;
            if cardinality(v_lane_class) > 0 then
                v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                if cardinality(v_lane_class) > 1 and v_left > 1 then
                    -- How many rows of each lane the batch will hold, so that no more are locked than are taken.
                    with head as (
                        select l.lane
                        from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key) with ordinality as l (kind, class, floor_at, floor_key, lane)
                        cross join lateral (
                            select q.due_at as at, q.id as id
                            from public.activities as q
                            where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.type = l.kind
                              and q.due_at <= v_by and (q.due_at, q.id) >= (l.floor_at, l.floor_key)
                              and q.id <> all (v_passed)
                            order by q.due_at, q.id
                            limit v_left
                        ) as p
                        order by p.at + l.class * interval '0', p.id
                        limit v_left
                    )
                    select array(select (select count(*)::integer from head where head.lane = i)
                                 from generate_subscripts(v_lane_class, 1) as i order by i)
                    into v_take;
                end if;
                loop
                    if cardinality(v_lane_class) = 1 then
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'), coalesce(array_agg(p.at), '{}')
                        into v_keys, v_odd, v_at
                        from (
                                select q.id as id, q.due_at as at,
                                       (q.processing_status in ('processing') or q.lost > 0) as odd
                                from public.activities as q
                                where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(v_lane_kind[1] collate "C", 0) & -16) and q.type = v_lane_kind[1]
                                  and q.due_at <= v_by and (q.due_at, q.id) >= (v_floor_at[1], v_floor_key[1])
                                  and q.id <> all (v_passed)
                                order by q.due_at, q.id
                                limit v_left
                                for no key update skip locked
                        ) as p;
                        v_lane := '{}';
                    else
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'),
                               coalesce(array_agg(p.at), '{}'), coalesce(array_agg(p.lane), '{}')
                        into v_keys, v_odd, v_at, v_lane
                        from (
                            select p.id, p.odd, p.at, l.lane::integer as lane,
                                   p.at + l.class * interval '0' as rank
                            from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key, v_take) with ordinality as l (kind, class, floor_at, floor_key, take, lane)
                            cross join lateral (
                                select q.id as id, q.due_at as at,
                                       (q.processing_status in ('processing') or q.lost > 0) as odd
                                from public.activities as q
                                where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.type = l.kind
                                  and q.due_at <= v_by and (q.due_at, q.id) >= (l.floor_at, l.floor_key)
                                  and q.id <> all (v_passed)
                                order by q.due_at, q.id
                                limit l.take
                                for no key update skip locked
                            ) as p
                            order by rank, p.id
                            limit v_left
                        ) as p;
                    end if;
                    -- What was counted may be locked by now, and then the other lanes are due: a claim that can find work does.
                    exit when cardinality(v_keys) > 0 or v_left <= all (v_take);
                    v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                end loop;
            else
                v_keys := '{}'; v_odd := '{}'; v_at := '{}'; v_lane := '{}';
            end if;
                elsif v_class = 'stale' then
            -- A kind nobody has seen waits a moment longer while others keep the session busy: see below for floors.
            if p_kinds is null and (v_floors #>> array[v_place, 'kinds_until'])::double precision > extract(epoch from v_begun) then
                v_hidden := true;
                v_kinds := array(select jsonb_array_elements_text(v_floors #> array[v_place, 'kinds']))::text[];
                v_kinds_until := (v_floors #>> array[v_place, 'kinds_until'])::double precision;
            elsif p_kinds is null then
                v_kinds := array(
                    with recursive kinds as (
                        (select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                         where q.sales_id is not null and q.open_at is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null order by (hashtextextended(q.type collate "C", 0) & -16) limit 1)
                        union all
                        select next.lane, next.kind
                        from kinds
                        cross join lateral (
                            select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                            where q.sales_id is not null and q.open_at is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > (kinds.lane | 15)
                            order by (hashtextextended(q.type collate "C", 0) & -16) limit 1
                        ) as next
                    )
                    select k.kind from kinds as k);
                v_kinds_until := extract(epoch from v_begun + greatest(20 * (clock_timestamp() - v_begun), interval '1 second'));
            end if;
            -- Only lanes with a due row go on, and begin there: what is dead before it is waded through once.
            select coalesce(array_agg(l.kind), '{}'), coalesce(array_agg(l.class), '{}'), array_agg(due.at), array_agg(due.id)
            into v_lane_kind, v_lane_class, v_floor_at, v_floor_key
            from (select k.kind, c.class
                  from unnest(v_kinds) as k (kind) cross join generate_series(0, 0) as c (class)) as l
            -- Not `exists`: the planner would turn that into a join over every due row.
            cross join lateral (
                select q.open_at as at, q.id as id
                from public.activities as q
                where q.sales_id is not null and q.open_at is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.type = l.kind
                  and q.open_at <= v_by
                  and (q.open_at, q.id) >= (
                      coalesce((v_floor #>> array[l.class::text || ':' || l.kind, '0'])::timestamptz, '-infinity'),
                      coalesce((v_floor #>> array[l.class::text || ':' || l.kind, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                order by q.open_at, q.id
                limit 1
            ) as due;
            if cardinality(v_lane_class) > 0 then
                v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                if cardinality(v_lane_class) > 1 and v_left > 1 then
                    -- How many rows of each lane the batch will hold, so that no more are locked than are taken.
                    with head as (
                        select l.lane
                        from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key) with ordinality as l (kind, class, floor_at, floor_key, lane)
                        cross join lateral (
                            select q.open_at as at, q.id as id
                            from public.activities as q
                            where q.sales_id is not null and q.open_at is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.type = l.kind
                              and q.open_at <= v_by and (q.open_at, q.id) >= (l.floor_at, l.floor_key)
                              and q.id <> all (v_passed)
                            order by q.open_at, q.id
                            limit v_left
                        ) as p
                        order by p.at + l.class * interval '0', p.id
                        limit v_left
                    )
                    select array(select (select count(*)::integer from head where head.lane = i)
                                 from generate_subscripts(v_lane_class, 1) as i order by i)
                    into v_take;
                end if;
                loop
                    if cardinality(v_lane_class) = 1 then
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'), coalesce(array_agg(p.at), '{}')
                        into v_keys, v_odd, v_at
                        from (
                                select q.id as id, q.open_at as at,
                                       (q.processing_status in ('processing') or q.lost > 0) as odd
                                from public.activities as q
                                where q.sales_id is not null and q.open_at is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(v_lane_kind[1] collate "C", 0) & -16) and q.type = v_lane_kind[1]
                                  and q.open_at <= v_by and (q.open_at, q.id) >= (v_floor_at[1], v_floor_key[1])
                                  and q.id <> all (v_passed)
                                order by q.open_at, q.id
                                limit v_left
                                for no key update skip locked
                        ) as p;
                        v_lane := '{}';
                    else
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'),
                               coalesce(array_agg(p.at), '{}'), coalesce(array_agg(p.lane), '{}')
                        into v_keys, v_odd, v_at, v_lane
                        from (
                            select p.id, p.odd, p.at, l.lane::integer as lane,
                                   p.at + l.class * interval '0' as rank
                            from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key, v_take) with ordinality as l (kind, class, floor_at, floor_key, take, lane)
                            cross join lateral (
                                select q.id as id, q.open_at as at,
                                       (q.processing_status in ('processing') or q.lost > 0) as odd
                                from public.activities as q
                                where q.sales_id is not null and q.open_at is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.type = l.kind
                                  and q.open_at <= v_by and (q.open_at, q.id) >= (l.floor_at, l.floor_key)
                                  and q.id <> all (v_passed)
                                order by q.open_at, q.id
                                limit l.take
                                for no key update skip locked
                            ) as p
                            order by rank, p.id
                            limit v_left
                        ) as p;
                    end if;
                    -- What was counted may be locked by now, and then the other lanes are due: a claim that can find work does.
                    exit when cardinality(v_keys) > 0 or v_left <= all (v_take);
                    v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                end loop;
            else
                v_keys := '{}'; v_odd := '{}'; v_at := '{}'; v_lane := '{}';
            end if;
                    -- open_at only orders the line. Whether the row may be taken is for its owner's row to say, now.
                    -- One's own come first or not at all: what was passed over in its class does not follow behind global work.
                    select coalesce(array_agg(p.id) filter (where p.open is not true), '{}'),
                           coalesce(array_agg(p.open_at) filter (where p.open is not true), '{}'),
                           coalesce(array_agg(p.id) filter (where p.open is not true or p.own), '{}')
                    into v_mended, v_mended_at, v_not_now
                    from (
                        select k.id,
                               q.sales_id is not distinct from p_owner and 'own' = any (p_classes) as own,
                               q.sales_id is not distinct from p_owner or (coalesce(o.allow_remote_processing, false) and q.created_at + coalesce(o.stale_threshold_minutes * interval '1 minute', interval '5 minutes') <= v_by) as open,
                               case when coalesce(o.allow_remote_processing, false) then greatest(q.created_at + coalesce(o.stale_threshold_minutes * interval '1 minute', interval '5 minutes'), q.due_at) end as open_at
                        from unnest(v_keys) as k (id)
                        join public.activities as q on q.id = k.id
                        left join public.sales as o on o.id = q.sales_id
                    ) as p;
                    if cardinality(v_mended) > 0 then
                        v_refused := true;
                        -- A refused row gets the time its owner's policy gives it, or it would be read by every claim.
                        begin
                            update public.activities as q
                            set open_at = u.open_at
                            from unnest(v_mended, v_mended_at) as u (id, open_at)
                            where q.id = u.id;
                        exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                            for v_i in 1 .. cardinality(v_mended) loop
                                begin
                            update public.activities as q
                            set open_at = u.open_at
                            from unnest(v_mended[v_i : v_i], v_mended_at[v_i : v_i]) as u (id, open_at)
                            where q.id = u.id;
                                exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                                    v_reason := sqlerrm;
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || v_mended[v_i];
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('activities', v_mended[v_i]::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
                                end;
                            end loop;
                        end;
                    end if;
                    if cardinality(v_not_now) > 0 then
                        select coalesce(array_agg(v_keys[s] order by s), '{}'), coalesce(array_agg(v_odd[s] order by s), '{}'),
                               coalesce(array_agg(v_at[s] order by s), '{}'), coalesce(array_agg(v_lane[s] order by s), '{}')
                        into v_keys, v_odd, v_at, v_lane
                        from generate_subscripts(v_keys, 1) as s
                        where v_keys[s] <> all (v_not_now);
                    end if;
                else
                    -- Per owner that shares, straight from the owner's own line: exact whatever rows were stamped with.
                    with recursive fields as (
                        (select q.sales_id as owner, q.type as kind, (hashtextextended(q.type collate "C", 0) & -16) as lane
                         from public.activities as q
                         where q.sales_id is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null
                         order by q.sales_id, (hashtextextended(q.type collate "C", 0) & -16) limit 1)
                        union all
                        select next.owner, next.kind, next.lane
                        from fields
                        cross join lateral (
                            select q.sales_id as owner, q.type as kind, (hashtextextended(q.type collate "C", 0) & -16) as lane
                            from public.activities as q
                            where q.sales_id is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null
                              and (q.sales_id, (hashtextextended(q.type collate "C", 0) & -16)) > (fields.owner, fields.lane | 15)
                            order by q.sales_id, (hashtextextended(q.type collate "C", 0) & -16) limit 1
                        ) as next
                    ), lanes as (
                        select f.owner, f.kind, c.class, coalesce(o.stale_threshold_minutes * interval '1 minute', interval '5 minutes') as open_after
                        from (select * from fields limit 2000) as f
                        join public.sales as o on o.id = f.owner
                        cross join generate_series(0, 0) as c (class)
                        where coalesce(o.allow_remote_processing, false) and f.owner is distinct from p_owner
                          and (p_kinds is null or f.kind = any (p_kinds::text[]))
                    ), share as (
                        select greatest(1, ceil(v_left::numeric / greatest(count(*), 1)))::integer as take from lanes
                    )
                    select coalesce(array_agg(p.id order by p.at, p.id), '{}'), coalesce(array_agg(p.odd order by p.at, p.id), '{}')
                    into v_keys, v_odd
                    from (
                        select p.*
                        from lanes
                        cross join share
                        cross join lateral (
                            select q.id as id, q.due_at as at,
                                   (q.processing_status in ('processing') or q.lost > 0) as odd
                            from public.activities as q
                            where q.sales_id = lanes.owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(lanes.kind collate "C", 0) & -16) and q.type = lanes.kind
                              -- The first keeps it on the index; the second is the policy, for a due time may be earlier than the row.
                              and q.due_at <= v_by - lanes.open_after and q.created_at <= v_by - lanes.open_after
                              and q.id <> all (v_passed)
                            order by q.due_at, q.id
                            limit share.take
                            for no key update skip locked
                        ) as p
                        order by p.at, p.id
                        limit v_left
                    ) as p;
                    v_at := '{}';
                end if;

                -- Dead index entries at the head of the line make a look from the start slow: a few after every large
                -- batch, millions while a forgotten transaction pins them. The next claims of this session then begin
                -- where this one ended, for a moment, or until twenty times the slow look has passed. What the rows of the
                -- batch cost themselves is no slowness, or a batch of thousands would hide latecomers for seconds.
                v_count := cardinality(v_at);
                v_slow := clock_timestamp() - v_begun - v_count * interval '5 microseconds';
                if v_count > 0 and (v_floor is not null or v_count >= 64 and v_count = v_left
                                    or v_slow > interval '3 milliseconds') then
                    v_floor := coalesce(v_floor, '{}') || case
                        when cardinality(v_lane_class) = 1
                        then jsonb_build_object(v_lane_class[1]::text || ':' || v_lane_kind[1], jsonb_build_array(v_at[v_count], v_keys[v_count]))
                        else (select jsonb_object_agg(v_lane_class[f.lane]::text || ':' || v_lane_kind[f.lane], jsonb_build_array(f.at, f.id))
                              from (select distinct on (u.lane) u.lane, u.at, u.id
                                    from unnest(v_lane, v_at, v_keys) as u (lane, at, id)
                                    order by u.lane, u.at desc, u.id desc) as f) end;
                    v_floors := jsonb_set(v_floors, array[v_place], jsonb_build_object(
                        'until', case when v_floored then (v_floors #>> array[v_place, 'until'])::double precision
                                      else extract(epoch from v_now + greatest(20 * v_slow, interval '100 milliseconds')) end,
                        'kinds', case when p_kinds is null then to_jsonb(v_kinds) end, 'kinds_until', v_kinds_until,
                        'lanes', v_floor));
                    perform set_config('gleaner.floor_activities', v_floors::text, false);
                end if;
                exit fill when cardinality(v_keys) = 0;

                v_fine := v_keys;
                v_buried := 0;
                if true = any (v_odd) then
                    v_fine := '{}';
                    for v_i in 1 .. cardinality(v_keys) loop
                        if not v_odd[v_i] then
                            v_fine := v_fine || v_keys[v_i];
                            continue;
                        end if;
                        select q.* into v_row from public.activities as q where q.id = v_keys[v_i];
                        v_lost := v_row.lost + case when v_row.processing_status in ('processing') and v_row.started >= 1 then 1 else 0 end;
                        v_reason := case when v_lost >= 3 then format('lost %s leases', v_lost) end;
                        if v_reason is not null then
                            begin
                                perform gleaner.rest_activities(v_row, v_reason, 'Poison', v_row.attempts, v_lost);
                                v_reason := case when exists (select from public.activities as q where q.id = v_keys[v_i] and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null)
                                                 then 'a trigger swallowed the burial' end;
                            exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                                v_reason := sqlerrm;
                            end;
                            if v_reason is not null then
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || v_keys[v_i];
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('activities', v_keys[v_i]::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
                            end if;
                            v_buried := v_buried + 1;
                        elsif v_total = 0 and cardinality(v_fine) = 0 then
                            -- A row that lost a lease travels alone: if it brings its agent down, no other row suffers.
                            v_fine := array[v_keys[v_i]];
                            v_alone := true;
                            exit;
                        else
                            v_passed := v_passed || v_keys[v_i];
                            v_stepped := true;
                        end if;
                    end loop;
                end if;

                if cardinality(v_fine) > 0 then
                    v_count := -1;
                    if v_plain then
                        return query
                update public.activities as q
                set processing_status = 'processing',
                    due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end)),
                    open_at = case when q.open_at is null then null else greatest(q.open_at, v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end))) end,
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end),
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end),
                    metadata = case when (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end) = 1 then jsonb_set(coalesce(q.metadata, '{}'), '{recovery_count}', to_jsonb(q.lost + 1)) else q.metadata end,
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session,
                    locked_by = v_holder,
                    locked_at = v_now
                from unnest(v_fine) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id])
                        returning q.*;
                        v_count := cardinality(v_fine);
                    else
                        begin
                update public.activities as q
                set processing_status = 'processing',
                    due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end)),
                    open_at = case when q.open_at is null then null else greatest(q.open_at, v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end))) end,
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end),
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end),
                    metadata = case when (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end) = 1 then jsonb_set(coalesce(q.metadata, '{}'), '{recovery_count}', to_jsonb(q.lost + 1)) else q.metadata end,
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session,
                    locked_by = v_holder,
                    locked_at = v_now
                from unnest(v_fine) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id]);
                            get diagnostics v_count = row_count;
                        exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                        end;
                    end if;
                    if v_count < cardinality(v_fine) then
                        -- Some row refused: a check that does not hold, a trigger that raised or swallowed the change.
                        -- One by one, so that the others are worked, and the offender is noted.
                        v_keys := v_fine;
                        v_fine := '{}';
                        v_buried := 1;
                        for v_i in 1 .. cardinality(v_keys) loop
                            if v_count > 0 and exists (select from public.activities as q where q.id = v_keys[v_i] and q.lease >= v_lease and q.agent is not distinct from p_agent) then
                                v_fine := v_fine || v_keys[v_i];
                                continue;
                            end if;
                            v_reason := 'a trigger swallowed the claim';
                            begin
                update public.activities as q
                set processing_status = 'processing',
                    due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end)),
                    open_at = case when q.open_at is null then null else greatest(q.open_at, v_now + least(coalesce(p_hold, interval '5 minutes'), (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end))) end,
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + (case q.type when 'call' then interval '2 hours' else interval '30 minutes' end),
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end),
                    metadata = case when (case when q.processing_status in ('processing') and q.started >= 1 then 1 else 0 end) = 1 then jsonb_set(coalesce(q.metadata, '{}'), '{recovery_count}', to_jsonb(q.lost + 1)) else q.metadata end,
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session,
                    locked_by = v_holder,
                    locked_at = v_now
                from unnest(v_keys[v_i : v_i]) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id]);
                                if found then
                                    v_reason := null;
                                end if;
                            exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                                v_reason := sqlerrm;
                            end;
                            if v_reason is null then
                                v_fine := v_fine || v_keys[v_i];
                            else
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || v_keys[v_i];
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('activities', v_keys[v_i]::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
                            end if;
                        end loop;
                        v_alone := v_alone and cardinality(v_fine) > 0;
                    end if;
                    if not v_plain then
                        -- Only now: what a statement has returned before it failed, in a trigger that runs after it, say,
                        -- cannot be taken back, and its reader would work on a row that nobody holds.
                        return query
                        select q.*
                        from unnest(v_fine) with ordinality as k (id, n)
                        join public.activities as q on q.id = k.id
                        order by k.n;
                    end if;
                    v_taken := v_taken || v_fine;
                    v_total := v_total + cardinality(v_fine);
                    v_left := v_left - cardinality(v_fine);
                end if;
                -- Burying made room, and so did what travels alone: fill the batch up. Otherwise this probe has given what it has.
                exit fill when v_buried = 0 and not v_stepped;
                if v_buried = 0 and v_stepped then
                    -- A line of nothing but such rows is not read to its end; what the next classes have waits for the next claim.
                    v_rounds := v_rounds + 1;
                    exit passes when v_rounds >= 4;
                end if;
            end loop;
        end loop;
    end loop;

    if v_total = 0 and v_hidden then
        perform set_config('gleaner.floor_activities', '', false);
    end if;
    if p_request is not null and v_total > 0 then
        update gleaner.request as r
        set keys = v_taken::text[],
            leases = array(select q.lease
                           from unnest(v_taken) with ordinality as k (id, n)
                           left join public.activities as q on q.id = k.id
                           order by k.n)
        where r.queue = 'activities' and r.id = p_request;
    end if;
end
$$;

ALTER FUNCTION gleaner.claim_activities(p_agent text, p_limit integer, p_owner bigint, p_classes text[], p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) OWNER TO gleaner_engine;

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
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now        timestamptz := clock_timestamp();
    v_by         timestamptz := v_now + p_early;
    v_lease      bigint      := (extract(epoch from v_now) * 1000000)::bigint;
    v_session    text        := gleaner.caller_session();
    v_trusted    boolean     := p_request is not null and gleaner.is_trusted();
    v_left       integer     := least(p_limit, 10000);
    v_total      integer     := 0;
    v_class      text;
    v_keys       uuid[];
    v_odd        boolean[];
    v_at         timestamptz[];
    v_lane       integer[];
    v_fine       uuid[];
    v_passed     uuid[];
    v_taken      uuid[] := '{}';
    v_buried     integer;
    v_count      integer;
    v_alone      boolean := false;
    v_stepped    boolean;
    v_rounds     integer;
    v_lane_kind  text[];
    v_lane_class integer[];
    v_take       integer[];
    v_floor_at   timestamptz[];
    v_floor_key  uuid[];
    v_floors     jsonb := coalesce(nullif(current_setting('gleaner.floor_dumps', true), '')::jsonb, '{}');
    v_floor      jsonb;
    v_floored    boolean;
    v_place      text;
    v_hidden     boolean := false;
    v_begun      timestamptz;
    v_slow       interval;
    v_row        public.agent_processing_queue;
    v_reason     text;
    v_refusals   integer := 0;
    -- Nothing can refuse: rows are returned as they change. Otherwise each refusal is looked at.
    v_plain      boolean := gleaner.is_plain('public.agent_processing_queue', array['due_at', 'lease', 'deadline_at', 'lost', 'started', 'agent', 'session', 'processing_state', 'claimed_by', 'claimed_at'], 'processing_state');
    v_lost       integer;
    v_classes    text[] := '{global}';
    v_holder     text;
begin
    perform gleaner.require_read_committed();
    if p_agent = '' then
        raise exception 'the agent id is empty' using errcode = 'GL002',
            hint = 'Pass a text that is new at each process start, or null to be known by your sign-in alone and end the work by plain updates.';
    end if;
    -- A worker's key may be for some queues and kinds alone. Direct logins have no key, and pay nothing for the question.
    if current_setting('request.jwt.claims', true) <> '' then
        perform gleaner.scoped_kinds('dumps', null);
    end if;
    v_holder := coalesce(p_holder, p_agent);

    if p_request is not null then
        insert into gleaner.request (queue, id, at) values ('dumps', p_request, v_now) on conflict do nothing;
        if not found then
            -- One that was given nothing yet looks again: a claim that waits does. The lock lets the second of two at once see
            -- what the first was given.
            perform from gleaner.request as r
            where r.queue = 'dumps' and r.id = p_request and r.keys = '{}'
            for update;
        end if;
        if not found then
            return query
            select q.*
            from gleaner.request as r
            cross join lateral unnest(r.keys, r.leases) with ordinality as k (id, lease, n)
            join public.agent_processing_queue as q on q.id = k.id::uuid
            -- Whoever knows another's request is not given its rows.
            where r.queue = 'dumps' and r.id = p_request
              and (q.lease = k.lease and q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and (v_trusted or q.session = v_session))
            order by k.n;
            return;
        end if;
    end if;

    -- Rows that refused a change a moment ago are stepped over for a while.
    v_passed := array(select o.key::uuid from gleaner.offender as o where o.queue = 'dumps' and o.until > v_now);

    <<passes>>
    for v_pass in 1 .. 2 loop
        -- Second pass: nothing was found, but a floor hid part of the line. A floor never reports "empty".
        if v_pass = 2 then
            exit when v_total > 0 or not v_hidden;
            v_floors := '{}';
        end if;

        <<classes>>
        foreach v_class in array v_classes loop

            v_rounds := 0;
            <<fill>>
            loop
                exit passes when v_left <= 0 or v_alone or v_refusals >= 100;
                v_stepped := false;
                v_begun := clock_timestamp();
                v_place := v_class;
                v_floor := case when (v_floors #>> array[v_place, 'until'])::double precision > extract(epoch from v_begun)
                                then v_floors #> array[v_place, 'lanes'] end;
                v_floored := v_floor is not null;
                v_hidden := v_hidden or v_floored;
            -- Only lanes with a due row go on, and begin there: what is dead before it is waded through once.
            select coalesce(array_agg(''::text), '{}'), coalesce(array_agg(l.class), '{}'), array_agg(due.at), array_agg(due.id)
            into v_lane_kind, v_lane_class, v_floor_at, v_floor_key
            from (select c.class
                  from generate_series(0, 0) as c (class)) as l
            -- Not `exists`: the planner would turn that into a join over every due row.
            cross join lateral (
                select q.due_at as at, q.id as id
                from public.agent_processing_queue as q
                where true and q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null
                  and q.due_at <= v_by
                  and (q.due_at, q.id) >= (
                      coalesce((v_floor #>> array[l.class::text, '0'])::timestamptz, '-infinity'),
                      coalesce((v_floor #>> array[l.class::text, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                order by q.due_at, q.id
                limit 1
            ) as due;
            if cardinality(v_lane_class) > 0 then
                v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                if cardinality(v_lane_class) > 1 and v_left > 1 then
                    -- How many rows of each lane the batch will hold, so that no more are locked than are taken.
                    with head as (
                        select l.lane
                        from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key) with ordinality as l (kind, class, floor_at, floor_key, lane)
                        cross join lateral (
                            select q.due_at as at, q.id as id
                            from public.agent_processing_queue as q
                            where true and q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null
                              and q.due_at <= v_by and (q.due_at, q.id) >= (l.floor_at, l.floor_key)
                              and q.id <> all (v_passed)
                            order by q.due_at, q.id
                            limit v_left
                        ) as p
                        order by p.at + l.class * interval '0', p.id
                        limit v_left
                    )
                    select array(select (select count(*)::integer from head where head.lane = i)
                                 from generate_subscripts(v_lane_class, 1) as i order by i)
                    into v_take;
                end if;
                loop
                    if cardinality(v_lane_class) = 1 then
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'), coalesce(array_agg(p.at), '{}')
                        into v_keys, v_odd, v_at
                        from (
                                select q.id as id, q.due_at as at,
                                       (q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) or q.lost > 0) as odd
                                from public.agent_processing_queue as q
                                where true and q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null
                                  and q.due_at <= v_by and (q.due_at, q.id) >= (v_floor_at[1], v_floor_key[1])
                                  and q.id <> all (v_passed)
                                order by q.due_at, q.id
                                limit v_left
                                for no key update skip locked
                        ) as p;
                        v_lane := '{}';
                    else
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'),
                               coalesce(array_agg(p.at), '{}'), coalesce(array_agg(p.lane), '{}')
                        into v_keys, v_odd, v_at, v_lane
                        from (
                            select p.id, p.odd, p.at, l.lane::integer as lane,
                                   p.at + l.class * interval '0' as rank
                            from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key, v_take) with ordinality as l (kind, class, floor_at, floor_key, take, lane)
                            cross join lateral (
                                select q.id as id, q.due_at as at,
                                       (q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) or q.lost > 0) as odd
                                from public.agent_processing_queue as q
                                where true and q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null
                                  and q.due_at <= v_by and (q.due_at, q.id) >= (l.floor_at, l.floor_key)
                                  and q.id <> all (v_passed)
                                order by q.due_at, q.id
                                limit l.take
                                for no key update skip locked
                            ) as p
                            order by rank, p.id
                            limit v_left
                        ) as p;
                    end if;
                    -- What was counted may be locked by now, and then the other lanes are due: a claim that can find work does.
                    exit when cardinality(v_keys) > 0 or v_left <= all (v_take);
                    v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                end loop;
            else
                v_keys := '{}'; v_odd := '{}'; v_at := '{}'; v_lane := '{}';
            end if;

                -- Dead index entries at the head of the line make a look from the start slow: a few after every large
                -- batch, millions while a forgotten transaction pins them. The next claims of this session then begin
                -- where this one ended, for a moment, or until twenty times the slow look has passed. What the rows of the
                -- batch cost themselves is no slowness, or a batch of thousands would hide latecomers for seconds.
                v_count := cardinality(v_at);
                v_slow := clock_timestamp() - v_begun - v_count * interval '5 microseconds';
                if v_count > 0 and (v_floor is not null or v_count >= 64 and v_count = v_left
                                    or v_slow > interval '3 milliseconds') then
                    v_floor := coalesce(v_floor, '{}') || case
                        when cardinality(v_lane_class) = 1
                        then jsonb_build_object(v_lane_class[1]::text, jsonb_build_array(v_at[v_count], v_keys[v_count]))
                        else (select jsonb_object_agg(v_lane_class[f.lane]::text, jsonb_build_array(f.at, f.id))
                              from (select distinct on (u.lane) u.lane, u.at, u.id
                                    from unnest(v_lane, v_at, v_keys) as u (lane, at, id)
                                    order by u.lane, u.at desc, u.id desc) as f) end;
                    v_floors := jsonb_set(v_floors, array[v_place], jsonb_build_object(
                        'until', case when v_floored then (v_floors #>> array[v_place, 'until'])::double precision
                                      else extract(epoch from v_now + greatest(20 * v_slow, interval '100 milliseconds')) end,
                        'lanes', v_floor));
                    perform set_config('gleaner.floor_dumps', v_floors::text, false);
                end if;
                exit fill when cardinality(v_keys) = 0;

                v_fine := v_keys;
                v_buried := 0;
                if true = any (v_odd) then
                    v_fine := '{}';
                    for v_i in 1 .. cardinality(v_keys) loop
                        if not v_odd[v_i] then
                            v_fine := v_fine || v_keys[v_i];
                            continue;
                        end if;
                        select q.* into v_row from public.agent_processing_queue as q where q.id = v_keys[v_i];
                        v_lost := v_row.lost + case when v_row.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and v_row.started >= 1 then 1 else 0 end;
                        v_reason := case when v_lost >= 3 then format('lost %s leases', v_lost) end;
                        if v_reason is not null then
                            begin
                                perform gleaner.rest_dumps(v_row, v_reason, 'Poison', v_row.attempts, v_lost);
                                v_reason := case when exists (select from public.agent_processing_queue as q where q.id = v_keys[v_i] and q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null)
                                                 then 'a trigger swallowed the burial' end;
                            exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                                v_reason := sqlerrm;
                            end;
                            if v_reason is not null then
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || v_keys[v_i];
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('dumps', v_keys[v_i]::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
                            end if;
                            v_buried := v_buried + 1;
                        elsif v_total = 0 and cardinality(v_fine) = 0 then
                            -- A row that lost a lease travels alone: if it brings its agent down, no other row suffers.
                            v_fine := array[v_keys[v_i]];
                            v_alone := true;
                            exit;
                        else
                            v_passed := v_passed || v_keys[v_i];
                            v_stepped := true;
                        end if;
                    end loop;
                end if;

                if cardinality(v_fine) > 0 then
                    v_count := -1;
                    if v_plain then
                        return query
                update public.agent_processing_queue as q
                set processing_state = 'claimed'::public.processing_state,
                    due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '30 minutes'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '30 minutes',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session,
                    claimed_by = v_holder,
                    claimed_at = v_now
                from unnest(v_fine) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id])
                        returning q.*;
                        v_count := cardinality(v_fine);
                    else
                        begin
                update public.agent_processing_queue as q
                set processing_state = 'claimed'::public.processing_state,
                    due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '30 minutes'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '30 minutes',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session,
                    claimed_by = v_holder,
                    claimed_at = v_now
                from unnest(v_fine) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id]);
                            get diagnostics v_count = row_count;
                        exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                        end;
                    end if;
                    if v_count < cardinality(v_fine) then
                        -- Some row refused: a check that does not hold, a trigger that raised or swallowed the change.
                        -- One by one, so that the others are worked, and the offender is noted.
                        v_keys := v_fine;
                        v_fine := '{}';
                        v_buried := 1;
                        for v_i in 1 .. cardinality(v_keys) loop
                            if v_count > 0 and exists (select from public.agent_processing_queue as q where q.id = v_keys[v_i] and q.lease >= v_lease and q.agent is not distinct from p_agent) then
                                v_fine := v_fine || v_keys[v_i];
                                continue;
                            end if;
                            v_reason := 'a trigger swallowed the claim';
                            begin
                update public.agent_processing_queue as q
                set processing_state = 'claimed'::public.processing_state,
                    due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '30 minutes'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '30 minutes',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session,
                    claimed_by = v_holder,
                    claimed_at = v_now
                from unnest(v_keys[v_i : v_i]) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id]);
                                if found then
                                    v_reason := null;
                                end if;
                            exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                                v_reason := sqlerrm;
                            end;
                            if v_reason is null then
                                v_fine := v_fine || v_keys[v_i];
                            else
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || v_keys[v_i];
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('dumps', v_keys[v_i]::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
                            end if;
                        end loop;
                        v_alone := v_alone and cardinality(v_fine) > 0;
                    end if;
                    if not v_plain then
                        -- Only now: what a statement has returned before it failed, in a trigger that runs after it, say,
                        -- cannot be taken back, and its reader would work on a row that nobody holds.
                        return query
                        select q.*
                        from unnest(v_fine) with ordinality as k (id, n)
                        join public.agent_processing_queue as q on q.id = k.id
                        order by k.n;
                    end if;
                    v_taken := v_taken || v_fine;
                    v_total := v_total + cardinality(v_fine);
                    v_left := v_left - cardinality(v_fine);
                end if;
                -- Burying made room, and so did what travels alone: fill the batch up. Otherwise this probe has given what it has.
                exit fill when v_buried = 0 and not v_stepped;
                if v_buried = 0 and v_stepped then
                    -- A line of nothing but such rows is not read to its end; what the next classes have waits for the next claim.
                    v_rounds := v_rounds + 1;
                    exit passes when v_rounds >= 4;
                end if;
            end loop;
        end loop;
    end loop;

    if v_total = 0 and v_hidden then
        perform set_config('gleaner.floor_dumps', '', false);
    end if;
    if p_request is not null and v_total > 0 then
        update gleaner.request as r
        set keys = v_taken::text[],
            leases = array(select q.lease
                           from unnest(v_taken) with ordinality as k (id, n)
                           left join public.agent_processing_queue as q on q.id = k.id
                           order by k.n)
        where r.queue = 'dumps' and r.id = p_request;
    end if;
end
$$;

ALTER FUNCTION gleaner.claim_dumps(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) OWNER TO gleaner_engine;

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

CREATE FUNCTION gleaner.claim_followups(p_agent text, p_limit integer DEFAULT 1, p_kinds text[] DEFAULT NULL::text[], p_request uuid DEFAULT NULL::uuid, p_started boolean DEFAULT false, p_hold interval DEFAULT NULL::interval, p_early interval DEFAULT '00:00:00'::interval) RETURNS SETOF public.scheduled_actions
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now        timestamptz := clock_timestamp();
    v_by         timestamptz := v_now + p_early;
    v_lease      bigint      := (extract(epoch from v_now) * 1000000)::bigint;
    v_session    text        := gleaner.caller_session();
    v_trusted    boolean     := p_request is not null and gleaner.is_trusted();
    v_left       integer     := least(p_limit, 10000);
    v_total      integer     := 0;
    v_class      text;
    v_keys       uuid[];
    v_odd        boolean[];
    v_at         timestamptz[];
    v_lane       integer[];
    v_fine       uuid[];
    v_passed     uuid[];
    v_taken      uuid[] := '{}';
    v_buried     integer;
    v_count      integer;
    v_alone      boolean := false;
    v_stepped    boolean;
    v_rounds     integer;
    v_lane_kind  text[];
    v_lane_class integer[];
    v_take       integer[];
    v_floor_at   timestamptz[];
    v_floor_key  uuid[];
    v_floors     jsonb := coalesce(nullif(current_setting('gleaner.floor_followups', true), '')::jsonb, '{}');
    v_floor      jsonb;
    v_floored    boolean;
    v_kinds_until double precision;
    v_place      text;
    v_hidden     boolean := false;
    v_begun      timestamptz;
    v_slow       interval;
    v_row        public.scheduled_actions;
    v_reason     text;
    v_refusals   integer := 0;
    -- Nothing can refuse: rows are returned as they change. Otherwise each refusal is looked at.
    v_plain      boolean := gleaner.is_plain('public.scheduled_actions', array['due_at', 'lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'status', 'started_processing_at'], 'status');
    v_lost       integer;
    v_kinds      text[] := p_kinds::text[];
    v_classes    text[] := '{global}';
begin
    perform gleaner.require_read_committed();
    if p_agent = '' then
        raise exception 'the agent id is empty' using errcode = 'GL002',
            hint = 'Pass a text that is new at each process start, or null to be known by your sign-in alone and end the work by plain updates.';
    end if;
    -- A worker's key may be for some queues and kinds alone. Direct logins have no key, and pay nothing for the question.
    if current_setting('request.jwt.claims', true) <> '' then
        p_kinds := gleaner.scoped_kinds('followups', p_kinds);
        v_kinds := p_kinds::text[];
    end if;

    if p_request is not null then
        insert into gleaner.request (queue, id, at) values ('followups', p_request, v_now) on conflict do nothing;
        if not found then
            -- One that was given nothing yet looks again: a claim that waits does. The lock lets the second of two at once see
            -- what the first was given.
            perform from gleaner.request as r
            where r.queue = 'followups' and r.id = p_request and r.keys = '{}'
            for update;
        end if;
        if not found then
            return query
            select q.*
            from gleaner.request as r
            cross join lateral unnest(r.keys, r.leases) with ordinality as k (id, lease, n)
            join public.scheduled_actions as q on q.id = k.id::uuid
            -- Whoever knows another's request is not given its rows.
            where r.queue = 'followups' and r.id = p_request
              and (q.lease = k.lease and q.status in ('processing') and (v_trusted or q.session = v_session))
            order by k.n;
            return;
        end if;
    end if;

    -- Rows that refused a change a moment ago are stepped over for a while.
    v_passed := array(select o.key::uuid from gleaner.offender as o where o.queue = 'followups' and o.until > v_now);

    <<passes>>
    for v_pass in 1 .. 2 loop
        -- Second pass: nothing was found, but a floor hid part of the line. A floor never reports "empty".
        if v_pass = 2 then
            exit when v_total > 0 or not v_hidden;
            v_floors := '{}';
        end if;

        <<classes>>
        foreach v_class in array v_classes loop

            v_rounds := 0;
            <<fill>>
            loop
                exit passes when v_left <= 0 or v_alone or v_refusals >= 100;
                v_stepped := false;
                v_begun := clock_timestamp();
                v_place := v_class;
                v_floor := case when (v_floors #>> array[v_place, 'until'])::double precision > extract(epoch from v_begun)
                                then v_floors #> array[v_place, 'lanes'] end;
                v_floored := v_floor is not null;
                v_hidden := v_hidden or v_floored;
            -- A kind nobody has seen waits a moment longer while others keep the session busy: see below for floors.
            if p_kinds is null and (v_floors #>> array[v_place, 'kinds_until'])::double precision > extract(epoch from v_begun) then
                v_hidden := true;
                v_kinds := array(select jsonb_array_elements_text(v_floors #> array[v_place, 'kinds']))::text[];
                v_kinds_until := (v_floors #>> array[v_place, 'kinds_until'])::double precision;
            elsif p_kinds is null then
                v_kinds := array(
                    with recursive kinds as (
                        (select (hashtextextended(q.action_type collate "C", 0) & -16) as lane, q.action_type as kind from public.scheduled_actions as q
                         where true and q.status in ('pending', 'processing', 'failed') and q.due_at is not null order by (hashtextextended(q.action_type collate "C", 0) & -16) limit 1)
                        union all
                        select next.lane, next.kind
                        from kinds
                        cross join lateral (
                            select (hashtextextended(q.action_type collate "C", 0) & -16) as lane, q.action_type as kind from public.scheduled_actions as q
                            where true and q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) > (kinds.lane | 15)
                            order by (hashtextextended(q.action_type collate "C", 0) & -16) limit 1
                        ) as next
                    )
                    select k.kind from kinds as k);
                v_kinds_until := extract(epoch from v_begun + greatest(20 * (clock_timestamp() - v_begun), interval '1 second'));
            end if;
            -- Only lanes with a due row go on, and begin there: what is dead before it is waded through once.
            select coalesce(array_agg(l.kind), '{}'), coalesce(array_agg(l.class), '{}'), array_agg(due.at), array_agg(due.id)
            into v_lane_kind, v_lane_class, v_floor_at, v_floor_key
            from (select k.kind, c.class
                  from unnest(v_kinds) as k (kind) cross join generate_series(0, 0) as c (class)) as l
            -- Not `exists`: the planner would turn that into a join over every due row.
            cross join lateral (
                select q.due_at as at, q.id as id
                from public.scheduled_actions as q
                where true and q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.action_type = l.kind
                  and q.due_at <= v_by
                  and (q.due_at, q.id) >= (
                      coalesce((v_floor #>> array[l.class::text || ':' || l.kind, '0'])::timestamptz, '-infinity'),
                      coalesce((v_floor #>> array[l.class::text || ':' || l.kind, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                order by q.due_at, q.id
                limit 1
            ) as due;
            if cardinality(v_lane_class) > 0 then
                v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                if cardinality(v_lane_class) > 1 and v_left > 1 then
                    -- How many rows of each lane the batch will hold, so that no more are locked than are taken.
                    with head as (
                        select l.lane
                        from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key) with ordinality as l (kind, class, floor_at, floor_key, lane)
                        cross join lateral (
                            select q.due_at as at, q.id as id
                            from public.scheduled_actions as q
                            where true and q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.action_type = l.kind
                              and q.due_at <= v_by and (q.due_at, q.id) >= (l.floor_at, l.floor_key)
                              and q.id <> all (v_passed)
                            order by q.due_at, q.id
                            limit v_left
                        ) as p
                        order by p.at + l.class * interval '0', p.id
                        limit v_left
                    )
                    select array(select (select count(*)::integer from head where head.lane = i)
                                 from generate_subscripts(v_lane_class, 1) as i order by i)
                    into v_take;
                end if;
                loop
                    if cardinality(v_lane_class) = 1 then
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'), coalesce(array_agg(p.at), '{}')
                        into v_keys, v_odd, v_at
                        from (
                                select q.id as id, q.due_at as at,
                                       (q.status in ('processing') or q.lost > 0) as odd
                                from public.scheduled_actions as q
                                where true and q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) = (hashtextextended(v_lane_kind[1] collate "C", 0) & -16) and q.action_type = v_lane_kind[1]
                                  and q.due_at <= v_by and (q.due_at, q.id) >= (v_floor_at[1], v_floor_key[1])
                                  and q.id <> all (v_passed)
                                order by q.due_at, q.id
                                limit v_left
                                for no key update skip locked
                        ) as p;
                        v_lane := '{}';
                    else
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'),
                               coalesce(array_agg(p.at), '{}'), coalesce(array_agg(p.lane), '{}')
                        into v_keys, v_odd, v_at, v_lane
                        from (
                            select p.id, p.odd, p.at, l.lane::integer as lane,
                                   p.at + l.class * interval '0' as rank
                            from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key, v_take) with ordinality as l (kind, class, floor_at, floor_key, take, lane)
                            cross join lateral (
                                select q.id as id, q.due_at as at,
                                       (q.status in ('processing') or q.lost > 0) as odd
                                from public.scheduled_actions as q
                                where true and q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.action_type = l.kind
                                  and q.due_at <= v_by and (q.due_at, q.id) >= (l.floor_at, l.floor_key)
                                  and q.id <> all (v_passed)
                                order by q.due_at, q.id
                                limit l.take
                                for no key update skip locked
                            ) as p
                            order by rank, p.id
                            limit v_left
                        ) as p;
                    end if;
                    -- What was counted may be locked by now, and then the other lanes are due: a claim that can find work does.
                    exit when cardinality(v_keys) > 0 or v_left <= all (v_take);
                    v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                end loop;
            else
                v_keys := '{}'; v_odd := '{}'; v_at := '{}'; v_lane := '{}';
            end if;

                -- Dead index entries at the head of the line make a look from the start slow: a few after every large
                -- batch, millions while a forgotten transaction pins them. The next claims of this session then begin
                -- where this one ended, for a moment, or until twenty times the slow look has passed. What the rows of the
                -- batch cost themselves is no slowness, or a batch of thousands would hide latecomers for seconds.
                v_count := cardinality(v_at);
                v_slow := clock_timestamp() - v_begun - v_count * interval '5 microseconds';
                if v_count > 0 and (v_floor is not null or v_count >= 64 and v_count = v_left
                                    or v_slow > interval '3 milliseconds') then
                    v_floor := coalesce(v_floor, '{}') || case
                        when cardinality(v_lane_class) = 1
                        then jsonb_build_object(v_lane_class[1]::text || ':' || v_lane_kind[1], jsonb_build_array(v_at[v_count], v_keys[v_count]))
                        else (select jsonb_object_agg(v_lane_class[f.lane]::text || ':' || v_lane_kind[f.lane], jsonb_build_array(f.at, f.id))
                              from (select distinct on (u.lane) u.lane, u.at, u.id
                                    from unnest(v_lane, v_at, v_keys) as u (lane, at, id)
                                    order by u.lane, u.at desc, u.id desc) as f) end;
                    v_floors := jsonb_set(v_floors, array[v_place], jsonb_build_object(
                        'until', case when v_floored then (v_floors #>> array[v_place, 'until'])::double precision
                                      else extract(epoch from v_now + greatest(20 * v_slow, interval '100 milliseconds')) end,
                        'kinds', case when p_kinds is null then to_jsonb(v_kinds) end, 'kinds_until', v_kinds_until,
                        'lanes', v_floor));
                    perform set_config('gleaner.floor_followups', v_floors::text, false);
                end if;
                exit fill when cardinality(v_keys) = 0;

                v_fine := v_keys;
                v_buried := 0;
                if true = any (v_odd) then
                    v_fine := '{}';
                    for v_i in 1 .. cardinality(v_keys) loop
                        if not v_odd[v_i] then
                            v_fine := v_fine || v_keys[v_i];
                            continue;
                        end if;
                        select q.* into v_row from public.scheduled_actions as q where q.id = v_keys[v_i];
                        v_lost := v_row.lost + case when v_row.status in ('processing') and v_row.started >= 1 then 1 else 0 end;
                        v_reason := case when v_row.status in ('processing') and v_row.started = 2 then 'outcome unknown: the lease ran out after the work had begun' when v_lost >= 3 then format('lost %s leases', v_lost) end;
                        if v_reason is not null then
                            begin
                                perform gleaner.rest_followups(v_row, v_reason, case when v_row.started = 2 then 'OutcomeUnknown' else 'Poison' end, v_row.attempts, v_lost);
                                v_reason := case when exists (select from public.scheduled_actions as q where q.id = v_keys[v_i] and q.status in ('pending', 'processing', 'failed') and q.due_at is not null)
                                                 then 'a trigger swallowed the burial' end;
                            exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                                v_reason := sqlerrm;
                            end;
                            if v_reason is not null then
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || v_keys[v_i];
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('followups', v_keys[v_i]::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
                            end if;
                            v_buried := v_buried + 1;
                        elsif v_total = 0 and cardinality(v_fine) = 0 then
                            -- A row that lost a lease travels alone: if it brings its agent down, no other row suffers.
                            v_fine := array[v_keys[v_i]];
                            v_alone := true;
                            exit;
                        else
                            v_passed := v_passed || v_keys[v_i];
                            v_stepped := true;
                        end if;
                    end loop;
                end if;

                if cardinality(v_fine) > 0 then
                    v_count := -1;
                    if v_plain then
                        return query
                update public.scheduled_actions as q
                set status = 'processing',
                    due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '15 minutes'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '15 minutes',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.status in ('processing') and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session,
                    started_processing_at = v_now
                from unnest(v_fine) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id])
                        returning q.*;
                        v_count := cardinality(v_fine);
                    else
                        begin
                update public.scheduled_actions as q
                set status = 'processing',
                    due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '15 minutes'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '15 minutes',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.status in ('processing') and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session,
                    started_processing_at = v_now
                from unnest(v_fine) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id]);
                            get diagnostics v_count = row_count;
                        exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                        end;
                    end if;
                    if v_count < cardinality(v_fine) then
                        -- Some row refused: a check that does not hold, a trigger that raised or swallowed the change.
                        -- One by one, so that the others are worked, and the offender is noted.
                        v_keys := v_fine;
                        v_fine := '{}';
                        v_buried := 1;
                        for v_i in 1 .. cardinality(v_keys) loop
                            if v_count > 0 and exists (select from public.scheduled_actions as q where q.id = v_keys[v_i] and q.lease >= v_lease and q.agent is not distinct from p_agent) then
                                v_fine := v_fine || v_keys[v_i];
                                continue;
                            end if;
                            v_reason := 'a trigger swallowed the claim';
                            begin
                update public.scheduled_actions as q
                set status = 'processing',
                    due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '15 minutes'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '15 minutes',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.status in ('processing') and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session,
                    started_processing_at = v_now
                from unnest(v_keys[v_i : v_i]) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id]);
                                if found then
                                    v_reason := null;
                                end if;
                            exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                                v_reason := sqlerrm;
                            end;
                            if v_reason is null then
                                v_fine := v_fine || v_keys[v_i];
                            else
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || v_keys[v_i];
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('followups', v_keys[v_i]::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
                            end if;
                        end loop;
                        v_alone := v_alone and cardinality(v_fine) > 0;
                    end if;
                    if not v_plain then
                        -- Only now: what a statement has returned before it failed, in a trigger that runs after it, say,
                        -- cannot be taken back, and its reader would work on a row that nobody holds.
                        return query
                        select q.*
                        from unnest(v_fine) with ordinality as k (id, n)
                        join public.scheduled_actions as q on q.id = k.id
                        order by k.n;
                    end if;
                    v_taken := v_taken || v_fine;
                    v_total := v_total + cardinality(v_fine);
                    v_left := v_left - cardinality(v_fine);
                end if;
                -- Burying made room, and so did what travels alone: fill the batch up. Otherwise this probe has given what it has.
                exit fill when v_buried = 0 and not v_stepped;
                if v_buried = 0 and v_stepped then
                    -- A line of nothing but such rows is not read to its end; what the next classes have waits for the next claim.
                    v_rounds := v_rounds + 1;
                    exit passes when v_rounds >= 4;
                end if;
            end loop;
        end loop;
    end loop;

    if v_total = 0 and v_hidden then
        perform set_config('gleaner.floor_followups', '', false);
    end if;
    if p_request is not null and v_total > 0 then
        update gleaner.request as r
        set keys = v_taken::text[],
            leases = array(select q.lease
                           from unnest(v_taken) with ordinality as k (id, n)
                           left join public.scheduled_actions as q on q.id = k.id
                           order by k.n)
        where r.queue = 'followups' and r.id = p_request;
    end if;
end
$$;

ALTER FUNCTION gleaner.claim_followups(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval) OWNER TO gleaner_engine;

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

CREATE FUNCTION gleaner.claim_jobs(p_agent text, p_limit integer DEFAULT 1, p_kinds text[] DEFAULT NULL::text[], p_request uuid DEFAULT NULL::uuid, p_started boolean DEFAULT false, p_hold interval DEFAULT NULL::interval, p_early interval DEFAULT '00:00:00'::interval) RETURNS SETOF gleaner.jobs
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now        timestamptz := clock_timestamp();
    v_by         timestamptz := v_now + p_early;
    v_lease      bigint      := (extract(epoch from v_now) * 1000000)::bigint;
    v_session    text        := gleaner.caller_session();
    v_trusted    boolean     := p_request is not null and gleaner.is_trusted();
    v_left       integer     := least(p_limit, 10000);
    v_total      integer     := 0;
    v_class      text;
    v_keys       bigint[];
    v_odd        boolean[];
    v_at         timestamptz[];
    v_lane       integer[];
    v_fine       bigint[];
    v_passed     bigint[];
    v_taken      bigint[] := '{}';
    v_buried     integer;
    v_count      integer;
    v_alone      boolean := false;
    v_stepped    boolean;
    v_rounds     integer;
    v_lane_kind  text[];
    v_lane_class integer[];
    v_take       integer[];
    v_floor_at   timestamptz[];
    v_floor_key  bigint[];
    v_floors     jsonb := coalesce(nullif(current_setting('gleaner.floor_jobs', true), '')::jsonb, '{}');
    v_floor      jsonb;
    v_floored    boolean;
    v_kinds_until double precision;
    v_place      text;
    v_hidden     boolean := false;
    v_begun      timestamptz;
    v_slow       interval;
    v_row        gleaner.jobs;
    v_reason     text;
    v_refusals   integer := 0;
    -- Nothing can refuse: rows are returned as they change. Otherwise each refusal is looked at.
    v_plain      boolean;
    v_lost       integer;
    v_sheaves    int8multirange;
    v_bound      int8multirange;
    v_stalks     bigint[];
    v_others     bigint[];
    v_fresh      integer[];
    -- Where the locked rows lie: they cannot move. Null when the other arrays no longer speak of the same rows.
    v_tids       tid[];
    v_lapsed     boolean;
    v_dropped    integer;
    v_looks      integer := 0;
    v_sheaf      bigint;
    v_first      bigint;
    v_last       bigint;
    v_piece      boolean;
    v_due        timestamptz := v_now + least(coalesce(p_hold, interval '5 minutes'), interval '1 hour');
    v_deadline   timestamptz := v_now + interval '1 hour';
    v_swath      gleaner.swath;
    v_locked     gleaner.swath;
    v_swath_floor jsonb;
    v_picked     interval;
    v_lying      text[];
    v_elsewhere  bigint[] := '{}';
    -- Where the swath of this claim stands in the line: what is looked for row by row comes before it.
    v_before_at  timestamptz;
    v_before_key bigint;
    v_oldest     xid8 := coalesce(nullif(current_setting('gleaner.sheaf_jobs', true), ''), '0')::xid8;
    v_binds      boolean := p_limit >= 64 and array['id', 'due_at', 'created_at', 'lease', 'deadline_at', 'finished_at', 'attempts', 'lost', 'started', 'priority', 'status', 'kind', 'unique_key', 'agent', 'session', 'payload', 'progress', 'result', 'error'] = array(
        select a.attname::text from pg_attribute as a
        where a.attrelid = 'gleaner.jobs'::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum);
    v_kinds      text[] := p_kinds::text[];
    v_classes    text[] := '{global}';
begin
    perform gleaner.require_read_committed();
    if p_agent = '' then
        raise exception 'the agent id is empty' using errcode = 'GL002',
            hint = 'Pass a text that is new at each process start, or null to be known by your sign-in alone and end the work by plain updates.';
    end if;
    -- A worker's key may be for some queues and kinds alone. Direct logins have no key, and pay nothing for the question.
    if current_setting('request.jwt.claims', true) <> '' then
        p_kinds := gleaner.scoped_kinds('jobs', p_kinds);
        v_kinds := p_kinds::text[];
    end if;

    if p_request is not null then
        insert into gleaner.request (queue, id, at) values ('jobs', p_request, v_now) on conflict do nothing;
        if not found then
            -- One that was given nothing yet looks again: a claim that waits does. The lock lets the second of two at once see
            -- what the first was given.
            perform from gleaner.request as r
            where r.queue = 'jobs' and r.id = p_request and r.keys = '{}'
            for update;
        end if;
        if not found then
            if array['id', 'due_at', 'created_at', 'lease', 'deadline_at', 'finished_at', 'attempts', 'lost', 'started', 'priority', 'status', 'kind', 'unique_key', 'agent', 'session', 'payload', 'progress', 'result', 'error'] = array(
        select a.attname::text from pg_attribute as a
        where a.attrelid = 'gleaner.jobs'::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum) then
                return query
                select q.id, case when q.lease in (0, -1) then (s.due_at)::timestamp with time zone else q.due_at end, q.created_at, case when q.lease in (0, -1) then (-s.id)::bigint else q.lease end, case when q.lease in (0, -1) then (s.deadline_at)::timestamp with time zone else q.deadline_at end, q.finished_at, q.attempts, q.lost, case when q.lease in (0, -1) then (case when s.begun @> q.id then 1 else 0 end)::smallint else q.started end, q.priority, case when q.lease in (0, -1) then ('running')::text else q.status end, q.kind, q.unique_key, case when q.lease in (0, -1) then (s.agent)::text else q.agent end, case when q.lease in (0, -1) then (s.session)::text else q.session end, q.payload, q.progress, q.result, q.error
                from gleaner.request as r
                cross join lateral unnest(r.keys, r.leases) with ordinality as k (id, lease, n)
                join gleaner.jobs as q on q.id = k.id::bigint
                left join gleaner.sheaf as s on s.id = -k.lease and s.queue = 'jobs' and s.keys @> k.id::bigint
                -- Whoever knows another's request is not given its rows.
                where r.queue = 'jobs' and r.id = p_request
                  and (q.lease = k.lease and q.status in ('running') and (v_trusted or q.session = v_session)
                       or s.id is not null and q.lease in (0, -1) and q.status = 'ready' and (v_trusted or s.session = v_session))
                order by k.n;
                return;
            end if;
            return query
            select q.*
            from gleaner.request as r
            cross join lateral unnest(r.keys, r.leases) with ordinality as k (id, lease, n)
            join gleaner.jobs as q on q.id = k.id::bigint
            -- Whoever knows another's request is not given its rows.
            where r.queue = 'jobs' and r.id = p_request
              and (q.lease = k.lease and q.status in ('running') and (v_trusted or q.session = v_session))
            order by k.n;
            return;
        end if;
    end if;
    select coalesce(range_agg(s.keys), '{}'), coalesce(bool_or(s.due_at <= v_now), false),
           least(min(s.xid), pg_snapshot_xmin(pg_current_snapshot()))
    into v_sheaves, v_lapsed, v_oldest
    from gleaner.sheaf as s where s.queue = 'jobs' and s.xid >= v_oldest;
    if v_lapsed then
        -- The lease of a sheaf that ran out becomes its rows' own, and those are found below as any other's.
        for v_sheaf in
            select s.id from gleaner.sheaf as s where s.queue = 'jobs' and s.due_at <= v_now order by s.id for update skip locked
        loop
            perform gleaner.loosen_jobs(null, v_sheaf);
        end loop;
        v_sheaf := null;
        select coalesce(range_agg(s.keys), '{}'), coalesce(bool_or(s.due_at <= v_now), false),
               least(min(s.xid), pg_snapshot_xmin(pg_current_snapshot()))
        into v_sheaves, v_lapsed, v_oldest
        from gleaner.sheaf as s where s.queue = 'jobs' and s.xid >= v_oldest;
    end if;
    perform set_config('gleaner.sheaf_jobs', v_oldest::text, false);

    -- Rows that refused a change a moment ago are stepped over for a while.
    v_passed := array(select o.key::bigint from gleaner.offender as o where o.queue = 'jobs' and o.until > v_now);

    <<passes>>
    for v_pass in 1 .. 2 loop
        -- Second pass: nothing was found, but a floor hid part of the line. A floor never reports "empty".
        if v_pass = 2 then
            exit when v_total > 0 or not v_hidden;
            v_floors := '{}';
        end if;

        <<classes>>
        foreach v_class in array v_classes loop

            v_rounds := 0;
            <<fill>>
            loop
                exit passes when v_left <= 0 or v_alone or v_refusals >= 100;
                v_stepped := false;
                v_begun := clock_timestamp();
                v_swath_floor := case when (v_floors #>> '{swaths,until}')::double precision > extract(epoch from v_begun) then v_floors -> 'swaths' end;
                v_hidden := v_hidden or v_swath_floor is not null;
                -- A kind nobody has seen waits a moment longer while others keep the session busy.
                v_lying := case when p_kinds is not null then p_kinds
                    when jsonb_typeof(v_swath_floor -> 'kinds') = 'array' then array(select jsonb_array_elements_text(v_swath_floor -> 'kinds'))
                    else array(
                    with recursive kinds as (
                        (select s.kind from gleaner.swath as s where s.queue = 'jobs' order by s.kind limit 1)
                        union all
                        select next.kind
                        from kinds
                        cross join lateral (
                            select s.kind from gleaner.swath as s where s.queue = 'jobs' and s.kind > kinds.kind order by s.kind limit 1
                        ) as next
                    )
                    select k.kind from kinds as k) end;
                select s.* into v_swath
                from unnest(v_lying) as k (kind)
                cross join generate_series(0, 3) as c (class)
                cross join lateral (
                    select s.*
                    from gleaner.swath as s
                    where s.queue = 'jobs' and s.kind = k.kind and s.class = c.class and s.due_at <= v_by
                      and (s.due_at, s.first) >= (coalesce((v_swath_floor #>> array['lanes', c.class::text || ':' || k.kind, '0'])::timestamptz, '-infinity'),
                                                  coalesce((v_swath_floor #>> array['lanes', c.class::text || ':' || k.kind, '1'])::bigint, (-9223372036854775808)::bigint))
                      and s.first <> all (v_elsewhere)
                    order by s.due_at, s.first
                    limit 1
                ) as s
                order by s.due_at + s.class * interval '10 minutes', s.first
                limit 1;
                v_before_at := coalesce(v_swath.due_at + v_swath.class * interval '10 minutes', 'infinity');
                v_before_key := coalesce(v_swath.first, 9223372036854775807);
                v_picked := clock_timestamp() - v_begun;
                v_begun := clock_timestamp();
                v_place := v_class;
                v_floor := case when (v_floors #>> array[v_place, 'until'])::double precision > extract(epoch from v_begun)
                                then v_floors #> array[v_place, 'lanes'] end;
                v_floored := v_floor is not null;
                v_hidden := v_hidden or v_floored;
            -- A kind nobody has seen waits a moment longer while others keep the session busy: see below for floors.
            if p_kinds is null and (v_floors #>> array[v_place, 'kinds_until'])::double precision > extract(epoch from v_begun) then
                v_hidden := true;
                v_kinds := array(select jsonb_array_elements_text(v_floors #> array[v_place, 'kinds']))::text[];
                v_kinds_until := (v_floors #>> array[v_place, 'kinds_until'])::double precision;
            elsif p_kinds is null then
                v_kinds := array(
                    with recursive kinds as (
                        (select ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) as lane, q.kind as kind from gleaner.jobs as q
                         where true and q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null order by ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) limit 1)
                        union all
                        select next.lane, next.kind
                        from kinds
                        cross join lateral (
                            select ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) as lane, q.kind as kind from gleaner.jobs as q
                            where true and q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) > (kinds.lane | 15)
                            order by ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) limit 1
                        ) as next
                    )
                    select k.kind from kinds as k);
                v_kinds_until := extract(epoch from v_begun + greatest(20 * (clock_timestamp() - v_begun), interval '1 second'));
            end if;
            -- Only lanes with a due row go on, and begin there: what is dead before it is waded through once.
            select coalesce(array_agg(l.kind), '{}'), coalesce(array_agg(l.class), '{}'), array_agg(due.at), array_agg(due.id)
            into v_lane_kind, v_lane_class, v_floor_at, v_floor_key
            from (select k.kind, c.class
                  from unnest(v_kinds) as k (kind) cross join generate_series(0, 3) as c (class)) as l
            -- Not `exists`: the planner would turn that into a join over every due row.
            cross join lateral (
                select q.due_at as at, q.id as id
                from gleaner.jobs as q
                where true and q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) = ((hashtextextended(l.kind collate "C", 0) & -16) + l.class) and q.kind = l.kind and (q.lease <> 0 or not v_sheaves @> q.id)
                  and q.due_at <= v_by and (q.due_at, q.id) < (v_before_at - l.class * interval '10 minutes', v_before_key)
                  and (q.due_at, q.id) >= (
                      coalesce((v_floor #>> array[l.class::text || ':' || l.kind, '0'])::timestamptz, '-infinity'),
                      coalesce((v_floor #>> array[l.class::text || ':' || l.kind, '1'])::bigint, (-9223372036854775808)::bigint))
                order by q.due_at, q.id
                limit 1
            ) as due;
            if cardinality(v_lane_class) > 0 then
                v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                if cardinality(v_lane_class) > 1 and v_left > 1 then
                    -- How many rows of each lane the batch will hold, so that no more are locked than are taken.
                    with head as (
                        select l.lane
                        from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key) with ordinality as l (kind, class, floor_at, floor_key, lane)
                        cross join lateral (
                            select q.due_at as at, q.id as id
                            from gleaner.jobs as q
                            where true and q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) = ((hashtextextended(l.kind collate "C", 0) & -16) + l.class) and q.kind = l.kind
                              and q.due_at <= v_by and (q.due_at, q.id) < (v_before_at - l.class * interval '10 minutes', v_before_key) and (q.due_at, q.id) >= (l.floor_at, l.floor_key)
                              and q.id <> all (v_passed) and (q.lease <> 0 or not v_sheaves @> q.id)
                            order by q.due_at, q.id
                            limit v_left
                        ) as p
                        order by p.at + l.class * interval '10 minutes', p.id
                        limit v_left
                    )
                    select array(select (select count(*)::integer from head where head.lane = i)
                                 from generate_subscripts(v_lane_class, 1) as i order by i)
                    into v_take;
                end if;
                loop
                    if cardinality(v_lane_class) = 1 then
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'), coalesce(array_agg(p.at), '{}'), coalesce(array_agg(p.fresh), '{}'), array_agg(p.tid)
                        into v_keys, v_odd, v_at, v_fresh, v_tids
                        from (
                                select q.id as id, q.due_at as at,
                                       (q.status in ('running') or q.lost > 0) as odd,
                                       -- 1: never touched, 2: and fit for a sheaf. A row with a unique key is not: the key is free again while it is worked.
                                       case when q.lease <> 0 then 0 when q.unique_key is not null then 1 when q.status = 'ready' then 2 else 1 end as fresh,
                                       q.ctid as tid
                                from gleaner.jobs as q
                                where true and q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) = ((hashtextextended(v_lane_kind[1] collate "C", 0) & -16) + v_lane_class[1]) and q.kind = v_lane_kind[1]
                                  and q.due_at <= v_by and (q.due_at, q.id) < (v_before_at - v_lane_class[1] * interval '10 minutes', v_before_key) and (q.due_at, q.id) >= (v_floor_at[1], v_floor_key[1])
                                  and q.id <> all (v_passed) and (q.lease <> 0 or not v_sheaves @> q.id)
                                order by q.due_at, q.id
                                limit v_left
                                for no key update skip locked
                        ) as p;
                        v_lane := '{}';
                    else
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'),
                               coalesce(array_agg(p.at), '{}'), coalesce(array_agg(p.lane), '{}'), coalesce(array_agg(p.fresh), '{}'), array_agg(p.tid)
                        into v_keys, v_odd, v_at, v_lane, v_fresh, v_tids
                        from (
                            select p.id, p.odd, p.at, l.lane::integer as lane, p.fresh, p.tid,
                                   p.at + l.class * interval '10 minutes' as rank
                            from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key, v_take) with ordinality as l (kind, class, floor_at, floor_key, take, lane)
                            cross join lateral (
                                select q.id as id, q.due_at as at,
                                       (q.status in ('running') or q.lost > 0) as odd,
                                       -- 1: never touched, 2: and fit for a sheaf. A row with a unique key is not: the key is free again while it is worked.
                                       case when q.lease <> 0 then 0 when q.unique_key is not null then 1 when q.status = 'ready' then 2 else 1 end as fresh,
                                       q.ctid as tid
                                from gleaner.jobs as q
                                where true and q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) = ((hashtextextended(l.kind collate "C", 0) & -16) + l.class) and q.kind = l.kind
                                  and q.due_at <= v_by and (q.due_at, q.id) < (v_before_at - l.class * interval '10 minutes', v_before_key) and (q.due_at, q.id) >= (l.floor_at, l.floor_key)
                                  and q.id <> all (v_passed) and (q.lease <> 0 or not v_sheaves @> q.id)
                                order by q.due_at, q.id
                                limit l.take
                                for no key update skip locked
                            ) as p
                            order by rank, p.id
                            limit v_left
                        ) as p;
                    end if;
                    v_dropped := 0;
                    if cardinality(v_keys) > 0 then
                        -- Somebody may have bound a sheaf and committed between the look and the lock. What is locked now cannot be
                        -- bound by others any more, so a second look is the last word.
                        select coalesce(range_agg(s.keys), '{}'), coalesce(bool_or(s.due_at <= v_now), false),
                               least(min(s.xid), pg_snapshot_xmin(pg_current_snapshot()))
                        into v_bound, v_lapsed, v_oldest
                        from gleaner.sheaf as s where s.queue = 'jobs' and s.xid >= v_oldest;
                        if not v_sheaves @> v_bound then
                            v_dropped := cardinality(v_keys);
                            select coalesce(array_agg(v_keys[s] order by s), '{}'), coalesce(array_agg(v_odd[s] order by s), '{}'),
                                   coalesce(array_agg(v_at[s] order by s), '{}'), coalesce(array_agg(v_lane[s] order by s), '{}'),
                                   coalesce(array_agg(v_fresh[s] order by s), '{}')
                            into v_keys, v_odd, v_at, v_lane, v_fresh
                            from generate_subscripts(v_keys, 1) as s
                            where v_fresh[s] = 0 or not v_bound @> v_keys[s];
                            v_dropped := v_dropped - cardinality(v_keys);
                            v_tids := null;
                        end if;
                        v_sheaves := v_bound;
                        if v_dropped > 0 and cardinality(v_keys) = 0 and v_looks < 10 then
                            v_looks := v_looks + 1;
                            continue;
                        end if;
                    end if;
                    -- What was counted may be locked by now, and then the other lanes are due: a claim that can find work does.
                    exit when cardinality(v_keys) > 0 or v_left <= all (v_take);
                    v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                end loop;
            else
                v_keys := '{}'; v_odd := '{}'; v_at := '{}'; v_lane := '{}';
            end if;

                -- Dead index entries at the head of the line make a look from the start slow: a few after every large
                -- batch, millions while a forgotten transaction pins them. The next claims of this session then begin
                -- where this one ended, for a moment, or until twenty times the slow look has passed. What the rows of the
                -- batch cost themselves is no slowness, or a batch of thousands would hide latecomers for seconds.
                v_count := cardinality(v_at);
                v_slow := clock_timestamp() - v_begun - v_count * interval '5 microseconds';
                if (v_count > 0 or v_swath.first is not null) and (v_floor is not null or v_count >= 64 and v_count = v_left
                                    or v_slow > interval '3 milliseconds') then
                    v_floor := coalesce(v_floor, '{}') || case
                        -- Nothing stands before the swath, and nobody need wade through what is dead there once more.
                        when v_count = 0 then (
                            select coalesce(jsonb_object_agg(c.class::text || ':' || k.kind, jsonb_build_array(
                                       least(v_by, v_before_at - c.class * interval '10 minutes'), (-9223372036854775808)::bigint)), '{}')
                            from unnest(v_kinds) as k (kind) cross join generate_series(0, 3) as c (class))
                        when cardinality(v_lane_class) = 1
                        then jsonb_build_object(v_lane_class[1]::text || ':' || v_lane_kind[1], jsonb_build_array(v_at[v_count], v_keys[v_count]))
                        else (select jsonb_object_agg(v_lane_class[f.lane]::text || ':' || v_lane_kind[f.lane], jsonb_build_array(f.at, f.id))
                              from (select distinct on (u.lane) u.lane, u.at, u.id
                                    from unnest(v_lane, v_at, v_keys) as u (lane, at, id)
                                    order by u.lane, u.at desc, u.id desc) as f) end;
                    v_floors := jsonb_set(v_floors, array[v_place], jsonb_build_object(
                        'until', case when v_floored then (v_floors #>> array[v_place, 'until'])::double precision
                                      else extract(epoch from v_now + greatest(case when v_swath.first is null then 20 else 40 end * v_slow, interval '100 milliseconds')) end,
                        'kinds', case when p_kinds is null then to_jsonb(v_kinds) end, 'kinds_until', v_kinds_until,
                        'lanes', v_floor));
                    perform set_config('gleaner.floor_jobs', v_floors::text, false);
                end if;
                if cardinality(v_keys) = 0 and v_swath.first is not null then
                    -- Locked only now, when it is its turn: a claim that stopped before it does not stand in its way.
                    select s.* into v_locked from gleaner.swath as s where s.queue = 'jobs' and s.kind = v_swath.kind and s.class = v_swath.class and s.due_at = v_swath.due_at and s.first = v_swath.first for update skip locked;
                    if not found then
                        -- Somebody is at it, or has taken its head: then what is left has another first key.
                        v_elsewhere := v_elsewhere || v_swath.first;
                        continue fill;
                    end if;
                    -- As it is now: all but its first key may have been spread between the look and the lock.
                    v_swath := v_locked;
                    if not v_binds then
                        v_elsewhere := v_elsewhere || gleaner.spread_jobs(v_swath, v_swath.first + 127);
                        -- What was spread stands now where a floor says that nothing stands.
                        v_floors := v_floors - v_place;
                        perform set_config('gleaner.floor_jobs', v_floors::text, false);
                        continue fill;
                    end if;
                    -- Nobody else comes to rows that lie in a swath but those who end them, so its lock is theirs.
                    v_first := v_swath.first;
                    v_last := least(v_swath.last, v_first + v_left - 1);
                    v_bound := int8multirange(int8range(v_first, v_last, '[]'));
                    if v_last = v_swath.last then
                        delete from gleaner.swath as s where s.queue = 'jobs' and s.kind = v_swath.kind and s.class = v_swath.class and s.due_at = v_swath.due_at and s.first = v_swath.first;
                    else
                        update gleaner.swath as s set first = v_last + 1 where s.queue = 'jobs' and s.kind = v_swath.kind and s.class = v_swath.class and s.due_at = v_swath.due_at and s.first = v_swath.first;
                    end if;
                    if v_sheaf is null then
                        insert into gleaner.sheaf (queue, keys, begun, agent, session, due_at, deadline_at)
                        values ('jobs', v_bound, case when p_started then v_bound else '{}' end, p_agent, v_session, v_due, v_deadline)
                        returning sheaf.id into v_sheaf;
                    else
                        update gleaner.sheaf as s
                        set keys = s.keys + v_bound, begun = case when p_started then s.begun + v_bound else s.begun end
                        where s.id = v_sheaf;
                    end if;
                    v_sheaves := v_sheaves + v_bound;
                    return query
                    select q.id, (v_due)::timestamp with time zone, q.created_at, (-v_sheaf)::bigint, (v_deadline)::timestamp with time zone, q.finished_at, q.attempts, q.lost, (case when p_started then 1 else 0 end)::smallint, q.priority, ('running')::text, q.kind, q.unique_key, (p_agent)::text, (v_session)::text, q.payload, q.progress, q.result, q.error
                    from gleaner.jobs as q
                    where q.id between v_first and v_last and q.lease = -1 and q.status = 'ready'
                    order by q.id;
                    get diagnostics v_count = row_count;
                    if p_request is not null or v_count <= v_last - v_first then
                        v_fine := array(
                            select q.id
                            from gleaner.jobs as q
                            where q.id between v_first and v_last and q.lease = -1 and q.status = 'ready'
                            order by q.id);
                        v_taken := v_taken || v_fine;
                        -- What was cancelled or deleted while it lay there is nothing to hold.
                        v_bound := v_bound - (select coalesce(range_agg(int8range(i, i, '[]')), '{}') from unnest(v_fine) as i);
                        update gleaner.sheaf as s set keys = s.keys - v_bound, begun = s.begun - v_bound where s.id = v_sheaf and s.keys && v_bound;
                        delete from gleaner.sheaf as s where s.id = v_sheaf and isempty(s.keys);
                        if found then
                            v_sheaf := null;
                        end if;
                    end if;
                    v_total := v_total + v_count;
                    v_left := v_left - v_count;
                    -- As with rows: while a forgotten transaction pins them, the swaths that were taken pile up at the head. Looks at both
                    -- from the start are to take a twentieth of the time together.
                    v_floors := jsonb_set(v_floors, '{swaths}', jsonb_build_object(
                        'until', coalesce((v_swath_floor ->> 'until')::double precision, extract(epoch from v_now + greatest(40 * v_picked, interval '100 milliseconds'))),
                        'kinds', case when p_kinds is null then to_jsonb(v_lying) end,
                        'lanes', coalesce(v_swath_floor -> 'lanes', '{}') || jsonb_build_object(v_swath.class || ':' || v_swath.kind, jsonb_build_array(v_swath.due_at, v_last + 1))));
                    perform set_config('gleaner.floor_jobs', v_floors::text, false);
                    continue fill;
                end if;
                exit fill when cardinality(v_keys) = 0;

                v_fine := v_keys;
                v_buried := 0;
                if true = any (v_odd) then
                    v_fine := '{}';
                    for v_i in 1 .. cardinality(v_keys) loop
                        if not v_odd[v_i] then
                            v_fine := v_fine || v_keys[v_i];
                            continue;
                        end if;
                        select q.* into v_row from gleaner.jobs as q where q.id = v_keys[v_i];
                        v_lost := v_row.lost + case when v_row.status in ('running') and v_row.started >= 1 then 1 else 0 end;
                        v_reason := case when v_lost >= 3 then format('lost %s leases', v_lost) end;
                        if v_reason is not null then
                            begin
                                perform gleaner.rest_jobs(v_row, v_reason, 'Poison', v_row.attempts, v_lost);
                                v_reason := case when exists (select from gleaner.jobs as q where q.id = v_keys[v_i] and q.status in ('ready', 'running', 'failed') and q.due_at is not null)
                                                 then 'a trigger swallowed the burial' end;
                            exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                                v_reason := sqlerrm;
                            end;
                            if v_reason is not null then
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || v_keys[v_i];
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('jobs', v_keys[v_i]::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
                            end if;
                            v_buried := v_buried + 1;
                        elsif v_total = 0 and cardinality(v_fine) = 0 then
                            -- A row that lost a lease travels alone: if it brings its agent down, no other row suffers.
                            v_fine := array[v_keys[v_i]];
                            v_alone := true;
                            exit;
                        else
                            v_passed := v_passed || v_keys[v_i];
                            v_stepped := true;
                        end if;
                    end loop;
                end if;

                v_stalks := '{}';
                if v_binds and not v_alone and cardinality(v_keys) >= 64 then
                    if 2 = all (v_fresh) and cardinality(v_fine) = cardinality(v_keys) then
                        v_stalks := v_keys;
                    else
                        v_tids := null;
                        v_plain := coalesce(v_plain, gleaner.is_plain('gleaner.jobs', array['due_at', 'lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'status'], 'status'));
                        if v_plain then
                            v_stalks := array(select v_keys[s] from generate_subscripts(v_keys, 1) as s where v_fresh[s] = 2 order by s);
                        end if;
                    end if;
                end if;
                if cardinality(v_stalks) >= 64 then
                    -- They mostly follow each other as they were numbered, and then are one piece of the key.
                    v_first := v_stalks[1];
                    v_last := v_first + cardinality(v_stalks) - 1;
                    v_piece := v_stalks[cardinality(v_stalks)] = v_last
                        -- Of one due time they come by key, and then the ends tell; otherwise each is looked at.
                        and (cardinality(v_lane_class) = 1 and v_at[1] = v_at[cardinality(v_at)] or v_stalks = array(select generate_series(v_first, v_last)));
                    v_bound := case when v_piece then int8multirange(int8range(v_first, v_last, '[]'))
                                    else (select range_agg(int8range(i, i, '[]')) from unnest(v_stalks) as i) end;
                    if v_sheaf is null then
                        insert into gleaner.sheaf (queue, keys, begun, agent, session, due_at, deadline_at)
                        values ('jobs', v_bound, case when p_started then v_bound else '{}' end, p_agent, v_session, v_due, v_deadline)
                        returning sheaf.id into v_sheaf;
                    else
                        update gleaner.sheaf as s
                        set keys = s.keys + v_bound, begun = case when p_started then s.begun + v_bound else s.begun end
                        where s.id = v_sheaf;
                    end if;
                    v_sheaves := v_sheaves + v_bound;
                    if v_piece and cardinality(v_stalks) = cardinality(v_fine) then
                        return query
                        select q.id, (v_due)::timestamp with time zone, q.created_at, (-v_sheaf)::bigint, (v_deadline)::timestamp with time zone, q.finished_at, q.attempts, q.lost, (case when p_started then 1 else 0 end)::smallint, q.priority, ('running')::text, q.kind, q.unique_key, (p_agent)::text, (v_session)::text, q.payload, q.progress, q.result, q.error
                        from gleaner.jobs as q
                        where q.id between v_first and v_last
                        order by q.id;
                    elsif v_tids is not null then
                        return query
                        select q.id, (v_due)::timestamp with time zone, q.created_at, (-v_sheaf)::bigint, (v_deadline)::timestamp with time zone, q.finished_at, q.attempts, q.lost, (case when p_started then 1 else 0 end)::smallint, q.priority, ('running')::text, q.kind, q.unique_key, (p_agent)::text, (v_session)::text, q.payload, q.progress, q.result, q.error
                        from unnest(v_tids) with ordinality as k (tid, n)
                        join gleaner.jobs as q on q.ctid = k.tid
                        order by k.n;
                    else
                        -- What has a past, or a unique key, is claimed row by row; all are given out in the order of the line.
                        v_others := array(select f from unnest(v_fine) as f where not v_bound @> f);
                update gleaner.jobs as q
                set status = 'running',
                    due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '1 hour'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '1 hour',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                    started = case when p_started then 1 else 0 end,
                    agent = p_agent,
                    session = v_session
                from unnest(v_others) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id]);
                        return query
                        select q.id, case when q.lease in (0, -1) then (v_due)::timestamp with time zone else q.due_at end, q.created_at, case when q.lease in (0, -1) then (-v_sheaf)::bigint else q.lease end, case when q.lease in (0, -1) then (v_deadline)::timestamp with time zone else q.deadline_at end, q.finished_at, q.attempts, q.lost, case when q.lease in (0, -1) then (case when p_started then 1 else 0 end)::smallint else q.started end, q.priority, case when q.lease in (0, -1) then ('running')::text else q.status end, q.kind, q.unique_key, case when q.lease in (0, -1) then (p_agent)::text else q.agent end, case when q.lease in (0, -1) then (v_session)::text else q.session end, q.payload, q.progress, q.result, q.error
                        from unnest(v_fine) with ordinality as k (id, n)
                        join gleaner.jobs as q on q.id = k.id
                        order by k.n;
                    end if;
                    v_taken := v_taken || v_fine;
                    v_total := v_total + cardinality(v_fine);
                    v_left := v_left - cardinality(v_fine);
                    v_fine := '{}';
                end if;

                if cardinality(v_fine) > 0 then
                    v_count := -1;
                    v_plain := coalesce(v_plain, gleaner.is_plain('gleaner.jobs', array['due_at', 'lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'status'], 'status'));
                    if v_plain then
                        return query
                update gleaner.jobs as q
                set status = 'running',
                    due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '1 hour'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '1 hour',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session
                from unnest(v_fine) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id])
                        returning q.*;
                        v_count := cardinality(v_fine);
                    else
                        begin
                update gleaner.jobs as q
                set status = 'running',
                    due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '1 hour'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '1 hour',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session
                from unnest(v_fine) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id]);
                            get diagnostics v_count = row_count;
                        exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                        end;
                    end if;
                    if v_count < cardinality(v_fine) then
                        -- Some row refused: a check that does not hold, a trigger that raised or swallowed the change.
                        -- One by one, so that the others are worked, and the offender is noted.
                        v_keys := v_fine;
                        v_fine := '{}';
                        v_buried := 1;
                        for v_i in 1 .. cardinality(v_keys) loop
                            if v_count > 0 and exists (select from gleaner.jobs as q where q.id = v_keys[v_i] and q.lease >= v_lease and q.agent is not distinct from p_agent) then
                                v_fine := v_fine || v_keys[v_i];
                                continue;
                            end if;
                            v_reason := 'a trigger swallowed the claim';
                            begin
                update gleaner.jobs as q
                set status = 'running',
                    due_at = v_now + least(coalesce(p_hold, interval '5 minutes'), interval '1 hour'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '1 hour',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session
                from unnest(v_keys[v_i : v_i]) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id]);
                                if found then
                                    v_reason := null;
                                end if;
                            exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                                v_reason := sqlerrm;
                            end;
                            if v_reason is null then
                                v_fine := v_fine || v_keys[v_i];
                            else
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || v_keys[v_i];
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('jobs', v_keys[v_i]::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
                            end if;
                        end loop;
                        v_alone := v_alone and cardinality(v_fine) > 0;
                    end if;
                    if not v_plain then
                        -- Only now: what a statement has returned before it failed, in a trigger that runs after it, say,
                        -- cannot be taken back, and its reader would work on a row that nobody holds.
                        return query
                        select q.*
                        from unnest(v_fine) with ordinality as k (id, n)
                        join gleaner.jobs as q on q.id = k.id
                        order by k.n;
                    end if;
                    v_taken := v_taken || v_fine;
                    v_total := v_total + cardinality(v_fine);
                    v_left := v_left - cardinality(v_fine);
                end if;
                -- Burying made room, and so did what travels alone: fill the batch up. Otherwise this probe has given what it has.
                exit fill when v_buried = 0 and not v_stepped and v_swath.first is null;
                if v_buried = 0 and v_stepped then
                    -- A line of nothing but such rows is not read to its end; what the next classes have waits for the next claim.
                    v_rounds := v_rounds + 1;
                    exit passes when v_rounds >= 4;
                end if;
            end loop;
        end loop;
    end loop;

    if v_total = 0 and v_hidden then
        perform set_config('gleaner.floor_jobs', '', false);
    end if;
    if p_request is not null and v_total > 0 then
        update gleaner.request as r
        set keys = v_taken::text[],
            leases = array(select case when q.lease in (0, -1) then -v_sheaf else q.lease end
                           from unnest(v_taken) with ordinality as k (id, n)
                           left join gleaner.jobs as q on q.id = k.id
                           order by k.n)
        where r.queue = 'jobs' and r.id = p_request;
    end if;
end
$$;

ALTER FUNCTION gleaner.claim_jobs(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval) OWNER TO gleaner_engine;

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
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now        timestamptz := clock_timestamp();
    v_by         timestamptz := v_now + p_early;
    v_lease      bigint      := (extract(epoch from v_now) * 1000000)::bigint;
    v_session    text        := gleaner.caller_session();
    v_trusted    boolean     := p_request is not null and gleaner.is_trusted();
    v_left       integer     := least(p_limit, 10000);
    v_total      integer     := 0;
    v_class      text;
    v_keys       uuid[];
    v_odd        boolean[];
    v_at         timestamptz[];
    v_lane       integer[];
    v_fine       uuid[];
    v_passed     uuid[];
    v_taken      uuid[] := '{}';
    v_buried     integer;
    v_count      integer;
    v_alone      boolean := false;
    v_stepped    boolean;
    v_rounds     integer;
    v_lane_kind  text[];
    v_lane_class integer[];
    v_take       integer[];
    v_floor_at   timestamptz[];
    v_floor_key  uuid[];
    v_floors     jsonb := coalesce(nullif(current_setting('gleaner.floor_polls', true), '')::jsonb, '{}');
    v_floor      jsonb;
    v_floored    boolean;
    v_place      text;
    v_hidden     boolean := false;
    v_begun      timestamptz;
    v_slow       interval;
    v_row        gleaner.polls;
    v_reason     text;
    v_refusals   integer := 0;
    -- Nothing can refuse: rows are returned as they change. Otherwise each refusal is looked at.
    v_plain      boolean := gleaner.is_plain('gleaner.polls', array['due_at', 'lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'status'], 'status');
    v_lost       integer;
    v_classes    text[] := '{global}';
begin
    perform gleaner.require_read_committed();
    if p_agent = '' then
        raise exception 'the agent id is empty' using errcode = 'GL002',
            hint = 'Pass a text that is new at each process start, or null to be known by your sign-in alone and end the work by plain updates.';
    end if;
    -- A worker's key may be for some queues and kinds alone. Direct logins have no key, and pay nothing for the question.
    if current_setting('request.jwt.claims', true) <> '' then
        perform gleaner.scoped_kinds('polls', null);
    end if;

    if p_request is not null then
        insert into gleaner.request (queue, id, at) values ('polls', p_request, v_now) on conflict do nothing;
        if not found then
            -- One that was given nothing yet looks again: a claim that waits does. The lock lets the second of two at once see
            -- what the first was given.
            perform from gleaner.request as r
            where r.queue = 'polls' and r.id = p_request and r.keys = '{}'
            for update;
        end if;
        if not found then
            return query
            select q.*
            from gleaner.request as r
            cross join lateral unnest(r.keys, r.leases) with ordinality as k (id, lease, n)
            join gleaner.polls as q on q.provider_id = k.id::uuid
            -- Whoever knows another's request is not given its rows.
            where r.queue = 'polls' and r.id = p_request
              and (q.lease = k.lease and q.status in ('running') and (v_trusted or q.session = v_session))
            order by k.n;
            return;
        end if;
    end if;

    -- Rows that refused a change a moment ago are stepped over for a while.
    v_passed := array(select o.key::uuid from gleaner.offender as o where o.queue = 'polls' and o.until > v_now);

    <<passes>>
    for v_pass in 1 .. 2 loop
        -- Second pass: nothing was found, but a floor hid part of the line. A floor never reports "empty".
        if v_pass = 2 then
            exit when v_total > 0 or not v_hidden;
            v_floors := '{}';
        end if;

        <<classes>>
        foreach v_class in array v_classes loop

            v_rounds := 0;
            <<fill>>
            loop
                exit passes when v_left <= 0 or v_alone or v_refusals >= 100;
                v_stepped := false;
                v_begun := clock_timestamp();
                v_place := v_class;
                v_floor := case when (v_floors #>> array[v_place, 'until'])::double precision > extract(epoch from v_begun)
                                then v_floors #> array[v_place, 'lanes'] end;
                v_floored := v_floor is not null;
                v_hidden := v_hidden or v_floored;
            -- Only lanes with a due row go on, and begin there: what is dead before it is waded through once.
            select coalesce(array_agg(''::text), '{}'), coalesce(array_agg(l.class), '{}'), array_agg(due.at), array_agg(due.id)
            into v_lane_kind, v_lane_class, v_floor_at, v_floor_key
            from (select c.class
                  from generate_series(0, 0) as c (class)) as l
            -- Not `exists`: the planner would turn that into a join over every due row.
            cross join lateral (
                select q.due_at as at, q.provider_id as id
                from gleaner.polls as q
                where true and q.status in ('ready', 'running', 'failed') and q.due_at is not null
                  and q.due_at <= v_by
                  and (q.due_at, q.provider_id) >= (
                      coalesce((v_floor #>> array[l.class::text, '0'])::timestamptz, '-infinity'),
                      coalesce((v_floor #>> array[l.class::text, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                order by q.due_at, q.provider_id
                limit 1
            ) as due;
            if cardinality(v_lane_class) > 0 then
                v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                if cardinality(v_lane_class) > 1 and v_left > 1 then
                    -- How many rows of each lane the batch will hold, so that no more are locked than are taken.
                    with head as (
                        select l.lane
                        from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key) with ordinality as l (kind, class, floor_at, floor_key, lane)
                        cross join lateral (
                            select q.due_at as at, q.provider_id as id
                            from gleaner.polls as q
                            where true and q.status in ('ready', 'running', 'failed') and q.due_at is not null
                              and q.due_at <= v_by and (q.due_at, q.provider_id) >= (l.floor_at, l.floor_key)
                              and q.provider_id <> all (v_passed)
                            order by q.due_at, q.provider_id
                            limit v_left
                        ) as p
                        order by p.at + l.class * interval '0', p.id
                        limit v_left
                    )
                    select array(select (select count(*)::integer from head where head.lane = i)
                                 from generate_subscripts(v_lane_class, 1) as i order by i)
                    into v_take;
                end if;
                loop
                    if cardinality(v_lane_class) = 1 then
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'), coalesce(array_agg(p.at), '{}')
                        into v_keys, v_odd, v_at
                        from (
                                select q.provider_id as id, q.due_at as at,
                                       (q.status in ('running') or q.lost > 0) as odd
                                from gleaner.polls as q
                                where true and q.status in ('ready', 'running', 'failed') and q.due_at is not null
                                  and q.due_at <= v_by and (q.due_at, q.provider_id) >= (v_floor_at[1], v_floor_key[1])
                                  and q.provider_id <> all (v_passed)
                                order by q.due_at, q.provider_id
                                limit v_left
                                for no key update skip locked
                        ) as p;
                        v_lane := '{}';
                    else
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'),
                               coalesce(array_agg(p.at), '{}'), coalesce(array_agg(p.lane), '{}')
                        into v_keys, v_odd, v_at, v_lane
                        from (
                            select p.id, p.odd, p.at, l.lane::integer as lane,
                                   p.at + l.class * interval '0' as rank
                            from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key, v_take) with ordinality as l (kind, class, floor_at, floor_key, take, lane)
                            cross join lateral (
                                select q.provider_id as id, q.due_at as at,
                                       (q.status in ('running') or q.lost > 0) as odd
                                from gleaner.polls as q
                                where true and q.status in ('ready', 'running', 'failed') and q.due_at is not null
                                  and q.due_at <= v_by and (q.due_at, q.provider_id) >= (l.floor_at, l.floor_key)
                                  and q.provider_id <> all (v_passed)
                                order by q.due_at, q.provider_id
                                limit l.take
                                for no key update skip locked
                            ) as p
                            order by rank, p.id
                            limit v_left
                        ) as p;
                    end if;
                    -- What was counted may be locked by now, and then the other lanes are due: a claim that can find work does.
                    exit when cardinality(v_keys) > 0 or v_left <= all (v_take);
                    v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                end loop;
            else
                v_keys := '{}'; v_odd := '{}'; v_at := '{}'; v_lane := '{}';
            end if;

                -- Dead index entries at the head of the line make a look from the start slow: a few after every large
                -- batch, millions while a forgotten transaction pins them. The next claims of this session then begin
                -- where this one ended, for a moment, or until twenty times the slow look has passed. What the rows of the
                -- batch cost themselves is no slowness, or a batch of thousands would hide latecomers for seconds.
                v_count := cardinality(v_at);
                v_slow := clock_timestamp() - v_begun - v_count * interval '5 microseconds';
                if v_count > 0 and (v_floor is not null or v_count >= 64 and v_count = v_left
                                    or v_slow > interval '3 milliseconds') then
                    v_floor := coalesce(v_floor, '{}') || case
                        when cardinality(v_lane_class) = 1
                        then jsonb_build_object(v_lane_class[1]::text, jsonb_build_array(v_at[v_count], v_keys[v_count]))
                        else (select jsonb_object_agg(v_lane_class[f.lane]::text, jsonb_build_array(f.at, f.id))
                              from (select distinct on (u.lane) u.lane, u.at, u.id
                                    from unnest(v_lane, v_at, v_keys) as u (lane, at, id)
                                    order by u.lane, u.at desc, u.id desc) as f) end;
                    v_floors := jsonb_set(v_floors, array[v_place], jsonb_build_object(
                        'until', case when v_floored then (v_floors #>> array[v_place, 'until'])::double precision
                                      else extract(epoch from v_now + greatest(20 * v_slow, interval '100 milliseconds')) end,
                        'lanes', v_floor));
                    perform set_config('gleaner.floor_polls', v_floors::text, false);
                end if;
                exit fill when cardinality(v_keys) = 0;

                v_fine := v_keys;
                v_buried := 0;
                if true = any (v_odd) then
                    v_fine := '{}';
                    for v_i in 1 .. cardinality(v_keys) loop
                        if not v_odd[v_i] then
                            v_fine := v_fine || v_keys[v_i];
                            continue;
                        end if;
                        select q.* into v_row from gleaner.polls as q where q.provider_id = v_keys[v_i];
                        v_lost := v_row.lost + case when v_row.status in ('running') and v_row.started >= 1 then 1 else 0 end;
                        v_reason := case when v_lost >= 1000000 then format('lost %s leases', v_lost) end;
                        if v_reason is not null then
                            begin
                                perform gleaner.rest_polls(v_row, v_reason, 'Poison', v_row.attempts, v_lost);
                                v_reason := case when exists (select from gleaner.polls as q where q.provider_id = v_keys[v_i] and q.status in ('ready', 'running', 'failed') and q.due_at is not null)
                                                 then 'a trigger swallowed the burial' end;
                            exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                                v_reason := sqlerrm;
                            end;
                            if v_reason is not null then
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || v_keys[v_i];
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('polls', v_keys[v_i]::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
                            end if;
                            v_buried := v_buried + 1;
                        elsif v_total = 0 and cardinality(v_fine) = 0 then
                            -- A row that lost a lease travels alone: if it brings its agent down, no other row suffers.
                            v_fine := array[v_keys[v_i]];
                            v_alone := true;
                            exit;
                        else
                            v_passed := v_passed || v_keys[v_i];
                            v_stepped := true;
                        end if;
                    end loop;
                end if;

                if cardinality(v_fine) > 0 then
                    v_count := -1;
                    if v_plain then
                        return query
                update gleaner.polls as q
                set status = 'running',
                    due_at = v_now + least(coalesce(p_hold, interval '2 minutes'), interval '6 hours'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '6 hours',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session
                from unnest(v_fine) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.provider_id = any (array[taken.id])
                        returning q.*;
                        v_count := cardinality(v_fine);
                    else
                        begin
                update gleaner.polls as q
                set status = 'running',
                    due_at = v_now + least(coalesce(p_hold, interval '2 minutes'), interval '6 hours'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '6 hours',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session
                from unnest(v_fine) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.provider_id = any (array[taken.id]);
                            get diagnostics v_count = row_count;
                        exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                        end;
                    end if;
                    if v_count < cardinality(v_fine) then
                        -- Some row refused: a check that does not hold, a trigger that raised or swallowed the change.
                        -- One by one, so that the others are worked, and the offender is noted.
                        v_keys := v_fine;
                        v_fine := '{}';
                        v_buried := 1;
                        for v_i in 1 .. cardinality(v_keys) loop
                            if v_count > 0 and exists (select from gleaner.polls as q where q.provider_id = v_keys[v_i] and q.lease >= v_lease and q.agent is not distinct from p_agent) then
                                v_fine := v_fine || v_keys[v_i];
                                continue;
                            end if;
                            v_reason := 'a trigger swallowed the claim';
                            begin
                update gleaner.polls as q
                set status = 'running',
                    due_at = v_now + least(coalesce(p_hold, interval '2 minutes'), interval '6 hours'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '6 hours',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session
                from unnest(v_keys[v_i : v_i]) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.provider_id = any (array[taken.id]);
                                if found then
                                    v_reason := null;
                                end if;
                            exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                                v_reason := sqlerrm;
                            end;
                            if v_reason is null then
                                v_fine := v_fine || v_keys[v_i];
                            else
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || v_keys[v_i];
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('polls', v_keys[v_i]::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
                            end if;
                        end loop;
                        v_alone := v_alone and cardinality(v_fine) > 0;
                    end if;
                    if not v_plain then
                        -- Only now: what a statement has returned before it failed, in a trigger that runs after it, say,
                        -- cannot be taken back, and its reader would work on a row that nobody holds.
                        return query
                        select q.*
                        from unnest(v_fine) with ordinality as k (id, n)
                        join gleaner.polls as q on q.provider_id = k.id
                        order by k.n;
                    end if;
                    v_taken := v_taken || v_fine;
                    v_total := v_total + cardinality(v_fine);
                    v_left := v_left - cardinality(v_fine);
                end if;
                -- Burying made room, and so did what travels alone: fill the batch up. Otherwise this probe has given what it has.
                exit fill when v_buried = 0 and not v_stepped;
                if v_buried = 0 and v_stepped then
                    -- A line of nothing but such rows is not read to its end; what the next classes have waits for the next claim.
                    v_rounds := v_rounds + 1;
                    exit passes when v_rounds >= 4;
                end if;
            end loop;
        end loop;
    end loop;

    if v_total = 0 and v_hidden then
        perform set_config('gleaner.floor_polls', '', false);
    end if;
    if p_request is not null and v_total > 0 then
        update gleaner.request as r
        set keys = v_taken::text[],
            leases = array(select q.lease
                           from unnest(v_taken) with ordinality as k (id, n)
                           left join gleaner.polls as q on q.provider_id = k.id
                           order by k.n)
        where r.queue = 'polls' and r.id = p_request;
    end if;
end
$$;

ALTER FUNCTION gleaner.claim_polls(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval) OWNER TO gleaner_engine;

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

COMMENT ON COLUMN public.execution_jobs.worker_id IS 'Who runs it; given by the worker.';

COMMENT ON COLUMN public.execution_jobs.version IS 'Grows with every change of status, so that a claim by version fails when anybody was quicker.';

COMMENT ON COLUMN public.execution_jobs.updated_at IS 'The database''s time of the last change; a claim may compare it like a version.';

CREATE FUNCTION gleaner.claim_runs(p_agent text, p_limit integer DEFAULT 1, p_request uuid DEFAULT NULL::uuid, p_started boolean DEFAULT false, p_hold interval DEFAULT NULL::interval, p_early interval DEFAULT '00:00:00'::interval, p_holder text DEFAULT NULL::text) RETURNS SETOF public.execution_jobs
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now        timestamptz := clock_timestamp();
    v_by         timestamptz := v_now + p_early;
    v_lease      bigint      := (extract(epoch from v_now) * 1000000)::bigint;
    v_session    text        := gleaner.caller_session();
    v_trusted    boolean     := p_request is not null and gleaner.is_trusted();
    v_left       integer     := least(p_limit, 10000);
    v_total      integer     := 0;
    v_class      text;
    v_keys       uuid[];
    v_odd        boolean[];
    v_at         timestamptz[];
    v_lane       integer[];
    v_fine       uuid[];
    v_passed     uuid[];
    v_taken      uuid[] := '{}';
    v_buried     integer;
    v_count      integer;
    v_alone      boolean := false;
    v_stepped    boolean;
    v_rounds     integer;
    v_lane_kind  text[];
    v_lane_class integer[];
    v_take       integer[];
    v_floor_at   timestamptz[];
    v_floor_key  uuid[];
    v_floors     jsonb := coalesce(nullif(current_setting('gleaner.floor_runs', true), '')::jsonb, '{}');
    v_floor      jsonb;
    v_floored    boolean;
    v_place      text;
    v_hidden     boolean := false;
    v_begun      timestamptz;
    v_slow       interval;
    v_row        public.execution_jobs;
    v_reason     text;
    v_refusals   integer := 0;
    -- Nothing can refuse: rows are returned as they change. Otherwise each refusal is looked at.
    v_plain      boolean := gleaner.is_plain('public.execution_jobs', array['due_at', 'lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'status', 'worker_id', 'started_at'], 'status');
    v_lost       integer;
    v_classes    text[] := '{global}';
    v_holder     text;
begin
    perform gleaner.require_read_committed();
    if p_agent = '' then
        raise exception 'the agent id is empty' using errcode = 'GL002',
            hint = 'Pass a text that is new at each process start, or null to be known by your sign-in alone and end the work by plain updates.';
    end if;
    -- A worker's key may be for some queues and kinds alone. Direct logins have no key, and pay nothing for the question.
    if current_setting('request.jwt.claims', true) <> '' then
        perform gleaner.scoped_kinds('runs', null);
    end if;
    v_holder := coalesce(p_holder, p_agent);

    if p_request is not null then
        insert into gleaner.request (queue, id, at) values ('runs', p_request, v_now) on conflict do nothing;
        if not found then
            -- One that was given nothing yet looks again: a claim that waits does. The lock lets the second of two at once see
            -- what the first was given.
            perform from gleaner.request as r
            where r.queue = 'runs' and r.id = p_request and r.keys = '{}'
            for update;
        end if;
        if not found then
            return query
            select q.*
            from gleaner.request as r
            cross join lateral unnest(r.keys, r.leases) with ordinality as k (id, lease, n)
            join public.execution_jobs as q on q.id = k.id::uuid
            -- Whoever knows another's request is not given its rows.
            where r.queue = 'runs' and r.id = p_request
              and (q.lease = k.lease and q.status in ('running') and (v_trusted or q.session = v_session))
            order by k.n;
            return;
        end if;
    end if;

    -- Rows that refused a change a moment ago are stepped over for a while.
    v_passed := array(select o.key::uuid from gleaner.offender as o where o.queue = 'runs' and o.until > v_now);

    <<passes>>
    for v_pass in 1 .. 2 loop
        -- Second pass: nothing was found, but a floor hid part of the line. A floor never reports "empty".
        if v_pass = 2 then
            exit when v_total > 0 or not v_hidden;
            v_floors := '{}';
        end if;

        <<classes>>
        foreach v_class in array v_classes loop

            v_rounds := 0;
            <<fill>>
            loop
                exit passes when v_left <= 0 or v_alone or v_refusals >= 100;
                v_stepped := false;
                v_begun := clock_timestamp();
                v_place := v_class;
                v_floor := case when (v_floors #>> array[v_place, 'until'])::double precision > extract(epoch from v_begun)
                                then v_floors #> array[v_place, 'lanes'] end;
                v_floored := v_floor is not null;
                v_hidden := v_hidden or v_floored;
            -- Only lanes with a due row go on, and begin there: what is dead before it is waded through once.
            select coalesce(array_agg(''::text), '{}'), coalesce(array_agg(l.class), '{}'), array_agg(due.at), array_agg(due.id)
            into v_lane_kind, v_lane_class, v_floor_at, v_floor_key
            from (select c.class
                  from generate_series(0, 0) as c (class)) as l
            -- Not `exists`: the planner would turn that into a join over every due row.
            cross join lateral (
                select q.due_at as at, q.id as id
                from public.execution_jobs as q
                where true and q.status in ('queued', 'running', 'failed') and q.due_at is not null
                  and q.due_at <= v_by
                  and (q.due_at, q.id) >= (
                      coalesce((v_floor #>> array[l.class::text, '0'])::timestamptz, '-infinity'),
                      coalesce((v_floor #>> array[l.class::text, '1'])::uuid, '00000000-0000-0000-0000-000000000000'::uuid))
                order by q.due_at, q.id
                limit 1
            ) as due;
            if cardinality(v_lane_class) > 0 then
                v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                if cardinality(v_lane_class) > 1 and v_left > 1 then
                    -- How many rows of each lane the batch will hold, so that no more are locked than are taken.
                    with head as (
                        select l.lane
                        from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key) with ordinality as l (kind, class, floor_at, floor_key, lane)
                        cross join lateral (
                            select q.due_at as at, q.id as id
                            from public.execution_jobs as q
                            where true and q.status in ('queued', 'running', 'failed') and q.due_at is not null
                              and q.due_at <= v_by and (q.due_at, q.id) >= (l.floor_at, l.floor_key)
                              and q.id <> all (v_passed)
                            order by q.due_at, q.id
                            limit v_left
                        ) as p
                        order by p.at + l.class * interval '0', p.id
                        limit v_left
                    )
                    select array(select (select count(*)::integer from head where head.lane = i)
                                 from generate_subscripts(v_lane_class, 1) as i order by i)
                    into v_take;
                end if;
                loop
                    if cardinality(v_lane_class) = 1 then
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'), coalesce(array_agg(p.at), '{}')
                        into v_keys, v_odd, v_at
                        from (
                                select q.id as id, q.due_at as at,
                                       (q.status in ('running') or q.lost > 0) as odd
                                from public.execution_jobs as q
                                where true and q.status in ('queued', 'running', 'failed') and q.due_at is not null
                                  and q.due_at <= v_by and (q.due_at, q.id) >= (v_floor_at[1], v_floor_key[1])
                                  and q.id <> all (v_passed)
                                order by q.due_at, q.id
                                limit v_left
                                for no key update skip locked
                        ) as p;
                        v_lane := '{}';
                    else
                        select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(p.odd), '{}'),
                               coalesce(array_agg(p.at), '{}'), coalesce(array_agg(p.lane), '{}')
                        into v_keys, v_odd, v_at, v_lane
                        from (
                            select p.id, p.odd, p.at, l.lane::integer as lane,
                                   p.at + l.class * interval '0' as rank
                            from unnest(v_lane_kind, v_lane_class, v_floor_at, v_floor_key, v_take) with ordinality as l (kind, class, floor_at, floor_key, take, lane)
                            cross join lateral (
                                select q.id as id, q.due_at as at,
                                       (q.status in ('running') or q.lost > 0) as odd
                                from public.execution_jobs as q
                                where true and q.status in ('queued', 'running', 'failed') and q.due_at is not null
                                  and q.due_at <= v_by and (q.due_at, q.id) >= (l.floor_at, l.floor_key)
                                  and q.id <> all (v_passed)
                                order by q.due_at, q.id
                                limit l.take
                                for no key update skip locked
                            ) as p
                            order by rank, p.id
                            limit v_left
                        ) as p;
                    end if;
                    -- What was counted may be locked by now, and then the other lanes are due: a claim that can find work does.
                    exit when cardinality(v_keys) > 0 or v_left <= all (v_take);
                    v_take := array_fill(v_left, array[cardinality(v_lane_class)]);
                end loop;
            else
                v_keys := '{}'; v_odd := '{}'; v_at := '{}'; v_lane := '{}';
            end if;

                -- Dead index entries at the head of the line make a look from the start slow: a few after every large
                -- batch, millions while a forgotten transaction pins them. The next claims of this session then begin
                -- where this one ended, for a moment, or until twenty times the slow look has passed. What the rows of the
                -- batch cost themselves is no slowness, or a batch of thousands would hide latecomers for seconds.
                v_count := cardinality(v_at);
                v_slow := clock_timestamp() - v_begun - v_count * interval '5 microseconds';
                if v_count > 0 and (v_floor is not null or v_count >= 64 and v_count = v_left
                                    or v_slow > interval '3 milliseconds') then
                    v_floor := coalesce(v_floor, '{}') || case
                        when cardinality(v_lane_class) = 1
                        then jsonb_build_object(v_lane_class[1]::text, jsonb_build_array(v_at[v_count], v_keys[v_count]))
                        else (select jsonb_object_agg(v_lane_class[f.lane]::text, jsonb_build_array(f.at, f.id))
                              from (select distinct on (u.lane) u.lane, u.at, u.id
                                    from unnest(v_lane, v_at, v_keys) as u (lane, at, id)
                                    order by u.lane, u.at desc, u.id desc) as f) end;
                    v_floors := jsonb_set(v_floors, array[v_place], jsonb_build_object(
                        'until', case when v_floored then (v_floors #>> array[v_place, 'until'])::double precision
                                      else extract(epoch from v_now + greatest(20 * v_slow, interval '100 milliseconds')) end,
                        'lanes', v_floor));
                    perform set_config('gleaner.floor_runs', v_floors::text, false);
                end if;
                exit fill when cardinality(v_keys) = 0;

                v_fine := v_keys;
                v_buried := 0;
                if true = any (v_odd) then
                    v_fine := '{}';
                    for v_i in 1 .. cardinality(v_keys) loop
                        if not v_odd[v_i] then
                            v_fine := v_fine || v_keys[v_i];
                            continue;
                        end if;
                        select q.* into v_row from public.execution_jobs as q where q.id = v_keys[v_i];
                        v_lost := v_row.lost + case when v_row.status in ('running') and v_row.started >= 1 then 1 else 0 end;
                        v_reason := case when v_lost >= 3 then format('lost %s leases', v_lost) end;
                        if v_reason is not null then
                            begin
                                perform gleaner.rest_runs(v_row, v_reason, 'Poison', v_row.attempts, v_lost);
                                v_reason := case when exists (select from public.execution_jobs as q where q.id = v_keys[v_i] and q.status in ('queued', 'running', 'failed') and q.due_at is not null)
                                                 then 'a trigger swallowed the burial' end;
                            exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                                v_reason := sqlerrm;
                            end;
                            if v_reason is not null then
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || v_keys[v_i];
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('runs', v_keys[v_i]::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
                            end if;
                            v_buried := v_buried + 1;
                        elsif v_total = 0 and cardinality(v_fine) = 0 then
                            -- A row that lost a lease travels alone: if it brings its agent down, no other row suffers.
                            v_fine := array[v_keys[v_i]];
                            v_alone := true;
                            exit;
                        else
                            v_passed := v_passed || v_keys[v_i];
                            v_stepped := true;
                        end if;
                    end loop;
                end if;

                if cardinality(v_fine) > 0 then
                    v_count := -1;
                    if v_plain then
                        return query
                update public.execution_jobs as q
                set status = 'running',
                    due_at = v_now + least(coalesce(p_hold, interval '30 minutes'), interval '2 hours'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '2 hours',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session,
                    worker_id = v_holder,
                    started_at = v_now
                from unnest(v_fine) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id])
                        returning q.*;
                        v_count := cardinality(v_fine);
                    else
                        begin
                update public.execution_jobs as q
                set status = 'running',
                    due_at = v_now + least(coalesce(p_hold, interval '30 minutes'), interval '2 hours'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '2 hours',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session,
                    worker_id = v_holder,
                    started_at = v_now
                from unnest(v_fine) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id]);
                            get diagnostics v_count = row_count;
                        exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                        end;
                    end if;
                    if v_count < cardinality(v_fine) then
                        -- Some row refused: a check that does not hold, a trigger that raised or swallowed the change.
                        -- One by one, so that the others are worked, and the offender is noted.
                        v_keys := v_fine;
                        v_fine := '{}';
                        v_buried := 1;
                        for v_i in 1 .. cardinality(v_keys) loop
                            if v_count > 0 and exists (select from public.execution_jobs as q where q.id = v_keys[v_i] and q.lease >= v_lease and q.agent is not distinct from p_agent) then
                                v_fine := v_fine || v_keys[v_i];
                                continue;
                            end if;
                            v_reason := 'a trigger swallowed the claim';
                            begin
                update public.execution_jobs as q
                set status = 'running',
                    due_at = v_now + least(coalesce(p_hold, interval '30 minutes'), interval '2 hours'),
                    lease = greatest(q.lease + 1, v_lease),
                    deadline_at = v_now + interval '2 hours',
                    -- A lease that ran out on started work is a lost one; unstarted work was merely parked.
                    lost = q.lost + (case when q.status in ('running') and q.started >= 1 then 1 else 0 end),
                    started = case when p_started or v_alone then 1 else 0 end,
                    agent = p_agent,
                    session = v_session,
                    worker_id = v_holder,
                    started_at = v_now
                from unnest(v_keys[v_i : v_i]) as taken (id)
                -- Not by `=`: the planner could then begin with the table's keys, and hand rows out in their order.
                where q.id = any (array[taken.id]);
                                if found then
                                    v_reason := null;
                                end if;
                            exception when others then
                            if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                                raise;
                            end if;
                                v_reason := sqlerrm;
                            end;
                            if v_reason is null then
                                v_fine := v_fine || v_keys[v_i];
                            else
                            v_refusals := v_refusals + 1;
                            v_passed := v_passed || v_keys[v_i];
                            insert into gleaner.offender as o (queue, key, until, reason)
                            values ('runs', v_keys[v_i]::text, v_now + interval '1 minute', v_reason)
                            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
                            end if;
                        end loop;
                        v_alone := v_alone and cardinality(v_fine) > 0;
                    end if;
                    if not v_plain then
                        -- Only now: what a statement has returned before it failed, in a trigger that runs after it, say,
                        -- cannot be taken back, and its reader would work on a row that nobody holds.
                        return query
                        select q.*
                        from unnest(v_fine) with ordinality as k (id, n)
                        join public.execution_jobs as q on q.id = k.id
                        order by k.n;
                    end if;
                    v_taken := v_taken || v_fine;
                    v_total := v_total + cardinality(v_fine);
                    v_left := v_left - cardinality(v_fine);
                end if;
                -- Burying made room, and so did what travels alone: fill the batch up. Otherwise this probe has given what it has.
                exit fill when v_buried = 0 and not v_stepped;
                if v_buried = 0 and v_stepped then
                    -- A line of nothing but such rows is not read to its end; what the next classes have waits for the next claim.
                    v_rounds := v_rounds + 1;
                    exit passes when v_rounds >= 4;
                end if;
            end loop;
        end loop;
    end loop;

    if v_total = 0 and v_hidden then
        perform set_config('gleaner.floor_runs', '', false);
    end if;
    if p_request is not null and v_total > 0 then
        update gleaner.request as r
        set keys = v_taken::text[],
            leases = array(select q.lease
                           from unnest(v_taken) with ordinality as k (id, n)
                           left join public.execution_jobs as q on q.id = k.id
                           order by k.n)
        where r.queue = 'runs' and r.id = p_request;
    end if;
end
$$;

ALTER FUNCTION gleaner.claim_runs(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) OWNER TO gleaner_engine;

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

CREATE FUNCTION gleaner.complete_activities(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
begin
    return query
    select unnest(g.ids), g.outcome, g.status
    from gleaner.complete_activities_grouped(p_ids, p_leases, p_results) as g;
end
$$;

ALTER FUNCTION gleaner.complete_activities(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_activities(p_id uuid, p_lease bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
begin
    return query select * from gleaner.complete_activities(array[p_id], array[p_lease], array[p_result]);
end
$$;

ALTER FUNCTION gleaner.complete_activities(p_id uuid, p_lease bigint, p_result jsonb) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_activities_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(ids uuid[], outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[];
begin
    with changed as (
        update public.activities as q
        set processing_status = 'completed',
            processed_data = case when u.result is null then q.processed_data
                -- Partial results of earlier stages stay beside the final ones.
                when jsonb_typeof(q.processed_data) = 'object' and jsonb_typeof(u.result) = 'object' then q.processed_data || u.result
                else u.result end,
deadline_at = null,
        started = 0,
        locked_by = null,
        locked_at = null
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where q.id = u.id and q.lease = u.lease
          and q.processing_status in ('processing') and (v_trusted or q.session = v_session)
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    if cardinality(v_done) > 0 then
        return query select v_done, 'done', ('completed')::text;
    end if;
    if cardinality(v_done) < cardinality(p_ids) then
        -- Evidence, of those who can have held the row: a row's leases only grow, so a former one is below its lease, and whoever
        -- signed in anew knows the present one. Each is kept once. Nobody fills the table with made-up ones: so many for a row, and
        -- of one sign-in a few.
        insert into gleaner.late_result (queue, key, lease, caller, result)
        select 'activities', late.key, late.lease, v_session, late.result
        from (select u.id::text as key, u.lease, u.result, row_number() over (partition by u.id order by u.n) as n
              from unnest(p_ids, p_leases, p_results) with ordinality as u (id, lease, result, n)
              left join public.activities as q on q.id = u.id
              where u.id <> all (v_done) and u.lease is not null and (v_trusted or u.lease <= q.lease)
                and (q.lease = u.lease and q.processing_status = 'completed') is not true) as late
        cross join lateral (
            select count(*) as total, count(*) filter (where l.caller = v_session) as own,
                   coalesce(bool_or(l.lease = late.lease and l.caller = v_session), false) as known
            from gleaner.late_result as l
            where l.queue = 'activities' and l.key = late.key) as kept
        where not kept.known and kept.total + late.n <= 32 and (v_trusted or kept.own + late.n <= 4);
        return query
        select array_agg(o.id), o.outcome, o.status
        from (
select u.id,
           case
               when q.id is null then 'gone'
               when q.lease = u.lease and q.processing_status = 'completed' then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.processing_status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join public.activities as q on q.id = u.id
    where u.id <> all (v_done)
        ) as o (id, outcome, status)
        group by o.outcome, o.status;
    end if;
end
$$;

ALTER FUNCTION gleaner.complete_activities_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_dumps(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
begin
    return query
    select unnest(g.ids), g.outcome, g.status
    from gleaner.complete_dumps_grouped(p_ids, p_leases, p_results) as g;
end
$$;

ALTER FUNCTION gleaner.complete_dumps(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_dumps(p_id uuid, p_lease bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
begin
    return query select * from gleaner.complete_dumps(array[p_id], array[p_lease], array[p_result]);
end
$$;

ALTER FUNCTION gleaner.complete_dumps(p_id uuid, p_lease bigint, p_result jsonb) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_dumps_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(ids uuid[], outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[];
begin
    with changed as (
        update public.agent_processing_queue as q
        set processing_state = 'completed'::public.processing_state,
            result = case when u.result is null then q.result
                -- Partial results of earlier stages stay beside the final ones.
                when jsonb_typeof(q.result) = 'object' and jsonb_typeof(u.result) = 'object' then q.result || u.result
                else u.result end,
            completed_at = v_now,
deadline_at = null,
        started = 0
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where q.id = u.id and q.lease = u.lease
          and q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and (v_trusted or q.session = v_session)
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    if cardinality(v_done) > 0 then
        return query select v_done, 'done', ('completed'::public.processing_state)::text;
    end if;
    if cardinality(v_done) < cardinality(p_ids) then
        -- Evidence, of those who can have held the row: a row's leases only grow, so a former one is below its lease, and whoever
        -- signed in anew knows the present one. Each is kept once. Nobody fills the table with made-up ones: so many for a row, and
        -- of one sign-in a few.
        insert into gleaner.late_result (queue, key, lease, caller, result)
        select 'dumps', late.key, late.lease, v_session, late.result
        from (select u.id::text as key, u.lease, u.result, row_number() over (partition by u.id order by u.n) as n
              from unnest(p_ids, p_leases, p_results) with ordinality as u (id, lease, result, n)
              left join public.agent_processing_queue as q on q.id = u.id
              where u.id <> all (v_done) and u.lease is not null and (v_trusted or u.lease <= q.lease)
                and (q.lease = u.lease and q.processing_state = 'completed'::public.processing_state) is not true) as late
        cross join lateral (
            select count(*) as total, count(*) filter (where l.caller = v_session) as own,
                   coalesce(bool_or(l.lease = late.lease and l.caller = v_session), false) as known
            from gleaner.late_result as l
            where l.queue = 'dumps' and l.key = late.key) as kept
        where not kept.known and kept.total + late.n <= 32 and (v_trusted or kept.own + late.n <= 4);
        return query
        select array_agg(o.id), o.outcome, o.status
        from (
select u.id,
           case
               when q.id is null then 'gone'
               when q.lease = u.lease and q.processing_state = 'completed'::public.processing_state then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.processing_state::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join public.agent_processing_queue as q on q.id = u.id
    where u.id <> all (v_done)
        ) as o (id, outcome, status)
        group by o.outcome, o.status;
    end if;
end
$$;

ALTER FUNCTION gleaner.complete_dumps_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_followups(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
begin
    return query
    select unnest(g.ids), g.outcome, g.status
    from gleaner.complete_followups_grouped(p_ids, p_leases, p_results) as g;
end
$$;

ALTER FUNCTION gleaner.complete_followups(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_followups(p_id uuid, p_lease bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
begin
    return query select * from gleaner.complete_followups(array[p_id], array[p_lease], array[p_result]);
end
$$;

ALTER FUNCTION gleaner.complete_followups(p_id uuid, p_lease bigint, p_result jsonb) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_followups_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(ids uuid[], outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[];
begin
    with changed as (
        update public.scheduled_actions as q
        set status = 'executed',
            finished_at = v_now,
deadline_at = null,
        started = 0
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where q.id = u.id and q.lease = u.lease
          and q.status in ('processing') and (v_trusted or q.session = v_session)
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    if cardinality(v_done) > 0 then
        return query select v_done, 'done', ('executed')::text;
    end if;
    if cardinality(v_done) < cardinality(p_ids) then
        -- Evidence, of those who can have held the row: a row's leases only grow, so a former one is below its lease, and whoever
        -- signed in anew knows the present one. Each is kept once. Nobody fills the table with made-up ones: so many for a row, and
        -- of one sign-in a few.
        insert into gleaner.late_result (queue, key, lease, caller, result)
        select 'followups', late.key, late.lease, v_session, late.result
        from (select u.id::text as key, u.lease, u.result, row_number() over (partition by u.id order by u.n) as n
              from unnest(p_ids, p_leases, p_results) with ordinality as u (id, lease, result, n)
              left join public.scheduled_actions as q on q.id = u.id
              where u.id <> all (v_done) and u.lease is not null and (v_trusted or u.lease <= q.lease)
                and (q.lease = u.lease and q.status = 'executed') is not true) as late
        cross join lateral (
            select count(*) as total, count(*) filter (where l.caller = v_session) as own,
                   coalesce(bool_or(l.lease = late.lease and l.caller = v_session), false) as known
            from gleaner.late_result as l
            where l.queue = 'followups' and l.key = late.key) as kept
        where not kept.known and kept.total + late.n <= 32 and (v_trusted or kept.own + late.n <= 4);
        return query
        select array_agg(o.id), o.outcome, o.status
        from (
select u.id,
           case
               when q.id is null then 'gone'
               when q.lease = u.lease and q.status = 'executed' then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join public.scheduled_actions as q on q.id = u.id
    where u.id <> all (v_done)
        ) as o (id, outcome, status)
        group by o.outcome, o.status;
    end if;
end
$$;

ALTER FUNCTION gleaner.complete_followups_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_jobs(p_ids bigint[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
begin
    return query
    select unnest(g.ids), g.outcome, g.status
    from gleaner.complete_jobs_grouped(p_ids, p_leases, p_results) as g;
end
$$;

ALTER FUNCTION gleaner.complete_jobs(p_ids bigint[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_jobs(p_id bigint, p_lease bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
begin
    return query select * from gleaner.complete_jobs(array[p_id], array[p_lease], array[p_result]);
end
$$;

ALTER FUNCTION gleaner.complete_jobs(p_id bigint, p_lease bigint, p_result jsonb) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_jobs_grouped(p_ids bigint[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(ids bigint[], outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    bigint[];
    v_bound   bigint[] := '{}';
    -- Mostly all are of one.
    v_one     boolean := p_leases[1] = all (p_leases);
    v_sheaves bigint[] := case when v_one then array[-p_leases[1]]
                               else array(select distinct -l from unnest(p_leases) as l where l < 0) end;
    v_sheaf   gleaner.sheaf;
    v_keys    int8multirange;
    v_count   bigint;
begin
    -- A sheaf's rows say whether they are still its own by a lease of zero; the sheaf's lock keeps everybody else out.
    for v_sheaf in
        select s.*
        from gleaner.sheaf as s
        where s.queue = 'jobs' and s.id = any (v_sheaves) and (v_trusted or s.session = v_session)
        order by s.id
        for update
    loop
        -- Mostly they are one piece, as they were claimed.
        if v_one and p_ids = array(select generate_series(p_ids[1], p_ids[1] + cardinality(p_ids) - 1)) then
            v_keys := int8multirange(int8range(p_ids[1], p_ids[1] + cardinality(p_ids)));
        else
            v_keys := (select coalesce(range_agg(int8range(u.id, u.id, '[]')), '{}')
                       from unnest(p_ids, p_leases) as u (id, lease) where u.lease = -v_sheaf.id);
        end if;
        v_keys := v_keys * v_sheaf.keys;
        if cardinality(array_remove(p_results, null)) > 0 then
            update gleaner.jobs as q
            set status = 'done',
                lease = -v_sheaf.id,
                due_at = v_sheaf.due_at,
                agent = v_sheaf.agent,
                session = v_sheaf.session,
                finished_at = v_now,
                result = case when u.result is null then q.result
                -- Partial results of earlier stages stay beside the final ones.
                when jsonb_typeof(q.result) = 'object' and jsonb_typeof(u.result) = 'object' then q.result || u.result
                else u.result end
            from (select u.id, u.result
                  from unnest(p_ids, p_leases, p_results) as u (id, lease, result)
                  where u.lease = -v_sheaf.id and v_keys @> u.id
                  order by u.id) as u
            where q.id = u.id and q.lease in (0, -1) and q.status = 'ready';
        else
            -- A piece is read in one go along the key.
            update gleaner.jobs as q
            set status = 'done',
                lease = -v_sheaf.id,
                due_at = v_sheaf.due_at,
                agent = v_sheaf.agent,
                session = v_sheaf.session,
                finished_at = v_now
            from unnest(v_keys) as piece
            where q.id >= lower(piece) and q.id < upper(piece)
              and q.lease in (0, -1) and q.status = 'ready';
        end if;
        get diagnostics v_count = row_count;
        if v_keys = v_sheaf.keys then
            delete from gleaner.sheaf as s where s.id = v_sheaf.id;
        else
            update gleaner.sheaf as s set keys = s.keys - v_keys where s.id = v_sheaf.id;
        end if;
        if v_one and v_count = cardinality(p_ids) then
            return query select p_ids, 'done', ('done')::text;
            return;
        end if;
        -- What was cancelled, buried or finished by hand meanwhile has another lease.
        v_bound := v_bound || array(
            select q.id
            from unnest(v_keys) as piece
            join gleaner.jobs as q on q.id >= lower(piece) and q.id < upper(piece)
            where q.lease = -v_sheaf.id and q.status = 'done');
    end loop;
    with changed as (
        update gleaner.jobs as q
        set status = 'done',
            result = case when u.result is null then q.result
                -- Partial results of earlier stages stay beside the final ones.
                when jsonb_typeof(q.result) = 'object' and jsonb_typeof(u.result) = 'object' then q.result || u.result
                else u.result end,
            finished_at = v_now,
deadline_at = null,
        started = 0
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where q.id = u.id and q.lease = u.lease
          and q.status in ('running') and (v_trusted or q.session = v_session)
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    v_done := v_done || v_bound;
    if cardinality(v_done) > 0 then
        return query select v_done, 'done', ('done')::text;
    end if;
    if cardinality(v_done) < cardinality(p_ids) then
        -- Evidence, of those who can have held the row: a row's leases only grow, so a former one is below its lease, and whoever
        -- signed in anew knows the present one. Each is kept once. Nobody fills the table with made-up ones: so many for a row, and
        -- of one sign-in a few.
        insert into gleaner.late_result (queue, key, lease, caller, result)
        select 'jobs', late.key, late.lease, v_session, late.result
        from (select u.id::text as key, u.lease, u.result, row_number() over (partition by u.id order by u.n) as n
              from unnest(p_ids, p_leases, p_results) with ordinality as u (id, lease, result, n)
              left join gleaner.jobs as q on q.id = u.id
              where u.id <> all (v_done) and u.lease is not null and (v_trusted or u.lease <= q.lease)
                and (q.lease = u.lease and q.status = 'done') is not true) as late
        cross join lateral (
            select count(*) as total, count(*) filter (where l.caller = v_session) as own,
                   coalesce(bool_or(l.lease = late.lease and l.caller = v_session), false) as known
            from gleaner.late_result as l
            where l.queue = 'jobs' and l.key = late.key) as kept
        where not kept.known and kept.total + late.n <= 32 and (v_trusted or kept.own + late.n <= 4);
        return query
        select array_agg(o.id), o.outcome, o.status
        from (
select u.id,
           case
               when q.id is null then 'gone'
               when q.lease = u.lease and q.status = 'done' then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join gleaner.jobs as q on q.id = u.id
    where u.id <> all (v_done)
        ) as o (id, outcome, status)
        group by o.outcome, o.status;
    end if;
end
$$;

ALTER FUNCTION gleaner.complete_jobs_grouped(p_ids bigint[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_polls(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
begin
    return query
    select unnest(g.ids), g.outcome, g.status
    from gleaner.complete_polls_grouped(p_ids, p_leases, p_results) as g;
end
$$;

ALTER FUNCTION gleaner.complete_polls(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_polls(p_id uuid, p_lease bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
begin
    return query select * from gleaner.complete_polls(array[p_id], array[p_lease], array[p_result]);
end
$$;

ALTER FUNCTION gleaner.complete_polls(p_id uuid, p_lease bigint, p_result jsonb) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_polls_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(ids uuid[], outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[];
begin
    with changed as (
        update gleaner.polls as q
        set status = 'done',
deadline_at = null,
        started = 0
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where q.provider_id = u.id and q.lease = u.lease
          and q.status in ('running') and (v_trusted or q.session = v_session)
        returning q.provider_id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    if cardinality(v_done) > 0 then
        return query select v_done, 'done', ('done')::text;
    end if;
    if cardinality(v_done) < cardinality(p_ids) then
        -- Evidence, of those who can have held the row: a row's leases only grow, so a former one is below its lease, and whoever
        -- signed in anew knows the present one. Each is kept once. Nobody fills the table with made-up ones: so many for a row, and
        -- of one sign-in a few.
        insert into gleaner.late_result (queue, key, lease, caller, result)
        select 'polls', late.key, late.lease, v_session, late.result
        from (select u.id::text as key, u.lease, u.result, row_number() over (partition by u.id order by u.n) as n
              from unnest(p_ids, p_leases, p_results) with ordinality as u (id, lease, result, n)
              left join gleaner.polls as q on q.provider_id = u.id
              where u.id <> all (v_done) and u.lease is not null and (v_trusted or u.lease <= q.lease)
                and (q.lease = u.lease and q.status = 'done') is not true) as late
        cross join lateral (
            select count(*) as total, count(*) filter (where l.caller = v_session) as own,
                   coalesce(bool_or(l.lease = late.lease and l.caller = v_session), false) as known
            from gleaner.late_result as l
            where l.queue = 'polls' and l.key = late.key) as kept
        where not kept.known and kept.total + late.n <= 32 and (v_trusted or kept.own + late.n <= 4);
        return query
        select array_agg(o.id), o.outcome, o.status
        from (
select u.id,
           case
               when q.provider_id is null then 'gone'
               when q.lease = u.lease and q.status = 'done' then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join gleaner.polls as q on q.provider_id = u.id
    where u.id <> all (v_done)
        ) as o (id, outcome, status)
        group by o.outcome, o.status;
    end if;
end
$$;

ALTER FUNCTION gleaner.complete_polls_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_runs(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
begin
    return query
    select unnest(g.ids), g.outcome, g.status
    from gleaner.complete_runs_grouped(p_ids, p_leases, p_results) as g;
end
$$;

ALTER FUNCTION gleaner.complete_runs(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_runs(p_id uuid, p_lease bigint, p_result jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
begin
    return query select * from gleaner.complete_runs(array[p_id], array[p_lease], array[p_result]);
end
$$;

ALTER FUNCTION gleaner.complete_runs(p_id uuid, p_lease bigint, p_result jsonb) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.complete_runs_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(ids uuid[], outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[];
begin
    with changed as (
        update public.execution_jobs as q
        set status = 'completed',
            result = case when u.result is null then q.result
                -- Partial results of earlier stages stay beside the final ones.
                when jsonb_typeof(q.result) = 'object' and jsonb_typeof(u.result) = 'object' then q.result || u.result
                else u.result end,
            completed_at = v_now,
deadline_at = null,
        started = 0
        from (select * from unnest(p_ids, p_leases, p_results) as u (id, lease, result) order by u.id) as u
        where q.id = u.id and q.lease = u.lease
          and q.status in ('running') and (v_trusted or q.session = v_session)
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    if cardinality(v_done) > 0 then
        return query select v_done, 'done', ('completed')::text;
    end if;
    if cardinality(v_done) < cardinality(p_ids) then
        -- Evidence, of those who can have held the row: a row's leases only grow, so a former one is below its lease, and whoever
        -- signed in anew knows the present one. Each is kept once. Nobody fills the table with made-up ones: so many for a row, and
        -- of one sign-in a few.
        insert into gleaner.late_result (queue, key, lease, caller, result)
        select 'runs', late.key, late.lease, v_session, late.result
        from (select u.id::text as key, u.lease, u.result, row_number() over (partition by u.id order by u.n) as n
              from unnest(p_ids, p_leases, p_results) with ordinality as u (id, lease, result, n)
              left join public.execution_jobs as q on q.id = u.id
              where u.id <> all (v_done) and u.lease is not null and (v_trusted or u.lease <= q.lease)
                and (q.lease = u.lease and q.status = 'completed') is not true) as late
        cross join lateral (
            select count(*) as total, count(*) filter (where l.caller = v_session) as own,
                   coalesce(bool_or(l.lease = late.lease and l.caller = v_session), false) as known
            from gleaner.late_result as l
            where l.queue = 'runs' and l.key = late.key) as kept
        where not kept.known and kept.total + late.n <= 32 and (v_trusted or kept.own + late.n <= 4);
        return query
        select array_agg(o.id), o.outcome, o.status
        from (
select u.id,
           case
               when q.id is null then 'gone'
               when q.lease = u.lease and q.status = 'completed' then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join public.execution_jobs as q on q.id = u.id
    where u.id <> all (v_done)
        ) as o (id, outcome, status)
        group by o.outcome, o.status;
    end if;
end
$$;

ALTER FUNCTION gleaner.complete_runs_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) OWNER TO gleaner_engine;

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
          -- Of several candidates one is meant, not a new one; and nobody wants to know a spammer.
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
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
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
    return coalesce(nullif(upper(btrim(current_setting('gleaner.default_region', true))), ''), 'US');
end
$$;

COMMENT ON FUNCTION gleaner.default_region() IS 'The country of numbers written without one.';

CREATE FUNCTION gleaner.enqueue_activities(p_items jsonb, p_on_duplicate text DEFAULT 'skip'::text) RETURNS TABLE(id uuid, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    v_item    jsonb;
    v_names   text[];
    v_columns text;
    v_sql     text;
    v_last    text[];
    v_update  text;
    v_since   timestamptz;
    v_values  text;
    v_run     jsonb[] := '{}';
    v_run_sql text;
begin
    if p_on_duplicate not in ('skip', 'replace') then
        raise exception 'p_on_duplicate is skip or replace, not %', p_on_duplicate using errcode = 'GL002';
    end if;
    -- Neighbours with the same columns are inserted together, in the order they came; the null at the end ends the last run.
    for v_item in
        select i.item
        from jsonb_array_elements(case jsonb_typeof(p_items) when 'array' then p_items else jsonb_build_array(p_items) end) as i (item)
        union all
        select null
    loop
        if v_item is null then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
            end if;
            exit;
        end if;
        if jsonb_typeof(v_item) <> 'object' then
            raise exception 'an item must be an object whose keys are columns of public.activities, this one is %', v_item using errcode = 'GL002';
        end if;
        -- What the adapter does for plain inserts, done here for the engine's own: when the row is due, and open to all.
        v_since := coalesce((v_item ->> 'due_at')::timestamptz, (v_item ->> 'created_at')::timestamp with time zone, clock_timestamp());
        v_item := v_item || jsonb_build_object('due_at', v_since, 'open_at', case when v_item ->> 'sales_id' is null then v_since
                -- An owner's threshold runs from the creation, as it does for plain inserts.
                else gleaner.open_activities((v_item ->> 'sales_id')::bigint,
                    coalesce((v_item ->> 'created_at')::timestamp with time zone, clock_timestamp()), v_since) end);
        v_names := array(select k from jsonb_object_keys(v_item) as k order by k);
        if v_names is distinct from v_last then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
                v_run := '{}';
            end if;
            select string_agg(n, ', ') into v_columns
            from unnest(v_names) as n
            where not exists (select from pg_attribute as a where a.attrelid = 'public.activities'::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped);
            if v_columns is not null then
                raise exception 'no such column in public.activities: %', v_columns using errcode = '42703';
            end if;
            -- These are the engine's to set; an item that carries them was read from the table and is put in again.
            select coalesce(string_agg(quote_ident(n), ', '), ''), string_agg(format('r.%I', n), ', '), coalesce(string_agg(format('%1$I = excluded.%1$I', n), ', ') filter (where n not in ('id')), '')
            into v_columns, v_values, v_update
            from unnest(v_names) as n where n not in ('lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session');
            v_sql := 'insert into public.activities as q ' || case when v_columns = '' then 'default values'
                else format('(%s) select %s from jsonb_populate_record(null::public.activities, $1) as r', v_columns, v_values) end;
            v_run_sql := format('insert into public.activities as q (%s) select %s from unnest($1) with ordinality as i (item, n), '
                'jsonb_populate_record(null::public.activities, i.item) as r order by i.n returning q.id, ''enqueued''', v_columns, v_values);
            v_last := v_names;
        end if;
        v_run := v_run || v_item;
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_activities(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.enqueue_dumps(p_items jsonb, p_on_duplicate text DEFAULT 'skip'::text) RETURNS TABLE(id uuid, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    v_item    jsonb;
    v_names   text[];
    v_columns text;
    v_sql     text;
    v_last    text[];
    v_update  text;
    v_since   timestamptz;
    v_values  text;
    v_run     jsonb[] := '{}';
    v_run_sql text;
    v_types   text;
    v_aliases text;
begin
    if p_on_duplicate not in ('skip', 'replace') then
        raise exception 'p_on_duplicate is skip or replace, not %', p_on_duplicate using errcode = 'GL002';
    end if;
    -- Many that are alike, which is how programs write them, go in by one statement, without a look at each.
    if jsonb_typeof(p_items) = 'array' and jsonb_array_length(p_items) >= 8 and jsonb_typeof(p_items -> 0) = 'object' then
        v_names := array(select k from jsonb_object_keys(p_items -> 0) as k order by k);
        if not v_names && array['lease', 'deadline_at', 'lost', 'started', 'agent', 'session'] and not exists (
               select from jsonb_array_elements(p_items) as i (item)
               where jsonb_typeof(i.item) <> 'object' or not i.item ?& v_names or i.item - v_names <> '{}') then
            select string_agg(format('%I %s', n, format_type(a.atttypid, a.atttypmod)), ', ' order by n),
                   string_agg(format('%I, ', n), '' order by n),
                   coalesce(string_agg(format('%I, ', n), '' order by n) filter (where n <> 'due_at'), ''),
                   coalesce(string_agg(format('r.%I, ', n), '' order by n) filter (where n <> 'due_at'), '')
            into v_types, v_aliases, v_columns, v_values
            from unnest(v_names) as n
            join pg_attribute as a on a.attrelid = 'public.agent_processing_queue'::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped
            having count(*) = cardinality(v_names);
            if found and v_types is not null then
                return query execute format(
                    'insert into public.agent_processing_queue as q (%1$sdue_at) select %2$scoalesce(%3$s$2) '
                    'from rows from (jsonb_to_recordset($1) as (%4$s)) with ordinality as r (%5$sgleaner_place) order by r.gleaner_place '
                    'returning q.id, ''enqueued''',
                    v_columns, v_values,
                    concat(case when 'due_at' = any (v_names) then $at$r.due_at, $at$ end, case when 'created_at' = any (v_names) then $at$r.created_at, $at$ end),
                    v_types, v_aliases)
                using p_items, clock_timestamp();
                return;
            end if;
        end if;
        v_names := null;
    end if;
    -- Neighbours with the same columns are inserted together, in the order they came; the null at the end ends the last run.
    for v_item in
        select i.item
        from jsonb_array_elements(case jsonb_typeof(p_items) when 'array' then p_items else jsonb_build_array(p_items) end) as i (item)
        union all
        select null
    loop
        if v_item is null then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
            end if;
            exit;
        end if;
        if jsonb_typeof(v_item) <> 'object' then
            raise exception 'an item must be an object whose keys are columns of public.agent_processing_queue, this one is %', v_item using errcode = 'GL002';
        end if;
        -- What the adapter does for plain inserts, done here for the engine's own: when the row is due, and open to all.
        v_since := coalesce((v_item ->> 'due_at')::timestamptz, (v_item ->> 'created_at')::timestamp with time zone, clock_timestamp());
        v_item := v_item || jsonb_build_object('due_at', v_since);
        v_names := array(select k from jsonb_object_keys(v_item) as k order by k);
        if v_names is distinct from v_last then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
                v_run := '{}';
            end if;
            select string_agg(n, ', ') into v_columns
            from unnest(v_names) as n
            where not exists (select from pg_attribute as a where a.attrelid = 'public.agent_processing_queue'::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped);
            if v_columns is not null then
                raise exception 'no such column in public.agent_processing_queue: %', v_columns using errcode = '42703';
            end if;
            -- These are the engine's to set; an item that carries them was read from the table and is put in again.
            select coalesce(string_agg(quote_ident(n), ', '), ''), string_agg(format('r.%I', n), ', '), coalesce(string_agg(format('%1$I = excluded.%1$I', n), ', ') filter (where n not in ('id')), '')
            into v_columns, v_values, v_update
            from unnest(v_names) as n where n not in ('lease', 'deadline_at', 'lost', 'started', 'agent', 'session');
            v_sql := 'insert into public.agent_processing_queue as q ' || case when v_columns = '' then 'default values'
                else format('(%s) select %s from jsonb_populate_record(null::public.agent_processing_queue, $1) as r', v_columns, v_values) end;
            v_run_sql := format('insert into public.agent_processing_queue as q (%s) select %s from unnest($1) with ordinality as i (item, n), '
                'jsonb_populate_record(null::public.agent_processing_queue, i.item) as r order by i.n returning q.id, ''enqueued''', v_columns, v_values);
            v_last := v_names;
        end if;
        v_run := v_run || v_item;
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_dumps(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.enqueue_followups(p_items jsonb, p_on_duplicate text DEFAULT 'skip'::text) RETURNS TABLE(id uuid, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    v_item    jsonb;
    v_names   text[];
    v_columns text;
    v_sql     text;
    v_last    text[];
    v_update  text;
    v_since   timestamptz;
    v_values  text;
    v_run     jsonb[] := '{}';
    v_run_sql text;
    v_types   text;
    v_aliases text;
begin
    if p_on_duplicate not in ('skip', 'replace') then
        raise exception 'p_on_duplicate is skip or replace, not %', p_on_duplicate using errcode = 'GL002';
    end if;
    -- Many that are alike, which is how programs write them, go in by one statement, without a look at each.
    if jsonb_typeof(p_items) = 'array' and jsonb_array_length(p_items) >= 8 and jsonb_typeof(p_items -> 0) = 'object' then
        v_names := array(select k from jsonb_object_keys(p_items -> 0) as k order by k);
        if not v_names && array['lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session'] and not exists (
               select from jsonb_array_elements(p_items) as i (item)
               where jsonb_typeof(i.item) <> 'object' or not i.item ?& v_names or i.item - v_names <> '{}') then
            select string_agg(format('%I %s', n, format_type(a.atttypid, a.atttypmod)), ', ' order by n),
                   string_agg(format('%I, ', n), '' order by n),
                   coalesce(string_agg(format('%I, ', n), '' order by n) filter (where n <> 'due_at'), ''),
                   coalesce(string_agg(format('r.%I, ', n), '' order by n) filter (where n <> 'due_at'), '')
            into v_types, v_aliases, v_columns, v_values
            from unnest(v_names) as n
            join pg_attribute as a on a.attrelid = 'public.scheduled_actions'::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped
            having count(*) = cardinality(v_names);
            if found and v_types is not null then
                return query execute format(
                    'insert into public.scheduled_actions as q (%1$sdue_at) select %2$scoalesce(%3$s$2) '
                    'from rows from (jsonb_to_recordset($1) as (%4$s)) with ordinality as r (%5$sgleaner_place) order by r.gleaner_place '
                    'returning q.id, ''enqueued''',
                    v_columns, v_values,
                    concat(case when 'scheduled_for' = any (v_names) then $at$r.scheduled_for, $at$ end, case when 'due_at' = any (v_names) then $at$r.due_at, $at$ end, case when 'created_at' = any (v_names) then $at$r.created_at, $at$ end),
                    v_types, v_aliases)
                using p_items, clock_timestamp();
                return;
            end if;
        end if;
        v_names := null;
    end if;
    -- Neighbours with the same columns are inserted together, in the order they came; the null at the end ends the last run.
    for v_item in
        select i.item
        from jsonb_array_elements(case jsonb_typeof(p_items) when 'array' then p_items else jsonb_build_array(p_items) end) as i (item)
        union all
        select null
    loop
        if v_item is null then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
            end if;
            exit;
        end if;
        if jsonb_typeof(v_item) <> 'object' then
            raise exception 'an item must be an object whose keys are columns of public.scheduled_actions, this one is %', v_item using errcode = 'GL002';
        end if;
        -- What the adapter does for plain inserts, done here for the engine's own: when the row is due, and open to all.
        v_since := coalesce((v_item ->> 'scheduled_for')::timestamp with time zone, (v_item ->> 'due_at')::timestamptz, (v_item ->> 'created_at')::timestamp with time zone, clock_timestamp());
        v_item := v_item || jsonb_build_object('due_at', v_since);
        v_names := array(select k from jsonb_object_keys(v_item) as k order by k);
        if v_names is distinct from v_last then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
                v_run := '{}';
            end if;
            select string_agg(n, ', ') into v_columns
            from unnest(v_names) as n
            where not exists (select from pg_attribute as a where a.attrelid = 'public.scheduled_actions'::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped);
            if v_columns is not null then
                raise exception 'no such column in public.scheduled_actions: %', v_columns using errcode = '42703';
            end if;
            -- These are the engine's to set; an item that carries them was read from the table and is put in again.
            select coalesce(string_agg(quote_ident(n), ', '), ''), string_agg(format('r.%I', n), ', '), coalesce(string_agg(format('%1$I = excluded.%1$I', n), ', ') filter (where n not in ('id')), '')
            into v_columns, v_values, v_update
            from unnest(v_names) as n where n not in ('lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session');
            v_sql := 'insert into public.scheduled_actions as q ' || case when v_columns = '' then 'default values'
                else format('(%s) select %s from jsonb_populate_record(null::public.scheduled_actions, $1) as r', v_columns, v_values) end;
            v_run_sql := format('insert into public.scheduled_actions as q (%s) select %s from unnest($1) with ordinality as i (item, n), '
                'jsonb_populate_record(null::public.scheduled_actions, i.item) as r order by i.n returning q.id, ''enqueued''', v_columns, v_values);
            v_last := v_names;
        end if;
        v_run := v_run || v_item;
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_followups(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.enqueue_jobs(p_items jsonb, p_on_duplicate text DEFAULT 'skip'::text) RETURNS TABLE(id bigint, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    v_item    jsonb;
    v_names   text[];
    v_columns text;
    v_sql     text;
    v_last    text[];
    v_update  text;
    v_since   timestamptz;
    v_values  text;
    v_run     jsonb[] := '{}';
    v_run_sql text;
    v_types   text;
    v_aliases text;
begin
    if p_on_duplicate not in ('skip', 'replace') then
        raise exception 'p_on_duplicate is skip or replace, not %', p_on_duplicate using errcode = 'GL002';
    end if;
    -- Many that are alike, which is how programs write them, go in by one statement, without a look at each.
    if jsonb_typeof(p_items) = 'array' and jsonb_array_length(p_items) >= 8 and jsonb_typeof(p_items -> 0) = 'object' then
        v_names := array(select k from jsonb_object_keys(p_items -> 0) as k order by k);
        if not v_names && array['lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session', 'unique_key'] and not exists (
               select from jsonb_array_elements(p_items) as i (item)
               where jsonb_typeof(i.item) <> 'object' or not i.item ?& v_names or i.item - v_names <> '{}') then
            select string_agg(format('%I %s', n, format_type(a.atttypid, a.atttypmod)), ', ' order by n),
                   string_agg(format('%I, ', n), '' order by n),
                   coalesce(string_agg(format('%I, ', n), '' order by n) filter (where n <> 'due_at'), ''),
                   coalesce(string_agg(format('r.%I, ', n), '' order by n) filter (where n <> 'due_at'), '')
            into v_types, v_aliases, v_columns, v_values
            from unnest(v_names) as n
            join pg_attribute as a on a.attrelid = 'gleaner.jobs'::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped
            having count(*) = cardinality(v_names);
            if found and v_types is not null then
                return query execute format(
                    'insert into gleaner.jobs as q (%1$sdue_at) select %2$scoalesce(%3$s$2) '
                    'from rows from (jsonb_to_recordset($1) as (%4$s)) with ordinality as r (%5$sgleaner_place) order by r.gleaner_place '
                    'returning q.id, ''enqueued''',
                    v_columns, v_values,
                    concat(case when 'due_at' = any (v_names) then $at$r.due_at, $at$ end, case when 'created_at' = any (v_names) then $at$r.created_at, $at$ end),
                    v_types, v_aliases)
                using p_items, clock_timestamp();
                return;
            end if;
        end if;
        v_names := null;
    end if;
    -- Neighbours with the same columns are inserted together, in the order they came; the null at the end ends the last run.
    for v_item in
        select i.item
        from jsonb_array_elements(case jsonb_typeof(p_items) when 'array' then p_items else jsonb_build_array(p_items) end) as i (item)
        union all
        select null
    loop
        if v_item is null then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
            end if;
            exit;
        end if;
        if jsonb_typeof(v_item) <> 'object' then
            raise exception 'an item must be an object whose keys are columns of gleaner.jobs, this one is %', v_item using errcode = 'GL002';
        end if;
        -- What the adapter does for plain inserts, done here for the engine's own: when the row is due, and open to all.
        v_since := coalesce((v_item ->> 'due_at')::timestamptz, (v_item ->> 'created_at')::timestamp with time zone, clock_timestamp());
        v_item := v_item || jsonb_build_object('due_at', v_since);
        v_names := array(select k from jsonb_object_keys(v_item) as k order by k);
        if v_names is distinct from v_last then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
                v_run := '{}';
            end if;
            select string_agg(n, ', ') into v_columns
            from unnest(v_names) as n
            where not exists (select from pg_attribute as a where a.attrelid = 'gleaner.jobs'::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped);
            if v_columns is not null then
                raise exception 'no such column in gleaner.jobs: %', v_columns using errcode = '42703';
            end if;
            -- These are the engine's to set; an item that carries them was read from the table and is put in again.
            select coalesce(string_agg(quote_ident(n), ', '), ''), string_agg(format('r.%I', n), ', '), coalesce(string_agg(format('%1$I = excluded.%1$I', n), ', ') filter (where n not in ('id', 'unique_key')), '')
            into v_columns, v_values, v_update
            from unnest(v_names) as n where n not in ('lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session');
            v_sql := 'insert into gleaner.jobs as q ' || case when v_columns = '' then 'default values'
                else format('(%s) select %s from jsonb_populate_record(null::gleaner.jobs, $1) as r', v_columns, v_values) end;
            v_run_sql := format('insert into gleaner.jobs as q (%s) select %s from unnest($1) with ordinality as i (item, n), '
                'jsonb_populate_record(null::gleaner.jobs, i.item) as r order by i.n returning q.id, ''enqueued''', v_columns, v_values);
            v_last := v_names;
        end if;
        if v_item ->> 'unique_key' is null then
            v_run := v_run || v_item;
            continue;
        end if;
        if cardinality(v_run) > 0 then
            return query execute v_run_sql using v_run;
            v_run := '{}';
        end if;
        for v_try in 1 .. 5 loop
            id := null;
            if p_on_duplicate = 'replace' and v_update <> '' then
                execute v_sql || ' on conflict (unique_key) where unique_key is not null and due_at is not null and status in (''ready'', ''failed'') do update set ' || v_update || ' returning q.id, case when q.xmax = 0 then ''enqueued'' else ''replaced'' end'
                into id, outcome using v_item;
                exit;
            end if;
            execute v_sql || ' on conflict (unique_key) where unique_key is not null and due_at is not null and status in (''ready'', ''failed'') do nothing returning q.id'
            into id using v_item;
            outcome := 'enqueued';
            exit when id is not null;
            -- The row that stands may be newer than this statement's snapshot, or taken by now: look, then try again.
            select q.id, 'standing' into id, outcome
            from gleaner.jobs as q
            where q.unique_key = (v_item ->> 'unique_key')::text
              and q.status in ('ready', 'failed') and q.due_at is not null;
            exit when id is not null;
        end loop;
        if id is null then
            raise exception 'could not enqueue: the unique key % is contended', v_item ->> 'unique_key' using errcode = '40001';
        end if;
        return next;
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_jobs(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.enqueue_polls(p_items jsonb, p_on_duplicate text DEFAULT 'skip'::text) RETURNS TABLE(id uuid, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    v_item    jsonb;
    v_names   text[];
    v_columns text;
    v_sql     text;
    v_last    text[];
    v_update  text;
    v_since   timestamptz;
    v_values  text;
    v_run     jsonb[] := '{}';
    v_run_sql text;
    v_types   text;
    v_aliases text;
begin
    if p_on_duplicate not in ('skip', 'replace') then
        raise exception 'p_on_duplicate is skip or replace, not %', p_on_duplicate using errcode = 'GL002';
    end if;
    -- Many that are alike, which is how programs write them, go in by one statement, without a look at each.
    if jsonb_typeof(p_items) = 'array' and jsonb_array_length(p_items) >= 8 and jsonb_typeof(p_items -> 0) = 'object' then
        v_names := array(select k from jsonb_object_keys(p_items -> 0) as k order by k);
        if not v_names && array['lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session'] and not exists (
               select from jsonb_array_elements(p_items) as i (item)
               where jsonb_typeof(i.item) <> 'object' or not i.item ?& v_names or i.item - v_names <> '{}') then
            select string_agg(format('%I %s', n, format_type(a.atttypid, a.atttypmod)), ', ' order by n),
                   string_agg(format('%I, ', n), '' order by n),
                   coalesce(string_agg(format('%I, ', n), '' order by n) filter (where n <> 'due_at'), ''),
                   coalesce(string_agg(format('r.%I, ', n), '' order by n) filter (where n <> 'due_at'), '')
            into v_types, v_aliases, v_columns, v_values
            from unnest(v_names) as n
            join pg_attribute as a on a.attrelid = 'gleaner.polls'::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped
            having count(*) = cardinality(v_names);
            if found and v_types is not null then
                return query execute format(
                    'insert into gleaner.polls as q (%1$sdue_at) select %2$scoalesce(%3$s$2) '
                    'from rows from (jsonb_to_recordset($1) as (%4$s)) with ordinality as r (%5$sgleaner_place) order by r.gleaner_place '
                    'returning q.provider_id, ''enqueued''',
                    v_columns, v_values,
                    concat(case when 'wanted_at' = any (v_names) then $at$r.wanted_at, $at$ end, case when 'due_at' = any (v_names) then $at$r.due_at, $at$ end),
                    v_types, v_aliases)
                using p_items, clock_timestamp();
                return;
            end if;
        end if;
        v_names := null;
    end if;
    -- Neighbours with the same columns are inserted together, in the order they came; the null at the end ends the last run.
    for v_item in
        select i.item
        from jsonb_array_elements(case jsonb_typeof(p_items) when 'array' then p_items else jsonb_build_array(p_items) end) as i (item)
        union all
        select null
    loop
        if v_item is null then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
            end if;
            exit;
        end if;
        if jsonb_typeof(v_item) <> 'object' then
            raise exception 'an item must be an object whose keys are columns of gleaner.polls, this one is %', v_item using errcode = 'GL002';
        end if;
        -- What the adapter does for plain inserts, done here for the engine's own: when the row is due, and open to all.
        v_since := coalesce((v_item ->> 'wanted_at')::timestamp with time zone, (v_item ->> 'due_at')::timestamptz, clock_timestamp());
        v_item := v_item || jsonb_build_object('due_at', v_since);
        v_names := array(select k from jsonb_object_keys(v_item) as k order by k);
        if v_names is distinct from v_last then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
                v_run := '{}';
            end if;
            select string_agg(n, ', ') into v_columns
            from unnest(v_names) as n
            where not exists (select from pg_attribute as a where a.attrelid = 'gleaner.polls'::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped);
            if v_columns is not null then
                raise exception 'no such column in gleaner.polls: %', v_columns using errcode = '42703';
            end if;
            -- These are the engine's to set; an item that carries them was read from the table and is put in again.
            select coalesce(string_agg(quote_ident(n), ', '), ''), string_agg(format('r.%I', n), ', '), coalesce(string_agg(format('%1$I = excluded.%1$I', n), ', ') filter (where n not in ('provider_id')), '')
            into v_columns, v_values, v_update
            from unnest(v_names) as n where n not in ('lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session');
            v_sql := 'insert into gleaner.polls as q ' || case when v_columns = '' then 'default values'
                else format('(%s) select %s from jsonb_populate_record(null::gleaner.polls, $1) as r', v_columns, v_values) end;
            v_run_sql := format('insert into gleaner.polls as q (%s) select %s from unnest($1) with ordinality as i (item, n), '
                'jsonb_populate_record(null::gleaner.polls, i.item) as r order by i.n returning q.provider_id, ''enqueued''', v_columns, v_values);
            v_last := v_names;
        end if;
        v_run := v_run || v_item;
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_polls(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.enqueue_runs(p_items jsonb, p_on_duplicate text DEFAULT 'skip'::text) RETURNS TABLE(id uuid, outcome text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    v_item    jsonb;
    v_names   text[];
    v_columns text;
    v_sql     text;
    v_last    text[];
    v_update  text;
    v_since   timestamptz;
    v_values  text;
    v_run     jsonb[] := '{}';
    v_run_sql text;
    v_types   text;
    v_aliases text;
begin
    if p_on_duplicate not in ('skip', 'replace') then
        raise exception 'p_on_duplicate is skip or replace, not %', p_on_duplicate using errcode = 'GL002';
    end if;
    -- Many that are alike, which is how programs write them, go in by one statement, without a look at each.
    if jsonb_typeof(p_items) = 'array' and jsonb_array_length(p_items) >= 8 and jsonb_typeof(p_items -> 0) = 'object' then
        v_names := array(select k from jsonb_object_keys(p_items -> 0) as k order by k);
        if not v_names && array['lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session'] and not exists (
               select from jsonb_array_elements(p_items) as i (item)
               where jsonb_typeof(i.item) <> 'object' or not i.item ?& v_names or i.item - v_names <> '{}') then
            select string_agg(format('%I %s', n, format_type(a.atttypid, a.atttypmod)), ', ' order by n),
                   string_agg(format('%I, ', n), '' order by n),
                   coalesce(string_agg(format('%I, ', n), '' order by n) filter (where n <> 'due_at'), ''),
                   coalesce(string_agg(format('r.%I, ', n), '' order by n) filter (where n <> 'due_at'), '')
            into v_types, v_aliases, v_columns, v_values
            from unnest(v_names) as n
            join pg_attribute as a on a.attrelid = 'public.execution_jobs'::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped
            having count(*) = cardinality(v_names);
            if found and v_types is not null then
                return query execute format(
                    'insert into public.execution_jobs as q (%1$sdue_at) select %2$scoalesce(%3$s$2) '
                    'from rows from (jsonb_to_recordset($1) as (%4$s)) with ordinality as r (%5$sgleaner_place) order by r.gleaner_place '
                    'returning q.id, ''enqueued''',
                    v_columns, v_values,
                    concat(case when 'due_at' = any (v_names) then $at$r.due_at, $at$ end, case when 'created_at' = any (v_names) then $at$r.created_at, $at$ end),
                    v_types, v_aliases)
                using p_items, clock_timestamp();
                return;
            end if;
        end if;
        v_names := null;
    end if;
    -- Neighbours with the same columns are inserted together, in the order they came; the null at the end ends the last run.
    for v_item in
        select i.item
        from jsonb_array_elements(case jsonb_typeof(p_items) when 'array' then p_items else jsonb_build_array(p_items) end) as i (item)
        union all
        select null
    loop
        if v_item is null then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
            end if;
            exit;
        end if;
        if jsonb_typeof(v_item) <> 'object' then
            raise exception 'an item must be an object whose keys are columns of public.execution_jobs, this one is %', v_item using errcode = 'GL002';
        end if;
        -- What the adapter does for plain inserts, done here for the engine's own: when the row is due, and open to all.
        v_since := coalesce((v_item ->> 'due_at')::timestamptz, (v_item ->> 'created_at')::timestamp with time zone, clock_timestamp());
        v_item := v_item || jsonb_build_object('due_at', v_since);
        v_names := array(select k from jsonb_object_keys(v_item) as k order by k);
        if v_names is distinct from v_last then
            if cardinality(v_run) > 0 then
                return query execute v_run_sql using v_run;
                v_run := '{}';
            end if;
            select string_agg(n, ', ') into v_columns
            from unnest(v_names) as n
            where not exists (select from pg_attribute as a where a.attrelid = 'public.execution_jobs'::regclass and a.attname = n and a.attnum > 0 and not a.attisdropped);
            if v_columns is not null then
                raise exception 'no such column in public.execution_jobs: %', v_columns using errcode = '42703';
            end if;
            -- These are the engine's to set; an item that carries them was read from the table and is put in again.
            select coalesce(string_agg(quote_ident(n), ', '), ''), string_agg(format('r.%I', n), ', '), coalesce(string_agg(format('%1$I = excluded.%1$I', n), ', ') filter (where n not in ('id')), '')
            into v_columns, v_values, v_update
            from unnest(v_names) as n where n not in ('lease', 'deadline_at', 'attempts', 'lost', 'started', 'agent', 'session');
            v_sql := 'insert into public.execution_jobs as q ' || case when v_columns = '' then 'default values'
                else format('(%s) select %s from jsonb_populate_record(null::public.execution_jobs, $1) as r', v_columns, v_values) end;
            v_run_sql := format('insert into public.execution_jobs as q (%s) select %s from unnest($1) with ordinality as i (item, n), '
                'jsonb_populate_record(null::public.execution_jobs, i.item) as r order by i.n returning q.id, ''enqueued''', v_columns, v_values);
            v_last := v_names;
        end if;
        v_run := v_run || v_item;
    end loop;
end
$_$;

ALTER FUNCTION gleaner.enqueue_runs(p_items jsonb, p_on_duplicate text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.explain_activities(p_id uuid, p_owner bigint DEFAULT NULL::bigint, p_kinds text[] DEFAULT NULL::text[]) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_row    public.activities;
    v_state  text;
    v_class  text := 'global';
    v_at     timestamptz;
    v_reason text;
    v_shared boolean;
    v_after  interval;
begin
    p_owner := gleaner.own_activities(p_owner);
    select q.* into v_row from public.activities as q where q.id = p_id;
    -- A worker's key sees what it holds: of other rows it learns as little as of rows that are not there.
    if v_row.id is null or v_row.session is distinct from gleaner.worker_session() and gleaner.worker_session() is not null then
        return null;
    end if;
    v_state := case
        when v_row.processing_status in ('processing') then 'running'
        when v_row.processing_status = 'completed' then 'done'
        when v_row.processing_status = 'failed' and v_row.due_at is null then 'dead'
        when v_row.processing_status = 'cancelled' then 'cancelled'
        when v_row.processing_status not in ('raw', 'processing', 'failed') then 'other'
        when v_row.due_at is null then 'unfilled'
        when v_row.processing_status = 'failed' then 'backing off'
        when v_row.due_at > v_now then 'scheduled'
        else 'ready'
    end;
    v_at := v_row.due_at;
    if v_row.sales_id is not null then
        v_class := 'own';
        if v_row.sales_id is distinct from p_owner then
            v_class := 'stale';
            select coalesce(o.allow_remote_processing, false), coalesce(o.stale_threshold_minutes * interval '1 minute', interval '5 minutes') into v_shared, v_after
            from (select v_row.sales_id as id) as asked
            left join public.sales as o on o.id = asked.id;
            if not gleaner.is_trusted() and not v_shared then
                -- A private row is nobody's business: the same answer as for a row that is not there.
                return null;
            end if;
            v_at := case when v_shared then greatest(v_at, v_row.created_at + v_after) end;
        end if;
    end if;
    v_reason := case
        when v_state in ('done', 'cancelled', 'dead', 'other') then format('it is %s (status %L)', v_state, v_row.processing_status)
        when v_state = 'unfilled' then 'it has no due time yet: it was written before the table was attached, or while its trigger was off'
        when p_kinds is not null and v_row.type::text <> all (p_kinds) then format('its kind %L is not among those asked for', v_row.type)
        when v_class = 'stale' and not v_shared then format('its owner %s keeps work private', v_row.sales_id)
        when v_at is null then 'it has no due time'
        when v_at <= v_now and v_state = 'running' then format('the lease of %s ran out %s ago', coalesce(v_row.agent, v_row.session), v_now - v_row.due_at)
        when v_at <= v_now then 'its time has come'
        when v_state = 'running' then format('%s holds it; the lease ends in %s unless progress extends it', coalesce(v_row.agent, v_row.session), v_at - v_now)
        when v_state = 'backing off' and v_row.due_at > v_now then format('attempt %s failed; the next try is in %s', v_row.attempts, v_at - v_now)
        when v_class = 'stale' and v_row.due_at <= v_now then format('its owner %s has first right to it for another %s', v_row.sales_id, v_at - v_now)
        else format('it is due in %s', v_at - v_now)
    end;
    return jsonb_build_object(
        'id', v_row.id,
        'state', v_state,
        'status', v_row.processing_status,
        'class', v_class,
        'claimable', coalesce(v_state in ('ready', 'running', 'backing off', 'scheduled') and v_at <= v_now
                     and (p_kinds is null or v_row.type::text = any (p_kinds)), false),
        'claimable_at', case when v_state in ('ready', 'running', 'backing off', 'scheduled') then v_at end,
        'reason', v_reason,
        'due_at', v_row.due_at,
        'attempts', v_row.attempts,
        'lost', v_row.lost,
        'agent', case when v_state = 'running' then coalesce(v_row.agent, v_row.session) end,
        'deadline_at', v_row.deadline_at, 'owner', v_row.sales_id, 'open_at', v_row.open_at);
end
$$;

ALTER FUNCTION gleaner.explain_activities(p_id uuid, p_owner bigint, p_kinds text[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.explain_dumps(p_id uuid) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_row    public.agent_processing_queue;
    v_state  text;
    v_class  text := 'global';
    v_at     timestamptz;
    v_reason text;
begin
    select q.* into v_row from public.agent_processing_queue as q where q.id = p_id;
    -- A worker's key sees what it holds: of other rows it learns as little as of rows that are not there.
    if v_row.id is null or v_row.session is distinct from gleaner.worker_session() and gleaner.worker_session() is not null then
        return null;
    end if;
    v_state := case
        when v_row.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) then 'running'
        when v_row.processing_state = 'completed'::public.processing_state then 'done'
        when v_row.processing_state = 'failed'::public.processing_state and v_row.due_at is null then 'dead'
        when v_row.processing_state = 'cancelled'::public.processing_state then 'cancelled'
        when v_row.processing_state not in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) then 'other'
        when v_row.due_at is null then 'unfilled'
        when v_row.processing_state = 'failed'::public.processing_state then 'backing off'
        when v_row.due_at > v_now then 'scheduled'
        else 'ready'
    end;
    v_at := v_row.due_at;
    v_reason := case
        when v_state in ('done', 'cancelled', 'dead', 'other') then format('it is %s (status %L)', v_state, v_row.processing_state)
        when v_state = 'unfilled' then 'it has no due time yet: it was written before the table was attached, or while its trigger was off'
        when v_at is null then 'it has no due time'
        when v_at <= v_now and v_state = 'running' then format('the lease of %s ran out %s ago', coalesce(v_row.agent, v_row.session), v_now - v_row.due_at)
        when v_at <= v_now then 'its time has come'
        when v_state = 'running' then format('%s holds it; the lease ends in %s unless progress extends it', coalesce(v_row.agent, v_row.session), v_at - v_now)
        when v_state = 'backing off' and v_row.due_at > v_now then format('attempt %s failed; the next try is in %s', v_row.attempts, v_at - v_now)
        else format('it is due in %s', v_at - v_now)
    end;
    return jsonb_build_object(
        'id', v_row.id,
        'state', v_state,
        'status', v_row.processing_state,
        'class', v_class,
        'claimable', coalesce(v_state in ('ready', 'running', 'backing off', 'scheduled') and v_at <= v_now, false),
        'claimable_at', case when v_state in ('ready', 'running', 'backing off', 'scheduled') then v_at end,
        'reason', v_reason,
        'due_at', v_row.due_at,
        'attempts', v_row.attempts,
        'lost', v_row.lost,
        'agent', case when v_state = 'running' then coalesce(v_row.agent, v_row.session) end,
        'deadline_at', v_row.deadline_at);
end
$$;

ALTER FUNCTION gleaner.explain_dumps(p_id uuid) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.explain_followups(p_id uuid, p_kinds text[] DEFAULT NULL::text[]) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_row    public.scheduled_actions;
    v_state  text;
    v_class  text := 'global';
    v_at     timestamptz;
    v_reason text;
begin
    select q.* into v_row from public.scheduled_actions as q where q.id = p_id;
    -- A worker's key sees what it holds: of other rows it learns as little as of rows that are not there.
    if v_row.id is null or v_row.session is distinct from gleaner.worker_session() and gleaner.worker_session() is not null then
        return null;
    end if;
    v_state := case
        when v_row.status in ('processing') then 'running'
        when v_row.status = 'executed' then 'done'
        when v_row.status = 'failed' and v_row.due_at is null then 'dead'
        when v_row.status = 'cancelled' then 'cancelled'
        when v_row.status not in ('pending', 'processing', 'failed') then 'other'
        when v_row.due_at is null then 'unfilled'
        when v_row.status = 'failed' then 'backing off'
        when v_row.due_at > v_now then 'scheduled'
        else 'ready'
    end;
    v_at := v_row.due_at;
    v_reason := case
        when v_state in ('done', 'cancelled', 'dead', 'other') then format('it is %s (status %L)', v_state, v_row.status)
        when v_state = 'unfilled' then 'it has no due time yet: it was written before the table was attached, or while its trigger was off'
        when p_kinds is not null and v_row.action_type::text <> all (p_kinds) then format('its kind %L is not among those asked for', v_row.action_type)
        when v_at is null then 'it has no due time'
        when v_at <= v_now and v_state = 'running' then format('the lease of %s ran out %s ago', coalesce(v_row.agent, v_row.session), v_now - v_row.due_at)
        when v_at <= v_now then 'its time has come'
        when v_state = 'running' then format('%s holds it; the lease ends in %s unless progress extends it', coalesce(v_row.agent, v_row.session), v_at - v_now)
        when v_state = 'backing off' and v_row.due_at > v_now then format('attempt %s failed; the next try is in %s', v_row.attempts, v_at - v_now)
        else format('it is due in %s', v_at - v_now)
    end;
    return jsonb_build_object(
        'id', v_row.id,
        'state', v_state,
        'status', v_row.status,
        'class', v_class,
        'claimable', coalesce(v_state in ('ready', 'running', 'backing off', 'scheduled') and v_at <= v_now
                     and (p_kinds is null or v_row.action_type::text = any (p_kinds)), false),
        'claimable_at', case when v_state in ('ready', 'running', 'backing off', 'scheduled') then v_at end,
        'reason', v_reason,
        'due_at', v_row.due_at,
        'attempts', v_row.attempts,
        'lost', v_row.lost,
        'agent', case when v_state = 'running' then coalesce(v_row.agent, v_row.session) end,
        'deadline_at', v_row.deadline_at);
end
$$;

ALTER FUNCTION gleaner.explain_followups(p_id uuid, p_kinds text[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.explain_jobs(p_id bigint, p_kinds text[] DEFAULT NULL::text[]) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_row    gleaner.jobs;
    v_state  text;
    v_class  text := 'global';
    v_at     timestamptz;
    v_reason text;
    v_sheaf  gleaner.sheaf;
begin
    select q.* into v_row from gleaner.jobs as q where q.id = p_id;
    if v_row.lease in (0, -1) and v_row.status = 'ready' then
        select s.* into v_sheaf from gleaner.sheaf as s where s.queue = 'jobs' and s.keys @> v_row.id;
        if found then
            v_row.status := 'running';
            v_row.lease := -v_sheaf.id;
            v_row.due_at := v_sheaf.due_at;
            v_row.deadline_at := v_sheaf.deadline_at;
            v_row.started := case when v_sheaf.begun @> v_row.id then 1 else 0 end;
            v_row.agent := v_sheaf.agent;
            v_row.session := v_sheaf.session;
        end if;
    end if;
    -- A worker's key sees what it holds: of other rows it learns as little as of rows that are not there.
    if v_row.id is null or v_row.session is distinct from gleaner.worker_session() and gleaner.worker_session() is not null then
        return null;
    end if;
    v_state := case
        when v_row.status in ('running') then 'running'
        when v_row.status = 'done' then 'done'
        when v_row.status = 'failed' and v_row.due_at is null then 'dead'
        when v_row.status = 'cancelled' then 'cancelled'
        when v_row.status not in ('ready', 'running', 'failed') then 'other'
        when v_row.due_at is null then 'unfilled'
        when v_row.lease = -1 and not (gleaner.swaths('jobs') + gleaner.sheaves('jobs')) @> p_id then 'stray'
        when v_row.status = 'failed' then 'backing off'
        when v_row.due_at > v_now then 'scheduled'
        else 'ready'
    end;
    v_at := v_row.due_at;
    v_reason := case
        when v_state in ('done', 'cancelled', 'dead', 'other') then format('it is %s (status %L)', v_state, v_row.status)
        when v_state = 'stray' then 'it says that it lies in a swath, and none names it: it was copied or restored without; requeue lets it stand alone'
        when v_state = 'unfilled' then 'it has no due time yet: it was written before the table was attached, or while its trigger was off'
        when p_kinds is not null and v_row.kind::text <> all (p_kinds) then format('its kind %L is not among those asked for', v_row.kind)
        when v_at is null then 'it has no due time'
        when v_at <= v_now and v_state = 'running' then format('the lease of %s ran out %s ago', coalesce(v_row.agent, v_row.session), v_now - v_row.due_at)
        when v_at <= v_now then 'its time has come'
        when v_state = 'running' then format('%s holds it; the lease ends in %s unless progress extends it', coalesce(v_row.agent, v_row.session), v_at - v_now)
        when v_state = 'backing off' and v_row.due_at > v_now then format('attempt %s failed; the next try is in %s', v_row.attempts, v_at - v_now)
        else format('it is due in %s', v_at - v_now)
    end;
    return jsonb_build_object(
        'id', v_row.id,
        'state', v_state,
        'status', v_row.status,
        'class', v_class,
        'claimable', coalesce(v_state in ('ready', 'running', 'backing off', 'scheduled') and v_at <= v_now
                     and (p_kinds is null or v_row.kind::text = any (p_kinds)), false),
        'claimable_at', case when v_state in ('ready', 'running', 'backing off', 'scheduled') then v_at end,
        'reason', v_reason,
        'due_at', v_row.due_at,
        'attempts', v_row.attempts,
        'lost', v_row.lost,
        'agent', case when v_state = 'running' then coalesce(v_row.agent, v_row.session) end,
        'deadline_at', v_row.deadline_at);
end
$$;

ALTER FUNCTION gleaner.explain_jobs(p_id bigint, p_kinds text[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.explain_polls(p_id uuid) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_row    gleaner.polls;
    v_state  text;
    v_class  text := 'global';
    v_at     timestamptz;
    v_reason text;
begin
    select q.* into v_row from gleaner.polls as q where q.provider_id = p_id;
    -- A worker's key sees what it holds: of other rows it learns as little as of rows that are not there.
    if v_row.provider_id is null or v_row.session is distinct from gleaner.worker_session() and gleaner.worker_session() is not null then
        return null;
    end if;
    v_state := case
        when v_row.status in ('running') then 'running'
        when v_row.status = 'done' then 'done'
        when v_row.status = 'failed' and v_row.due_at is null then 'dead'
        when v_row.status not in ('ready', 'running', 'failed') then 'other'
        when v_row.due_at is null then 'unfilled'
        when v_row.status = 'failed' then 'backing off'
        when v_row.due_at > v_now then 'scheduled'
        else 'ready'
    end;
    v_at := v_row.due_at;
    v_reason := case
        when v_state in ('done', 'cancelled', 'dead', 'other') then format('it is %s (status %L)', v_state, v_row.status)
        when v_state = 'unfilled' then 'it has no due time yet: it was written before the table was attached, or while its trigger was off'
        when v_at is null then 'it has no due time'
        when v_at <= v_now and v_state = 'running' then format('the lease of %s ran out %s ago', coalesce(v_row.agent, v_row.session), v_now - v_row.due_at)
        when v_at <= v_now then 'its time has come'
        when v_state = 'running' then format('%s holds it; the lease ends in %s unless progress extends it', coalesce(v_row.agent, v_row.session), v_at - v_now)
        when v_state = 'backing off' and v_row.due_at > v_now then format('attempt %s failed; the next try is in %s', v_row.attempts, v_at - v_now)
        else format('it is due in %s', v_at - v_now)
    end;
    return jsonb_build_object(
        'id', v_row.provider_id,
        'state', v_state,
        'status', v_row.status,
        'class', v_class,
        'claimable', coalesce(v_state in ('ready', 'running', 'backing off', 'scheduled') and v_at <= v_now, false),
        'claimable_at', case when v_state in ('ready', 'running', 'backing off', 'scheduled') then v_at end,
        'reason', v_reason,
        'due_at', v_row.due_at,
        'attempts', v_row.attempts,
        'lost', v_row.lost,
        'agent', case when v_state = 'running' then coalesce(v_row.agent, v_row.session) end,
        'deadline_at', v_row.deadline_at);
end
$$;

ALTER FUNCTION gleaner.explain_polls(p_id uuid) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.explain_runs(p_id uuid) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_row    public.execution_jobs;
    v_state  text;
    v_class  text := 'global';
    v_at     timestamptz;
    v_reason text;
begin
    select q.* into v_row from public.execution_jobs as q where q.id = p_id;
    -- A worker's key sees what it holds: of other rows it learns as little as of rows that are not there.
    if v_row.id is null or v_row.session is distinct from gleaner.worker_session() and gleaner.worker_session() is not null then
        return null;
    end if;
    v_state := case
        when v_row.status in ('running') then 'running'
        when v_row.status = 'completed' then 'done'
        when v_row.status = 'failed' and v_row.due_at is null then 'dead'
        when v_row.status = 'cancelled' then 'cancelled'
        when v_row.status not in ('queued', 'running', 'failed') then 'other'
        when v_row.due_at is null then 'unfilled'
        when v_row.status = 'failed' then 'backing off'
        when v_row.due_at > v_now then 'scheduled'
        else 'ready'
    end;
    v_at := v_row.due_at;
    v_reason := case
        when v_state in ('done', 'cancelled', 'dead', 'other') then format('it is %s (status %L)', v_state, v_row.status)
        when v_state = 'unfilled' then 'it has no due time yet: it was written before the table was attached, or while its trigger was off'
        when v_at is null then 'it has no due time'
        when v_at <= v_now and v_state = 'running' then format('the lease of %s ran out %s ago', coalesce(v_row.agent, v_row.session), v_now - v_row.due_at)
        when v_at <= v_now then 'its time has come'
        when v_state = 'running' then format('%s holds it; the lease ends in %s unless progress extends it', coalesce(v_row.agent, v_row.session), v_at - v_now)
        when v_state = 'backing off' and v_row.due_at > v_now then format('attempt %s failed; the next try is in %s', v_row.attempts, v_at - v_now)
        else format('it is due in %s', v_at - v_now)
    end;
    return jsonb_build_object(
        'id', v_row.id,
        'state', v_state,
        'status', v_row.status,
        'class', v_class,
        'claimable', coalesce(v_state in ('ready', 'running', 'backing off', 'scheduled') and v_at <= v_now, false),
        'claimable_at', case when v_state in ('ready', 'running', 'backing off', 'scheduled') then v_at end,
        'reason', v_reason,
        'due_at', v_row.due_at,
        'attempts', v_row.attempts,
        'lost', v_row.lost,
        'agent', case when v_state = 'running' then coalesce(v_row.agent, v_row.session) end,
        'deadline_at', v_row.deadline_at);
end
$$;

ALTER FUNCTION gleaner.explain_runs(p_id uuid) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.fail_activities(p_id uuid, p_lease bigint, p_message text, p_category text DEFAULT 'Error'::text, p_retryable boolean DEFAULT true, p_retry_in interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now      timestamptz := clock_timestamp();
    v_trusted  boolean := gleaner.is_trusted();
    v_session  text := gleaner.caller_session();
    v_attempts integer;
    v_row      public.activities;
begin
    select q.* into v_row from public.activities as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.lease = p_lease + 1 and v_row.processing_status not in ('processing') then
        return query select p_id, 'already', v_row.processing_status::text;
    elsif v_row.lease is distinct from p_lease or v_row.processing_status not in ('processing') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.processing_status::text end;
    else
        v_attempts := v_row.attempts + 1;
        if p_retryable and (v_attempts < 3 and coalesce(v_row.created_at, v_now) + interval '24 hours' > v_now) then
            return query select p_id, 'done', gleaner.put_back_activities(
                v_row, 'failed', v_now + coalesce(p_retry_in, gleaner.backoff(interval '30 seconds', interval '1 hour', v_attempts, p_id::text)),
                true, v_attempts, v_row.lost, p_category, p_message);
        else
            perform gleaner.rest_activities(v_row, p_message, p_category, v_attempts, v_row.lost, true);
            return query select p_id, 'done', ('failed')::text;
        end if;
    end if;
end
$$;

ALTER FUNCTION gleaner.fail_activities(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.fail_dumps(p_id uuid, p_lease bigint, p_message text, p_category text DEFAULT 'Error'::text, p_retryable boolean DEFAULT true, p_retry_in interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now      timestamptz := clock_timestamp();
    v_trusted  boolean := gleaner.is_trusted();
    v_session  text := gleaner.caller_session();
    v_attempts integer;
    v_row      public.agent_processing_queue;
begin
    select q.* into v_row from public.agent_processing_queue as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.lease = p_lease + 1 and v_row.processing_state not in ('claimed'::public.processing_state, 'processing'::public.processing_state) then
        return query select p_id, 'already', v_row.processing_state::text;
    elsif v_row.lease is distinct from p_lease or v_row.processing_state not in ('claimed'::public.processing_state, 'processing'::public.processing_state) or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.processing_state::text end;
    else
        v_attempts := v_row.attempts + 1;
        if p_retryable and (v_attempts < 3) then
            return query select p_id, 'done', gleaner.put_back_dumps(
                v_row, 'failed'::public.processing_state, v_now + coalesce(p_retry_in, gleaner.backoff(interval '30 seconds', interval '10 minutes', v_attempts, p_id::text)),
                true, v_attempts, v_row.lost, p_category, p_message);
        else
            perform gleaner.rest_dumps(v_row, p_message, p_category, v_attempts, v_row.lost, true);
            return query select p_id, 'done', ('failed'::public.processing_state)::text;
        end if;
    end if;
end
$$;

ALTER FUNCTION gleaner.fail_dumps(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.fail_followups(p_id uuid, p_lease bigint, p_message text, p_category text DEFAULT 'Error'::text, p_retryable boolean DEFAULT true, p_retry_in interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now      timestamptz := clock_timestamp();
    v_trusted  boolean := gleaner.is_trusted();
    v_session  text := gleaner.caller_session();
    v_attempts integer;
    v_row      public.scheduled_actions;
begin
    select q.* into v_row from public.scheduled_actions as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.lease = p_lease + 1 and v_row.status not in ('processing') then
        return query select p_id, 'already', v_row.status::text;
    elsif v_row.lease is distinct from p_lease or v_row.status not in ('processing') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.status::text end;
    else
        v_attempts := v_row.attempts + 1;
        if p_retryable and (v_attempts < 3) then
            return query select p_id, 'done', gleaner.put_back_followups(
                v_row, 'failed', v_now + coalesce(p_retry_in, gleaner.backoff(interval '60 seconds', interval '15 minutes', v_attempts, p_id::text)),
                true, v_attempts, v_row.lost, p_category, p_message);
        else
            perform gleaner.rest_followups(v_row, p_message, p_category, v_attempts, v_row.lost, true);
            return query select p_id, 'done', ('failed')::text;
        end if;
    end if;
end
$$;

ALTER FUNCTION gleaner.fail_followups(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.fail_jobs(p_id bigint, p_lease bigint, p_message text, p_category text DEFAULT 'Error'::text, p_retryable boolean DEFAULT true, p_retry_in interval DEFAULT NULL::interval) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now      timestamptz := clock_timestamp();
    v_trusted  boolean := gleaner.is_trusted();
    v_session  text := gleaner.caller_session();
    v_attempts integer;
    v_row      gleaner.jobs;
begin
    if p_lease < 0 then
        perform gleaner.loosen_jobs(array[p_id], -p_lease);
    end if;
    select q.* into v_row from gleaner.jobs as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.lease = p_lease + 1 and v_row.status not in ('running') then
        return query select p_id, 'already', v_row.status::text;
    elsif v_row.lease is distinct from p_lease or v_row.status not in ('running') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.status::text end;
    else
        v_attempts := v_row.attempts + 1;
        if p_retryable and (v_attempts < 3) then
            return query select p_id, 'done', gleaner.put_back_jobs(
                v_row, 'failed', v_now + coalesce(p_retry_in, gleaner.backoff(interval '30 seconds', interval '1 hour', v_attempts, p_id::text)),
                true, v_attempts, v_row.lost, p_category, p_message);
        else
            perform gleaner.rest_jobs(v_row, p_message, p_category, v_attempts, v_row.lost, true);
            return query select p_id, 'done', ('failed')::text;
        end if;
    end if;
end
$$;

ALTER FUNCTION gleaner.fail_jobs(p_id bigint, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.fail_polls(p_id uuid, p_lease bigint, p_message text, p_category text DEFAULT 'Error'::text, p_retryable boolean DEFAULT true, p_retry_in interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now      timestamptz := clock_timestamp();
    v_trusted  boolean := gleaner.is_trusted();
    v_session  text := gleaner.caller_session();
    v_attempts integer;
    v_row      gleaner.polls;
begin
    select q.* into v_row from gleaner.polls as q where q.provider_id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.lease = p_lease + 1 and v_row.status not in ('running') then
        return query select p_id, 'already', v_row.status::text;
    elsif v_row.lease is distinct from p_lease or v_row.status not in ('running') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.status::text end;
    else
        v_attempts := v_row.attempts + 1;
        if p_retryable and (v_attempts < 3) then
            return query select p_id, 'done', gleaner.put_back_polls(
                v_row, 'failed', v_now + coalesce(p_retry_in, gleaner.backoff(interval '30 seconds', interval '1 hour', v_attempts, p_id::text)),
                true, v_attempts, v_row.lost, p_category, p_message);
        else
            perform gleaner.rest_polls(v_row, p_message, p_category, v_attempts, v_row.lost, true);
            return query select p_id, 'done', ('failed')::text;
        end if;
    end if;
end
$$;

ALTER FUNCTION gleaner.fail_polls(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.fail_runs(p_id uuid, p_lease bigint, p_message text, p_category text DEFAULT 'Error'::text, p_retryable boolean DEFAULT true, p_retry_in interval DEFAULT NULL::interval) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now      timestamptz := clock_timestamp();
    v_trusted  boolean := gleaner.is_trusted();
    v_session  text := gleaner.caller_session();
    v_attempts integer;
    v_row      public.execution_jobs;
begin
    select q.* into v_row from public.execution_jobs as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.lease = p_lease + 1 and v_row.status not in ('running') then
        return query select p_id, 'already', v_row.status::text;
    elsif v_row.lease is distinct from p_lease or v_row.status not in ('running') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.status::text end;
    else
        v_attempts := v_row.attempts + 1;
        if p_retryable and (v_attempts < 3) then
            return query select p_id, 'done', gleaner.put_back_runs(
                v_row, 'failed', v_now + coalesce(p_retry_in, gleaner.backoff(interval '30 seconds', interval '10 minutes', v_attempts, p_id::text)),
                true, v_attempts, v_row.lost, p_category, p_message);
        else
            perform gleaner.rest_runs(v_row, p_message, p_category, v_attempts, v_row.lost, true);
            return query select p_id, 'done', ('failed')::text;
        end if;
    end if;
end
$$;

ALTER FUNCTION gleaner.fail_runs(p_id uuid, p_lease bigint, p_message text, p_category text, p_retryable boolean, p_retry_in interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.fill_activities(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    select s.id into last
    from (select q.id as id from public.activities as q
          where p_after is null or q.id > p_after
          order by q.id limit p_limit) as s
    order by s.id desc limit 1;
    update public.activities as q
    set due_at = case when q.processing_status in ('processing') then v_now + interval '5 minutes'
                        else least(coalesce(q.created_at, v_now), v_now) end,
        open_at = case when q.sales_id is null then q.created_at
                         else gleaner.open_activities(q.sales_id, coalesce(q.created_at, v_now),
                              case when q.processing_status in ('processing') then v_now + interval '5 minutes' else q.created_at end) end
    where q.due_at is null
      and q.processing_status in ('raw', 'processing')
      and (p_after is null or q.id > p_after) and q.id <= last;
    get diagnostics filled = row_count;
end
$$;

ALTER FUNCTION gleaner.fill_activities(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.fill_dumps(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    select s.id into last
    from (select q.id as id from public.agent_processing_queue as q
          where p_after is null or q.id > p_after
          order by q.id limit p_limit) as s
    order by s.id desc limit 1;
    update public.agent_processing_queue as q
    set due_at = case when q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) then v_now + interval '5 minutes'
                        else least(coalesce(q.created_at, v_now), v_now) end
    where q.due_at is null
      and q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state)
      and (p_after is null or q.id > p_after) and q.id <= last;
    get diagnostics filled = row_count;
end
$$;

ALTER FUNCTION gleaner.fill_dumps(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.fill_followups(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    select s.id into last
    from (select q.id as id from public.scheduled_actions as q
          where p_after is null or q.id > p_after
          order by q.id limit p_limit) as s
    order by s.id desc limit 1;
    update public.scheduled_actions as q
    set due_at = case when q.status in ('processing') then v_now + interval '5 minutes'
                        else coalesce(q.scheduled_for, v_now) end
    where q.due_at is null
      and q.status in ('pending', 'processing')
      and (p_after is null or q.id > p_after) and q.id <= last;
    get diagnostics filled = row_count;
end
$$;

ALTER FUNCTION gleaner.fill_followups(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.fill_jobs(p_after bigint, p_limit integer, OUT last bigint, OUT filled integer) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    select s.id into last
    from (select q.id as id from gleaner.jobs as q
          where p_after is null or q.id > p_after
          order by q.id limit p_limit) as s
    order by s.id desc limit 1;
    update gleaner.jobs as q
    set due_at = case when q.status in ('running') then v_now + interval '5 minutes'
                        else least(coalesce(q.created_at, v_now), v_now) end
    where q.due_at is null
      and q.status in ('ready', 'running')
      and (p_after is null or q.id > p_after) and q.id <= last;
    get diagnostics filled = row_count;
end
$$;

ALTER FUNCTION gleaner.fill_jobs(p_after bigint, p_limit integer, OUT last bigint, OUT filled integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.fill_polls(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    select s.id into last
    from (select q.provider_id as id from gleaner.polls as q
          where p_after is null or q.provider_id > p_after
          order by q.provider_id limit p_limit) as s
    order by s.id desc limit 1;
    update gleaner.polls as q
    set due_at = case when q.status in ('running') then v_now + interval '2 minutes'
                        else coalesce(q.wanted_at, v_now) end
    where q.due_at is null
      and q.status in ('ready', 'running')
      and (p_after is null or q.provider_id > p_after) and q.provider_id <= last;
    get diagnostics filled = row_count;
end
$$;

ALTER FUNCTION gleaner.fill_polls(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.fill_runs(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    select s.id into last
    from (select q.id as id from public.execution_jobs as q
          where p_after is null or q.id > p_after
          order by q.id limit p_limit) as s
    order by s.id desc limit 1;
    update public.execution_jobs as q
    set due_at = case when q.status in ('running') then v_now + interval '30 minutes'
                        else least(coalesce(q.created_at, v_now), v_now) end
    where q.due_at is null
      and q.status in ('queued', 'running')
      and (p_after is null or q.id > p_after) and q.id <= last;
    get diagnostics filled = row_count;
end
$$;

ALTER FUNCTION gleaner.fill_runs(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.find_ban(p_user uuid) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if exists (select from auth.users as u where u.id = p_user and u.banned_until > clock_timestamp()) then
        return 'banned';
    end if;
    if gleaner.is_disabled(p_user) then
        return 'disabled';
    end if;
    return null;
end
$$;

COMMENT ON FUNCTION gleaner.find_ban(p_user uuid) IS 'Why a user may not sign in: banned or disabled; null when it may.';

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

CREATE FUNCTION gleaner.ingest_activities(p_patience text, p_channels uuid[], p_raw_ids uuid[], p_methods text[], p_targets text[], p_headers jsonb[], p_bodies bytea[], p_body_files text[], p_requests integer[], p_ids uuid[], p_types text[], p_directions text[], p_raw_data jsonb[], p_metadata jsonb[], p_external_ids text[], p_sender_kinds text[], p_sender_addresses text[], p_recalls text[], p_once jsonb DEFAULT NULL::jsonb, p_remember jsonb DEFAULT NULL::jsonb) RETURNS TABLE(request integer, event integer, outcome text, id uuid)
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
    -- Whoever gave up must not leave a session behind that waits: it ends by itself when its waiters are gone.
    perform set_config('lock_timeout', p_patience, true);
    if cardinality(p_ids) <> cardinality(p_external_ids) or array_position(p_external_ids, null) is not null then
        raise exception 'event % has no external_id', array_position(p_external_ids, null)
            using errcode = 'GL002', hint = 'Without it a redelivery could not be told from a new event.';
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
        -- Of two requests in one group that carry the same token, the first is the one, and whoever says the same.
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

COMMENT ON FUNCTION gleaner.ingest_activities(p_patience text, p_channels uuid[], p_raw_ids uuid[], p_methods text[], p_targets text[], p_headers jsonb[], p_bodies bytea[], p_body_files text[], p_requests integer[], p_ids uuid[], p_types text[], p_directions text[], p_raw_data jsonb[], p_metadata jsonb[], p_external_ids text[], p_sender_kinds text[], p_sender_addresses text[], p_recalls text[], p_once jsonb, p_remember jsonb) IS 'Stores what many requests brought, together, each event once.';

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
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select exists (
        select from public.sales as s where s.user_id = auth.uid() and s.administrator and not s.disabled)
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
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    return gleaner.worker_session() is not null
        or exists (select from public.sales as s where s.user_id = auth.uid() and not s.disabled);
end
$$;

COMMENT ON FUNCTION gleaner.is_member() IS 'True when the caller belongs to the team: a person who is not disabled, or a worker''s key.';

CREATE FUNCTION gleaner.is_plain(p_table regclass, p_columns text[], p_status text) RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return not exists (
               select from pg_trigger as t
               where t.tgrelid = p_table and not t.tgisinternal and t.tgtype & 16 <> 0
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

CREATE FUNCTION gleaner.lay_jobs(p_first bigint[], p_last bigint[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
declare
    v_numbered int8multirange := coalesce(nullif(current_setting('gleaner.numbered_jobs', true), ''), '{}')::int8multirange;
    v_piece    record;
    v_count    integer;
begin
    for v_piece in select u.first, u.last from unnest(p_first, p_last) as u (first, last) loop
        if (v_piece.first <= v_piece.last and v_numbered @> int8range(v_piece.first, v_piece.last, '[]')) is not true then
            raise exception 'the keys % to % of gleaner.jobs cannot be laid', v_piece.first, v_piece.last using errcode = 'GL002',
                hint = 'Ask gleaner.number_jobs for keys in the same transaction, and lay each once.';
        end if;
        v_numbered := v_numbered - int8multirange(int8range(v_piece.first, v_piece.last, '[]'));
    end loop;
    insert into gleaner.swath (queue, kind, class, due_at, first, last)
    select 'jobs', q.kind::text, (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end), q.due_at, u.first, u.last
    from unnest(p_first, p_last) as u (first, last)
    join gleaner.jobs as q on q.id = u.first
    where q.lease = -1 and q.status = 'ready';
    get diagnostics v_count = row_count;
    if v_count <> cardinality(p_first) then
        raise exception 'rows of gleaner.jobs that are laid wait with the lease -1' using errcode = 'GL002';
    end if;
    perform set_config('gleaner.numbered_jobs', v_numbered::text, true);
end
$$;

ALTER FUNCTION gleaner.lay_jobs(p_first bigint[], p_last bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.leave_sheaf() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION gleaner.leave_sheaf() IS 'A deleted row leaves the sheaf that held it.';

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
        perform gleaner.audit_link(array[p_activity], 'link', v_sender.contact_id, p_contact);
    end if;
    if v_others <> '{}' then
        update public.activities as a set contact_id = p_contact where a.id = any (v_others);
        perform gleaner.audit_link(v_others, 'link', null, p_contact);
    end if;

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

CREATE FUNCTION gleaner.look_again(p_kind text, p_addresses text[], p_since timestamp with time zone) RETURNS integer
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
          and a.sender_kind = p_kind and a.sender_address = any (p_addresses) and a.created_at >= p_since
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

COMMENT ON FUNCTION gleaner.look_again(p_kind text, p_addresses text[], p_since timestamp with time zone) IS 'Looks again for the contact of unmatched activities of these senders.';

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

CREATE FUNCTION gleaner.loosen_jobs(p_ids bigint[], p_sheaf bigint DEFAULT NULL::bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
declare
    v_wanted int8multirange := (select range_agg(int8range(i, i, '[]')) from unnest(p_ids) as i);
    v_sheaf  gleaner.sheaf;
begin
    if cardinality(p_ids) = 0 then
        return;
    end if;
    for v_sheaf in
        select s.*
        from gleaner.sheaf as s
        where s.queue = 'jobs' and (p_sheaf is null or s.id = p_sheaf) and (v_wanted is null or s.keys && v_wanted)
        order by s.id
        for update
    loop
        -- Those that were cancelled, buried or finished by hand meanwhile have a lease of their own.
        update gleaner.jobs as q
        set status = 'running',
            due_at = v_sheaf.due_at,
            lease = -v_sheaf.id,
            deadline_at = v_sheaf.deadline_at,
            started = case when v_sheaf.begun @> k.id then 1 else 0 end,
            agent = v_sheaf.agent,
            session = v_sheaf.session
        from (select i as id
              from unnest(coalesce(v_sheaf.keys * v_wanted, v_sheaf.keys)) as r, generate_series(lower(r), upper(r) - 1) as i
              order by i) as k
        where q.id = k.id and q.lease in (0, -1) and q.status = 'ready';
        if v_sheaf.keys <@ coalesce(v_wanted, v_sheaf.keys) then
            delete from gleaner.sheaf as s where s.id = v_sheaf.id;
        else
            update gleaner.sheaf as s set keys = s.keys - v_wanted where s.id = v_sheaf.id;
        end if;
    end loop;
end
$$;

ALTER FUNCTION gleaner.loosen_jobs(p_ids bigint[], p_sheaf bigint) OWNER TO gleaner_engine;

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

CREATE FUNCTION gleaner.next_due_activities(p_owner bigint DEFAULT NULL::bigint, p_kinds text[] DEFAULT NULL::text[]) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
    v_at     timestamptz;
    v_until  timestamptz;
    v_passed uuid[];
begin
    -- Claims step over rows that refused a change a moment ago; who waits for one of those waits until it is tried again.
    select coalesce(array_agg(o.key::uuid), '{}'), min(o.until)
    into v_passed, v_until
    from gleaner.offender as o where o.queue = 'activities' and o.until > clock_timestamp();
    p_owner := gleaner.own_activities(p_owner);
    select least(
        (select min(p.at)
            from unnest(coalesce(p_kinds::text[], array(
                    with recursive kinds as (
                        (select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                         where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null order by (hashtextextended(q.type collate "C", 0) & -16) limit 1)
                        union all
                        select next.lane, next.kind
                        from kinds
                        cross join lateral (
                            select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                            where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > (kinds.lane | 15)
                            order by (hashtextextended(q.type collate "C", 0) & -16) limit 1
                        ) as next
                    )
                    select k.kind from kinds as k))) as l (kind) cross join generate_series(0, 0) as c (class)
            cross join lateral (
                select q.due_at as at from public.activities as q
                where q.sales_id = p_owner and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.type = l.kind and q.id <> all (v_passed)
                order by q.due_at, q.id limit 1
            ) as p),
        (select min(p.at)
            from unnest(coalesce(p_kinds::text[], array(
                    with recursive kinds as (
                        (select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                         where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null order by (hashtextextended(q.type collate "C", 0) & -16) limit 1)
                        union all
                        select next.lane, next.kind
                        from kinds
                        cross join lateral (
                            select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                            where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > (kinds.lane | 15)
                            order by (hashtextextended(q.type collate "C", 0) & -16) limit 1
                        ) as next
                    )
                    select k.kind from kinds as k))) as l (kind) cross join generate_series(0, 0) as c (class)
            cross join lateral (
                select q.due_at as at from public.activities as q
                where q.sales_id is null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.type = l.kind and q.id <> all (v_passed)
                order by q.due_at, q.id limit 1
            ) as p),
        (select min(p.at)
            from unnest(coalesce(p_kinds::text[], array(
                    with recursive kinds as (
                        (select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                         where q.sales_id is not null and q.open_at is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null order by (hashtextextended(q.type collate "C", 0) & -16) limit 1)
                        union all
                        select next.lane, next.kind
                        from kinds
                        cross join lateral (
                            select (hashtextextended(q.type collate "C", 0) & -16) as lane, q.type as kind from public.activities as q
                            where q.sales_id is not null and q.open_at is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) > (kinds.lane | 15)
                            order by (hashtextextended(q.type collate "C", 0) & -16) limit 1
                        ) as next
                    )
                    select k.kind from kinds as k))) as l (kind) cross join generate_series(0, 0) as c (class)
            cross join lateral (
                select q.open_at as at from public.activities as q
                where q.sales_id is not null and q.open_at is not null and q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.type = l.kind and q.id <> all (v_passed)
                order by q.open_at, q.id limit 1
            ) as p))
    into v_at;
    v_at := least(v_at, v_until);
    -- Not by greatest alone, which passes over a null: nothing waits would read as due now.
    return case when v_at is not null then greatest(v_at - clock_timestamp(), interval '0') end;
end
$$;

ALTER FUNCTION gleaner.next_due_activities(p_owner bigint, p_kinds text[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.next_due_dumps() RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
    v_at     timestamptz;
    v_until  timestamptz;
    v_passed uuid[];
begin
    -- Claims step over rows that refused a change a moment ago; who waits for one of those waits until it is tried again.
    select coalesce(array_agg(o.key::uuid), '{}'), min(o.until)
    into v_passed, v_until
    from gleaner.offender as o where o.queue = 'dumps' and o.until > clock_timestamp();
    select min(p.at)
            from generate_series(0, 0) as c (class)
            cross join lateral (
                select q.due_at as at from public.agent_processing_queue as q
                where true and q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null and q.id <> all (v_passed)
                order by q.due_at, q.id limit 1
            ) as p
    into v_at;
    v_at := least(v_at, v_until);
    -- Not by greatest alone, which passes over a null: nothing waits would read as due now.
    return case when v_at is not null then greatest(v_at - clock_timestamp(), interval '0') end;
end
$$;

ALTER FUNCTION gleaner.next_due_dumps() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.next_due_followups(p_kinds text[] DEFAULT NULL::text[]) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
    v_at     timestamptz;
    v_until  timestamptz;
    v_passed uuid[];
begin
    -- Claims step over rows that refused a change a moment ago; who waits for one of those waits until it is tried again.
    select coalesce(array_agg(o.key::uuid), '{}'), min(o.until)
    into v_passed, v_until
    from gleaner.offender as o where o.queue = 'followups' and o.until > clock_timestamp();
    select min(p.at)
            from unnest(coalesce(p_kinds::text[], array(
                    with recursive kinds as (
                        (select (hashtextextended(q.action_type collate "C", 0) & -16) as lane, q.action_type as kind from public.scheduled_actions as q
                         where true and q.status in ('pending', 'processing', 'failed') and q.due_at is not null order by (hashtextextended(q.action_type collate "C", 0) & -16) limit 1)
                        union all
                        select next.lane, next.kind
                        from kinds
                        cross join lateral (
                            select (hashtextextended(q.action_type collate "C", 0) & -16) as lane, q.action_type as kind from public.scheduled_actions as q
                            where true and q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) > (kinds.lane | 15)
                            order by (hashtextextended(q.action_type collate "C", 0) & -16) limit 1
                        ) as next
                    )
                    select k.kind from kinds as k))) as l (kind) cross join generate_series(0, 0) as c (class)
            cross join lateral (
                select q.due_at as at from public.scheduled_actions as q
                where true and q.status in ('pending', 'processing', 'failed') and q.due_at is not null and (hashtextextended(q.action_type collate "C", 0) & -16) = (hashtextextended(l.kind collate "C", 0) & -16) and q.action_type = l.kind and q.id <> all (v_passed)
                order by q.due_at, q.id limit 1
            ) as p
    into v_at;
    v_at := least(v_at, v_until);
    -- Not by greatest alone, which passes over a null: nothing waits would read as due now.
    return case when v_at is not null then greatest(v_at - clock_timestamp(), interval '0') end;
end
$$;

ALTER FUNCTION gleaner.next_due_followups(p_kinds text[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.next_due_jobs(p_kinds text[] DEFAULT NULL::text[]) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
    v_at     timestamptz;
    v_until  timestamptz;
    v_passed bigint[];
    v_sheaves int8multirange;
    v_lapses  timestamptz;
    v_swath   timestamptz;
begin
    -- Claims step over rows that refused a change a moment ago; who waits for one of those waits until it is tried again.
    select coalesce(array_agg(o.key::bigint), '{}'), min(o.until)
    into v_passed, v_until
    from gleaner.offender as o where o.queue = 'jobs' and o.until > clock_timestamp();
    select coalesce(range_agg(s.keys), '{}'), min(s.due_at) into v_sheaves, v_lapses from gleaner.sheaf as s where s.queue = 'jobs';
    select min(head.due_at)
    into v_swath
    from unnest(coalesce(p_kinds, array(
                    with recursive kinds as (
                        (select s.kind from gleaner.swath as s where s.queue = 'jobs' order by s.kind limit 1)
                        union all
                        select next.kind
                        from kinds
                        cross join lateral (
                            select s.kind from gleaner.swath as s where s.queue = 'jobs' and s.kind > kinds.kind order by s.kind limit 1
                        ) as next
                    )
                    select k.kind from kinds as k))) as k (kind)
    cross join generate_series(0, 3) as c (class)
    cross join lateral (
        select s.due_at from gleaner.swath as s
        where s.queue = 'jobs' and s.kind = k.kind and s.class = c.class order by s.due_at, s.first limit 1
    ) as head;
    select min(p.at)
            from unnest(coalesce(p_kinds::text[], array(
                    with recursive kinds as (
                        (select ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) as lane, q.kind as kind from gleaner.jobs as q
                         where true and q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null order by ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) limit 1)
                        union all
                        select next.lane, next.kind
                        from kinds
                        cross join lateral (
                            select ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) as lane, q.kind as kind from gleaner.jobs as q
                            where true and q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) > (kinds.lane | 15)
                            order by ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) limit 1
                        ) as next
                    )
                    select k.kind from kinds as k))) as l (kind) cross join generate_series(0, 3) as c (class)
            cross join lateral (
                select q.due_at as at from gleaner.jobs as q
                where true and q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null and ((hashtextextended(q.kind collate "C", 0) & -16) + (case when q.priority >= 2 then 0 when q.priority >= 1 then 1 when q.priority >= 0 then 2 else 3 end)) = ((hashtextextended(l.kind collate "C", 0) & -16) + c.class) and q.kind = l.kind and q.id <> all (v_passed) and (q.lease <> 0 or not v_sheaves @> q.id)
                order by q.due_at, q.id limit 1
            ) as p
    into v_at;
    v_at := least(v_at, v_until, v_lapses, v_swath);
    -- Not by greatest alone, which passes over a null: nothing waits would read as due now.
    return case when v_at is not null then greatest(v_at - clock_timestamp(), interval '0') end;
end
$$;

ALTER FUNCTION gleaner.next_due_jobs(p_kinds text[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.next_due_polls() RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
    v_at     timestamptz;
    v_until  timestamptz;
    v_passed uuid[];
begin
    -- Claims step over rows that refused a change a moment ago; who waits for one of those waits until it is tried again.
    select coalesce(array_agg(o.key::uuid), '{}'), min(o.until)
    into v_passed, v_until
    from gleaner.offender as o where o.queue = 'polls' and o.until > clock_timestamp();
    select min(p.at)
            from generate_series(0, 0) as c (class)
            cross join lateral (
                select q.due_at as at from gleaner.polls as q
                where true and q.status in ('ready', 'running', 'failed') and q.due_at is not null and q.provider_id <> all (v_passed)
                order by q.due_at, q.provider_id limit 1
            ) as p
    into v_at;
    v_at := least(v_at, v_until);
    -- Not by greatest alone, which passes over a null: nothing waits would read as due now.
    return case when v_at is not null then greatest(v_at - clock_timestamp(), interval '0') end;
end
$$;

ALTER FUNCTION gleaner.next_due_polls() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.next_due_runs() RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
    v_at     timestamptz;
    v_until  timestamptz;
    v_passed uuid[];
begin
    -- Claims step over rows that refused a change a moment ago; who waits for one of those waits until it is tried again.
    select coalesce(array_agg(o.key::uuid), '{}'), min(o.until)
    into v_passed, v_until
    from gleaner.offender as o where o.queue = 'runs' and o.until > clock_timestamp();
    select min(p.at)
            from generate_series(0, 0) as c (class)
            cross join lateral (
                select q.due_at as at from public.execution_jobs as q
                where true and q.status in ('queued', 'running', 'failed') and q.due_at is not null and q.id <> all (v_passed)
                order by q.due_at, q.id limit 1
            ) as p
    into v_at;
    v_at := least(v_at, v_until);
    -- Not by greatest alone, which passes over a null: nothing waits would read as due now.
    return case when v_at is not null then greatest(v_at - clock_timestamp(), interval '0') end;
end
$$;

ALTER FUNCTION gleaner.next_due_runs() OWNER TO gleaner_engine;

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
    -- Read from a sequence, which is current for old snapshots too: a serializable writer must not miss that somebody has come.
    if (select s.last_value from gleaner.changes_wanted_until as s) < extract(epoch from clock_timestamp()) * 1000 then
        return null;
    end if;
    -- Of an old row only the key is ever told, and that is among its first columns; who reads it checks.
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

CREATE FUNCTION gleaner.number_jobs(p_count integer) RETURNS TABLE(first bigint, last bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
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
    perform set_config('gleaner.numbered_jobs', (coalesce(nullif(current_setting('gleaner.numbered_jobs', true), ''), '{}')::int8multirange + v_pieces)::text, true);
    return query select lower(p), upper(p) - 1 from unnest(v_pieces) as p;
end
$$;

ALTER FUNCTION gleaner.number_jobs(p_count integer) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.open_activities(p_owner bigint, p_since timestamp with time zone, p_due timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
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
    -- Nobody came back to these; refreshing them is over as well.
    delete from auth.sessions as s where s.user_id = p_user and coalesce(s.refreshed_at, s.created_at) < v_now - interval '90 days';
    insert into auth.sessions (user_id, method, user_agent, ip, created_at) values (p_user, p_method, p_user_agent, p_ip, v_now) returning id into v_session;
    insert into auth.refresh_tokens (token, user_id, session_id) values (p_token, p_user, v_session);
    return jsonb_build_object('outcome', 'opened', 'session_id', v_session, 'method', p_method,
                              'signed_in_at', floor(extract(epoch from v_now)), 'user', gleaner.show_user(p_user));
end
$$;

COMMENT ON FUNCTION gleaner.open_session(p_user uuid, p_password text, p_token text, p_method text, p_user_agent text, p_ip inet) IS 'Signs a user in: a session and its first refresh token.';

CREATE FUNCTION gleaner.own_activities(p_owner bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
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
        select i.kind, i.address, i.loose, i.written_at, i.address is distinct from i.guess as is_new, count(*) over ()::integer as total
        from item as i
    loop
        v_read := v_new.total;
        if v_new.is_new and v_new.address is not null then
            perform gleaner.look_again(
                v_new.kind,
                array[v_new.address] || case v_new.kind
                    when 'phone' then gleaner.phone_aliases(v_new.address) || array_remove(array['+1' || v_new.loose], null) else '{}' end,
                v_new.written_at);
        end if;
    end loop;
    return coalesce(v_read, 0);
end
$_$;

COMMENT ON FUNCTION gleaner.parse_addresses(p_parsed jsonb) IS 'Puts what a server read of contacts'' addresses in the place of what SQL had guessed.';

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

CREATE FUNCTION gleaner.progress_activities(p_id uuid, p_lease bigint, p_stage text DEFAULT NULL::text, p_percent numeric DEFAULT NULL::numeric, p_partial jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text, due_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_due     timestamptz;
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_row     public.activities;
begin
    select q.* into v_row from public.activities as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text, null::timestamptz;
        return;
    end if;
    if v_row.lease is distinct from p_lease or v_row.processing_status not in ('processing') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.processing_status::text end, null::timestamptz;
        return;
    end if;
    v_due := v_row.due_at;
    if v_due - v_now < (interval '5 minutes') / 2 then
        -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
        v_due := greatest(v_due, least(v_now + interval '5 minutes', v_row.deadline_at));
    end if;
    -- What is written already is not written again: people's triggers and subscribers would all hear of it.
    if (p_stage is not null and p_stage is distinct from v_row.progress ->> 'stage'
        or p_percent is not null and to_jsonb(p_percent) is distinct from v_row.progress -> 'percent') or (p_partial is not null and (case when jsonb_typeof(v_row.processed_data) = 'object' and jsonb_typeof(p_partial) = 'object'
        then v_row.processed_data || p_partial else p_partial end) is distinct from v_row.processed_data)
       or v_due is distinct from v_row.due_at or v_row.started < v_started  then
        update public.activities as q
        set started = greatest(q.started, v_started),
            due_at = v_due,
            open_at = case when q.open_at is null then null else greatest(q.open_at, v_due) end,
            -- Programs that watch the lock's age by themselves must see that its holder lives.
            locked_at = case when v_due is distinct from q.due_at then v_now else q.locked_at end,
            progress = coalesce(q.progress, '{}') || jsonb_strip_nulls(jsonb_build_object('stage', p_stage, 'percent', p_percent, 'at', v_now)),
            processed_data = case when p_partial is null then q.processed_data
                when jsonb_typeof(q.processed_data) = 'object' and jsonb_typeof(p_partial) = 'object' then q.processed_data || p_partial
                else p_partial end
        where q.id = p_id;
    end if;
    return query select p_id, 'done', ('processing')::text, v_due;
end
$$;

ALTER FUNCTION gleaner.progress_activities(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.progress_dumps(p_id uuid, p_lease bigint, p_stage text DEFAULT NULL::text, p_percent numeric DEFAULT NULL::numeric, p_partial jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text, due_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_due     timestamptz;
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_row     public.agent_processing_queue;
begin
    select q.* into v_row from public.agent_processing_queue as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text, null::timestamptz;
        return;
    end if;
    if v_row.lease is distinct from p_lease or v_row.processing_state not in ('claimed'::public.processing_state, 'processing'::public.processing_state) or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.processing_state::text end, null::timestamptz;
        return;
    end if;
    v_due := v_row.due_at;
    if v_due - v_now < (interval '5 minutes') / 2 then
        -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
        v_due := greatest(v_due, least(v_now + interval '5 minutes', v_row.deadline_at));
    end if;
    -- What is written already is not written again: people's triggers and subscribers would all hear of it.
    if (p_stage is not null and p_stage is distinct from v_row.progress ->> 'stage'
        or p_percent is not null and to_jsonb(p_percent) is distinct from v_row.progress -> 'percent') or (p_partial is not null and (case when jsonb_typeof(v_row.result) = 'object' and jsonb_typeof(p_partial) = 'object'
        then v_row.result || p_partial else p_partial end) is distinct from v_row.result)
       or v_due is distinct from v_row.due_at or v_row.started < v_started or v_row.processing_state <> 'processing'::public.processing_state then
        update public.agent_processing_queue as q
        set started = greatest(q.started, v_started),
            due_at = v_due,
            processing_state = 'processing'::public.processing_state,
            progress = coalesce(q.progress, '{}') || jsonb_strip_nulls(jsonb_build_object('stage', p_stage, 'percent', p_percent, 'at', v_now)),
            result = case when p_partial is null then q.result
                when jsonb_typeof(q.result) = 'object' and jsonb_typeof(p_partial) = 'object' then q.result || p_partial
                else p_partial end
        where q.id = p_id;
    end if;
    return query select p_id, 'done', ('processing'::public.processing_state)::text, v_due;
end
$$;

ALTER FUNCTION gleaner.progress_dumps(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.progress_followups(p_id uuid, p_lease bigint, p_stage text DEFAULT NULL::text, p_percent numeric DEFAULT NULL::numeric, p_partial jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text, due_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_due     timestamptz;
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_row     public.scheduled_actions;
begin
    select q.* into v_row from public.scheduled_actions as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text, null::timestamptz;
        return;
    end if;
    if v_row.lease is distinct from p_lease or v_row.status not in ('processing') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.status::text end, null::timestamptz;
        return;
    end if;
    v_due := v_row.due_at;
    if v_due - v_now < (interval '5 minutes') / 2 then
        -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
        v_due := greatest(v_due, least(v_now + interval '5 minutes', v_row.deadline_at));
    end if;
    if false or v_due is distinct from v_row.due_at or v_row.started < v_started  then
        update public.scheduled_actions as q
        set started = greatest(q.started, v_started),
            due_at = v_due
        where q.id = p_id;
    end if;
    return query select p_id, 'done', ('processing')::text, v_due;
end
$$;

ALTER FUNCTION gleaner.progress_followups(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.progress_jobs(p_id bigint, p_lease bigint, p_stage text DEFAULT NULL::text, p_percent numeric DEFAULT NULL::numeric, p_partial jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id bigint, outcome text, status text, due_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_due     timestamptz;
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_row     gleaner.jobs;
begin
    if p_lease < 0 then
        perform gleaner.loosen_jobs(array[p_id], -p_lease);
    end if;
    select q.* into v_row from gleaner.jobs as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text, null::timestamptz;
        return;
    end if;
    if v_row.lease is distinct from p_lease or v_row.status not in ('running') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.status::text end, null::timestamptz;
        return;
    end if;
    v_due := v_row.due_at;
    if v_due - v_now < (interval '5 minutes') / 2 then
        -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
        v_due := greatest(v_due, least(v_now + interval '5 minutes', v_row.deadline_at));
    end if;
    -- What is written already is not written again: people's triggers and subscribers would all hear of it.
    if (p_stage is not null and p_stage is distinct from v_row.progress ->> 'stage'
        or p_percent is not null and to_jsonb(p_percent) is distinct from v_row.progress -> 'percent') or (p_partial is not null and (case when jsonb_typeof(v_row.result) = 'object' and jsonb_typeof(p_partial) = 'object'
        then v_row.result || p_partial else p_partial end) is distinct from v_row.result)
       or v_due is distinct from v_row.due_at or v_row.started < v_started  then
        update gleaner.jobs as q
        set started = greatest(q.started, v_started),
            due_at = v_due,
            progress = coalesce(q.progress, '{}') || jsonb_strip_nulls(jsonb_build_object('stage', p_stage, 'percent', p_percent, 'at', v_now)),
            result = case when p_partial is null then q.result
                when jsonb_typeof(q.result) = 'object' and jsonb_typeof(p_partial) = 'object' then q.result || p_partial
                else p_partial end
        where q.id = p_id;
    end if;
    return query select p_id, 'done', ('running')::text, v_due;
end
$$;

ALTER FUNCTION gleaner.progress_jobs(p_id bigint, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.progress_polls(p_id uuid, p_lease bigint, p_stage text DEFAULT NULL::text, p_percent numeric DEFAULT NULL::numeric, p_partial jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text, due_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_due     timestamptz;
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_row     gleaner.polls;
begin
    select q.* into v_row from gleaner.polls as q where q.provider_id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text, null::timestamptz;
        return;
    end if;
    if v_row.lease is distinct from p_lease or v_row.status not in ('running') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.status::text end, null::timestamptz;
        return;
    end if;
    v_due := v_row.due_at;
    if v_due - v_now < (interval '2 minutes') / 2 then
        -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
        v_due := greatest(v_due, least(v_now + interval '2 minutes', v_row.deadline_at));
    end if;
    if false or v_due is distinct from v_row.due_at or v_row.started < v_started  then
        update gleaner.polls as q
        set started = greatest(q.started, v_started),
            due_at = v_due
        where q.provider_id = p_id;
    end if;
    return query select p_id, 'done', ('running')::text, v_due;
end
$$;

ALTER FUNCTION gleaner.progress_polls(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.progress_runs(p_id uuid, p_lease bigint, p_stage text DEFAULT NULL::text, p_percent numeric DEFAULT NULL::numeric, p_partial jsonb DEFAULT NULL::jsonb) RETURNS TABLE(id uuid, outcome text, status text, due_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_due     timestamptz;
    -- A bare call is a sign of life. Only one that says something has passed a stage: for a queue that asks about lost
    -- leases, the sending has begun.
    v_started smallint := case when p_stage is null and p_percent is null and p_partial is null then 1 else 2 end;
    v_row     public.execution_jobs;
begin
    select q.* into v_row from public.execution_jobs as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text, null::timestamptz;
        return;
    end if;
    if v_row.lease is distinct from p_lease or v_row.status not in ('running') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.status::text end, null::timestamptz;
        return;
    end if;
    v_due := v_row.due_at;
    if v_due - v_now < (interval '30 minutes') / 2 then
        -- Never beyond the deadline, and never backwards for one who asked for a longer hold.
        v_due := greatest(v_due, least(v_now + interval '30 minutes', v_row.deadline_at));
    end if;
    -- What is written already is not written again: people's triggers and subscribers would all hear of it.
    if (p_stage is not null and p_stage is distinct from v_row.progress ->> 'stage'
        or p_percent is not null and to_jsonb(p_percent) is distinct from v_row.progress -> 'percent') or (p_partial is not null and (case when jsonb_typeof(v_row.result) = 'object' and jsonb_typeof(p_partial) = 'object'
        then v_row.result || p_partial else p_partial end) is distinct from v_row.result)
       or v_due is distinct from v_row.due_at or v_row.started < v_started  then
        update public.execution_jobs as q
        set started = greatest(q.started, v_started),
            due_at = v_due,
            progress = coalesce(q.progress, '{}') || jsonb_strip_nulls(jsonb_build_object('stage', p_stage, 'percent', p_percent, 'at', v_now)),
            result = case when p_partial is null then q.result
                when jsonb_typeof(q.result) = 'object' and jsonb_typeof(p_partial) = 'object' then q.result || p_partial
                else p_partial end
        where q.id = p_id;
    end if;
    return query select p_id, 'done', ('running')::text, v_due;
end
$$;

ALTER FUNCTION gleaner.progress_runs(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) OWNER TO gleaner_engine;

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
    AS $$
declare
    -- Read once: a clock that may move from row to row is nothing an index can be asked about.
    v_now        timestamptz := clock_timestamp();
    v_older_than interval := coalesce(p_older_than, null);
    v_before     timestamp with time zone;
    v_count      integer;
begin
    -- Evidence and lost answers are kept for a week, whatever the queue keeps.
    delete from gleaner.request as r where r.at < v_now - interval '1 day';
    delete from gleaner.late_result as l where l.queue = 'dumps' and l.at < v_now - interval '7 days';
    delete from gleaner.offender as o where o.queue = 'dumps' and o.until < v_now;
    if v_older_than is null then
        return 0;
    end if;
    v_before := v_now - v_older_than;
    delete from public.agent_processing_queue as q
    where q.id = any (array(
        select q.id
        from public.agent_processing_queue as q
        where q.completed_at < v_before
          and (q.processing_state in ('completed'::public.processing_state, 'cancelled'::public.processing_state) or q.processing_state = 'failed'::public.processing_state and q.due_at is null)
        limit p_limit
        for update skip locked));
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.prune_dumps(p_limit integer, p_older_than interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.prune_followups(p_limit integer DEFAULT 1000, p_older_than interval DEFAULT NULL::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    -- Read once: a clock that may move from row to row is nothing an index can be asked about.
    v_now        timestamptz := clock_timestamp();
    v_older_than interval := coalesce(p_older_than, null);
    v_before     timestamp with time zone;
    v_count      integer;
begin
    -- Evidence and lost answers are kept for a week, whatever the queue keeps.
    delete from gleaner.request as r where r.at < v_now - interval '1 day';
    delete from gleaner.late_result as l where l.queue = 'followups' and l.at < v_now - interval '7 days';
    delete from gleaner.offender as o where o.queue = 'followups' and o.until < v_now;
    if v_older_than is null then
        return 0;
    end if;
    v_before := v_now - v_older_than;
    delete from public.scheduled_actions as q
    where q.id = any (array(
        select q.id
        from public.scheduled_actions as q
        where q.finished_at < v_before
          and (q.status in ('executed', 'cancelled') or q.status = 'failed' and q.due_at is null)
        limit p_limit
        for update skip locked));
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.prune_followups(p_limit integer, p_older_than interval) OWNER TO gleaner_engine;

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
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_sort TO 'off'
    SET jit TO 'off'
    AS $$
declare
    -- Read once: a clock that may move from row to row is nothing an index can be asked about.
    v_now        timestamptz := clock_timestamp();
    v_older_than interval := coalesce(p_older_than, interval '7 days');
    v_before     timestamptz := v_now - v_older_than;
    v_until      timestamptz := statement_timestamp() + nullif(current_setting('statement_timeout')::interval, '0') / 2;
    v_count      integer := 0;
    v_begins     bigint;
    v_stretch    gleaner.stretch;
    v_upto       bigint;
    -- The slice: where it begins, how many rows it may have, how many it had, what they say, and where the next one begins.
    v_from       bigint;
    v_slice      integer;
    v_read       integer;
    v_last       bigint;
    v_young      timestamptz;
    v_oldest     timestamptz;
    v_created    timestamptz;
    v_old        bigint[];
    v_lying      bigint[];
    v_gone       integer;
    v_next       bigint;
    -- Why the walk ends here: with the stretch, with the limit or the time, or with rows that are all too young.
    v_whole      boolean;
    v_enough     boolean;
    v_too_young  boolean;
    -- What becomes one note: slices read one after the other, how many rows stayed of them, and the earliest end of those.
    v_part       bigint;
    v_stayed     integer;
    v_ended      timestamptz;
begin
    -- Evidence and lost answers are kept for a week, whatever the queue keeps.
    delete from gleaner.request as r where r.at < v_now - interval '1 day';
    delete from gleaner.late_result as l where l.queue = 'jobs' and l.at < v_now - interval '7 days';
    delete from gleaner.offender as o where o.queue = 'jobs' and o.until < v_now;
    if v_older_than is null then
        return 0;
    end if;
    -- Asked first, for an insert would wait for a call that is about to write the same note.
    if not exists (select from gleaner.stretch as s where s.queue = 'jobs' and s.begins = -9223372036854775808) then
        insert into gleaner.stretch (queue, begins, oldest, unread_since) values ('jobs', -9223372036854775808, '-infinity', v_now)
        on conflict do nothing;
    end if;
    <<walk>>
    for v_begins in
        select s.begins from gleaner.stretch as s where s.queue = 'jobs' and s.oldest < v_before order by s.oldest
    loop
        exit when v_count >= p_limit;
        select s.* into v_stretch
        from gleaner.stretch as s
        where s.queue = 'jobs' and s.begins = v_begins and s.oldest < v_before
        for update skip locked;
        continue when not found;
        delete from gleaner.stretch as s where s.queue = 'jobs' and s.begins = v_begins;
        v_upto := coalesce((select min(s.begins) - 1 from gleaner.stretch as s where s.queue = 'jobs' and s.begins > v_begins), 9223372036854775807);
        v_from := v_begins;
        v_part := v_begins;
        v_stayed := 0;
        v_ended := v_now;
        -- As many rows as may go: more would be read for nothing where all are old.
        v_slice := greatest(least(p_limit - v_count, 10000), 100);
        loop
            select count(*), max(s.id), min(s.ended) filter (where s.ended >= v_before), min(s.ended), min(s.created),
                   coalesce(array_agg(s.id) filter (where s.ended < v_before), '{}'), array_agg(s.id) filter (where s.lies)
            into v_read, v_last, v_young, v_oldest, v_created, v_old, v_lying
            from (select q.id as id,
                         case when (q.status in ('done', 'cancelled') or q.status = 'failed' and q.due_at is null) then q.finished_at end as ended,
                         q.lease = -1 and q.status = 'ready' as lies,
                         q.created_at as created
                  from gleaner.jobs as q
                  where q.id between v_from and v_upto
                  order by q.id
                  limit v_slice) as s;
            v_whole := v_read < v_slice or v_last = v_upto;
            v_next := case when v_whole and v_upto < 9223372036854775807 then v_upto + 1 else coalesce(v_last + (v_last < 9223372036854775807)::integer, v_from) end;
            v_stayed := v_stayed + v_read - cardinality(v_old);
            if cardinality(v_old) > p_limit - v_count then
                v_whole := false;
                v_next := v_old[p_limit - v_count + 1];
                v_old := v_old[:p_limit - v_count];
            end if;
            if v_lying is not null then
                -- Restored or copied without its swath a row would lie there for ever: it stands alone again.
                update gleaner.jobs as q set lease = 0
                where q.id = any (array(
                    select q.id
                    from gleaner.jobs as q
                    where q.id = any (v_lying) and q.lease = -1 and q.status = 'ready'
                      and not q.id <@ ((select gleaner.swaths('jobs')) + (select gleaner.sheaves('jobs')))
                    for no key update skip locked));
            end if;
            v_gone := 0;
            if cardinality(v_old) > 0 then
                delete from gleaner.jobs as q
                where q.id = any (array(
                    select q.id
                    from gleaner.jobs as q
                    where q.id = any (v_old) and (q.status in ('done', 'cancelled') or q.status = 'failed' and q.due_at is null)
                      and q.finished_at < v_before
                    for update skip locked));
                get diagnostics v_gone = row_count;
            end if;
            v_count := v_count + v_gone;
            -- What somebody has locked stays for the next call.
            v_stayed := v_stayed + cardinality(v_old) - v_gone;
            v_ended := least(v_ended, case when v_gone < cardinality(v_old) then v_oldest else v_young end);

            v_enough := v_count >= p_limit or coalesce(clock_timestamp() > v_until, false);
            v_too_young := coalesce(v_created >= v_before and v_now < v_stretch.unread_since + 2 * v_older_than, false);
            -- A part of which nothing stayed needs no note of its own: what may yet come there belongs to the part before.
            if v_whole or v_enough or v_too_young or v_stayed >= 10000 then
                if v_next > v_part and (v_stayed > 0 or v_part = -9223372036854775808) then
                    insert into gleaner.stretch (queue, begins, oldest, unread_since) values ('jobs', v_part, v_ended, null);
                end if;
                v_part := v_next;
                v_stayed := 0;
                v_ended := v_now;
            end if;
            if v_whole then
                if v_upto = 9223372036854775807 then
                    insert into gleaner.stretch (queue, begins, oldest, unread_since) values ('jobs', v_next, v_now, v_now);
                end if;
                exit;
            elsif v_enough then
                insert into gleaner.stretch (queue, begins, oldest, unread_since) values ('jobs', v_next, v_stretch.oldest, v_stretch.unread_since);
                exit walk;
            elsif v_too_young then
                -- Due by then, however young those are who come before.
                insert into gleaner.stretch (queue, begins, oldest, unread_since) values ('jobs', v_next, least(v_created, v_stretch.unread_since + v_older_than), v_stretch.unread_since);
                exit;
            end if;
            v_from := v_next;
            v_slice := case when cardinality(v_old) > 0 then greatest(least(p_limit - v_count, 10000), 100) else least(2 * v_slice, 10000) end;
        end loop;
    end loop;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.prune_jobs(p_limit integer, p_older_than interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.prune_runs(p_limit integer DEFAULT 1000, p_older_than interval DEFAULT NULL::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    -- Read once: a clock that may move from row to row is nothing an index can be asked about.
    v_now        timestamptz := clock_timestamp();
    v_older_than interval := coalesce(p_older_than, null);
    v_before     timestamp with time zone;
    v_count      integer;
begin
    -- Evidence and lost answers are kept for a week, whatever the queue keeps.
    delete from gleaner.request as r where r.at < v_now - interval '1 day';
    delete from gleaner.late_result as l where l.queue = 'runs' and l.at < v_now - interval '7 days';
    delete from gleaner.offender as o where o.queue = 'runs' and o.until < v_now;
    if v_older_than is null then
        return 0;
    end if;
    v_before := v_now - v_older_than;
    delete from public.execution_jobs as q
    where q.id = any (array(
        select q.id
        from public.execution_jobs as q
        where q.completed_at < v_before
          and (q.status in ('completed', 'cancelled') or q.status = 'failed' and q.due_at is null)
        limit p_limit
        for update skip locked));
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.prune_runs(p_limit integer, p_older_than interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.put_back_activities(p_row public.activities, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text DEFAULT NULL::text, p_message text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    if p_category is not null then
        p_row.metadata := jsonb_set(coalesce(p_row.metadata, '{}'), '{error}', jsonb_build_object('timestamp', v_now, 'type', p_category, 'message', p_message, 'agent_id', coalesce(p_row.agent, p_row.session), 'retry_count', p_attempts));
    end if;
    if p_lost > p_row.lost then
        p_row.metadata := jsonb_set(coalesce(p_row.metadata, '{}'), '{recovery_count}', to_jsonb(p_lost));
    end if;
    update public.activities as q
    set processing_status = p_status,
        due_at = p_due,
        -- Anew, by the owner's policy: the claim moved it to the end of a lease that is no more.
        open_at = case when q.sales_id is null then p_due
                         else gleaner.open_activities(q.sales_id, coalesce(q.created_at, p_due), p_due) end,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts,
        lost = p_lost,
        metadata = p_row.metadata,
deadline_at = null,
        started = 0,
        locked_by = null,
        locked_at = null
    where q.id = p_row.id;
    return p_status::text;
end
$$;

ALTER FUNCTION gleaner.put_back_activities(p_row public.activities, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.put_back_dumps(p_row public.agent_processing_queue, p_status public.processing_state, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text DEFAULT NULL::text, p_message text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    update public.agent_processing_queue as q
    set processing_state = p_status,
        due_at = p_due,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts,
        lost = p_lost,
        error_message = case when p_category is null then q.error_message else p_message end,
        completed_at = null,
deadline_at = null,
        started = 0
    where q.id = p_row.id;
    return p_status::text;
end
$$;

ALTER FUNCTION gleaner.put_back_dumps(p_row public.agent_processing_queue, p_status public.processing_state, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.put_back_followups(p_row public.scheduled_actions, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text DEFAULT NULL::text, p_message text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    update public.scheduled_actions as q
    set status = p_status,
        due_at = p_due,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts,
        lost = p_lost,
        error_message = case when p_category is null then q.error_message else p_message end,
        finished_at = null,
deadline_at = null,
        started = 0
    where q.id = p_row.id;
    return p_status::text;
end
$$;

ALTER FUNCTION gleaner.put_back_followups(p_row public.scheduled_actions, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.put_back_jobs(p_row gleaner.jobs, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text DEFAULT NULL::text, p_message text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    for v_try in 1 .. 5 loop
        if p_row.unique_key is not null and exists (
            select from gleaner.jobs as q
            where q.unique_key = p_row.unique_key
              and q.status in ('ready', 'failed') and q.due_at is not null
              and q.id <> p_row.id
        ) then
            update gleaner.jobs as q
            set status = 'cancelled',
                due_at = null,
                lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
                error = jsonb_build_object('timestamp', v_now, 'type', 'Superseded', 'message', 'superseded by a waiting row with the same key', 'agent_id', coalesce(q.agent, q.session), 'retry_count', q.attempts),
                finished_at = v_now,
deadline_at = null,
        started = 0
            where q.id = p_row.id;
            return ('cancelled')::text;
        end if;
        begin
    update gleaner.jobs as q
    set status = p_status,
        due_at = p_due,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts,
        lost = p_lost,
        error = case when p_category is null then q.error else jsonb_build_object('timestamp', v_now, 'type', p_category, 'message', p_message, 'agent_id', coalesce(q.agent, q.session), 'retry_count', p_attempts) end,
        finished_at = null,
deadline_at = null,
        started = 0
    where q.id = p_row.id;
    return p_status::text;
        exception when unique_violation then
            -- The twin was enqueued between the look and the update; look again, now it can be seen.
            null;
        end;
    end loop;
    raise exception 'could not put % back: its unique key is contended', p_row.id using errcode = '40001';
end
$$;

ALTER FUNCTION gleaner.put_back_jobs(p_row gleaner.jobs, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.put_back_polls(p_row gleaner.polls, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text DEFAULT NULL::text, p_message text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    update gleaner.polls as q
    set status = p_status,
        due_at = p_due,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts,
        lost = p_lost,
deadline_at = null,
        started = 0
    where q.provider_id = p_row.provider_id;
    return p_status::text;
end
$$;

ALTER FUNCTION gleaner.put_back_polls(p_row gleaner.polls, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.put_back_runs(p_row public.execution_jobs, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text DEFAULT NULL::text, p_message text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    update public.execution_jobs as q
    set status = p_status,
        due_at = p_due,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts,
        lost = p_lost,
        error = case when p_category is null then q.error else p_message end,
        completed_at = null,
deadline_at = null,
        started = 0
    where q.id = p_row.id;
    return p_status::text;
end
$$;

ALTER FUNCTION gleaner.put_back_runs(p_row public.execution_jobs, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) OWNER TO gleaner_engine;

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

COMMENT ON FUNCTION gleaner.record_refusals(p_refusals jsonb) IS 'Adds to the count of requests turned away, per channel, minute and reason.';

CREATE FUNCTION gleaner.recover_activities(p_older_than interval DEFAULT '00:00:00'::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_count  integer := 0;
    v_lost   integer;
    v_reason text;
    v_row    public.activities;
begin
    for v_row in
        select q.*
        from public.activities as q
        where q.processing_status in ('processing') and q.due_at <= v_now - p_older_than
        order by q.id
        limit 1000
        for no key update skip locked
    loop
        v_lost := v_row.lost + case when v_row.started >= 1 then 1 else 0 end;
        v_reason := case when v_lost >= 3 then format('lost %s leases', v_lost) end;
        if v_reason is not null then
            perform gleaner.rest_activities(v_row, v_reason, 'Poison', v_row.attempts, v_lost);
        else
            perform gleaner.put_back_activities(v_row, 'raw', v_now, false, v_row.attempts, v_lost);
        end if;
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.recover_activities(p_older_than interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.recover_dumps(p_older_than interval DEFAULT '00:00:00'::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_count  integer := 0;
    v_lost   integer;
    v_reason text;
    v_row    public.agent_processing_queue;
begin
    for v_row in
        select q.*
        from public.agent_processing_queue as q
        where q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and q.due_at <= v_now - p_older_than
        order by q.id
        limit 1000
        for no key update skip locked
    loop
        v_lost := v_row.lost + case when v_row.started >= 1 then 1 else 0 end;
        v_reason := case when v_lost >= 3 then format('lost %s leases', v_lost) end;
        if v_reason is not null then
            perform gleaner.rest_dumps(v_row, v_reason, 'Poison', v_row.attempts, v_lost);
        else
            perform gleaner.put_back_dumps(v_row, 'pending'::public.processing_state, v_now, false, v_row.attempts, v_lost);
        end if;
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.recover_dumps(p_older_than interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.recover_followups(p_older_than interval DEFAULT '00:00:00'::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_count  integer := 0;
    v_lost   integer;
    v_reason text;
    v_row    public.scheduled_actions;
begin
    for v_row in
        select q.*
        from public.scheduled_actions as q
        where q.status in ('processing') and q.due_at <= v_now - p_older_than
        order by q.id
        limit 1000
        for no key update skip locked
    loop
        v_lost := v_row.lost + case when v_row.started >= 1 then 1 else 0 end;
        v_reason := case when v_row.status in ('processing') and v_row.started = 2 then 'outcome unknown: the lease ran out after the work had begun' when v_lost >= 3 then format('lost %s leases', v_lost) end;
        if v_reason is not null then
            perform gleaner.rest_followups(v_row, v_reason, case when v_row.started = 2 then 'OutcomeUnknown' else 'Poison' end, v_row.attempts, v_lost);
        else
            perform gleaner.put_back_followups(v_row, 'pending', v_now, false, v_row.attempts, v_lost);
        end if;
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.recover_followups(p_older_than interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.recover_jobs(p_older_than interval DEFAULT '00:00:00'::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_count  integer := 0;
    v_lost   integer;
    v_reason text;
    v_row    gleaner.jobs;
begin
    perform gleaner.loosen_jobs(null, s.id)
    from gleaner.sheaf as s where s.queue = 'jobs' and s.due_at <= v_now - p_older_than order by s.id;
    for v_row in
        select q.*
        from gleaner.jobs as q
        where q.status in ('running') and q.due_at <= v_now - p_older_than and q.lease <> -1
        order by q.id
        limit 1000
        for no key update skip locked
    loop
        v_lost := v_row.lost + case when v_row.started >= 1 then 1 else 0 end;
        v_reason := case when v_lost >= 3 then format('lost %s leases', v_lost) end;
        if v_reason is not null then
            perform gleaner.rest_jobs(v_row, v_reason, 'Poison', v_row.attempts, v_lost);
        else
            perform gleaner.put_back_jobs(v_row, 'ready', v_now, false, v_row.attempts, v_lost);
        end if;
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.recover_jobs(p_older_than interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.recover_polls(p_older_than interval DEFAULT '00:00:00'::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_count  integer := 0;
    v_lost   integer;
    v_reason text;
    v_row    gleaner.polls;
begin
    for v_row in
        select q.*
        from gleaner.polls as q
        where q.status in ('running') and q.due_at <= v_now - p_older_than
        order by q.provider_id
        limit 1000
        for no key update skip locked
    loop
        v_lost := v_row.lost + case when v_row.started >= 1 then 1 else 0 end;
        v_reason := case when v_lost >= 1000000 then format('lost %s leases', v_lost) end;
        if v_reason is not null then
            perform gleaner.rest_polls(v_row, v_reason, 'Poison', v_row.attempts, v_lost);
        else
            perform gleaner.put_back_polls(v_row, 'ready', v_now, false, v_row.attempts, v_lost);
        end if;
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.recover_polls(p_older_than interval) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.recover_runs(p_older_than interval DEFAULT '00:00:00'::interval) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_count  integer := 0;
    v_lost   integer;
    v_reason text;
    v_row    public.execution_jobs;
begin
    for v_row in
        select q.*
        from public.execution_jobs as q
        where q.status in ('running') and q.due_at <= v_now - p_older_than
        order by q.id
        limit 1000
        for no key update skip locked
    loop
        v_lost := v_row.lost + case when v_row.started >= 1 then 1 else 0 end;
        v_reason := case when v_lost >= 3 then format('lost %s leases', v_lost) end;
        if v_reason is not null then
            perform gleaner.rest_runs(v_row, v_reason, 'Poison', v_row.attempts, v_lost);
        else
            perform gleaner.put_back_runs(v_row, 'queued', v_now, false, v_row.attempts, v_lost);
        end if;
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$$;

ALTER FUNCTION gleaner.recover_runs(p_older_than interval) OWNER TO gleaner_engine;

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
    LANGUAGE plpgsql STABLE STRICT
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if not has_table_privilege('auth.users', 'select') then
        return;
    end if;
    if gleaner.find_ban(p_user) is not null then
        raise insufficient_privilege using
            message = 'User is banned',
            hint = 'An administrator can let the user in again: gleaner users enable.';
    end if;
end
$$;

COMMENT ON FUNCTION gleaner.refuse_banned(p_user uuid) IS 'Raises when the user of a token is banned or disabled.';

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

COMMENT ON FUNCTION gleaner.refuse_update() IS 'Refuses a plain update of what a queue with sheaves changes by acts alone.';

CREATE FUNCTION gleaner.release_activities(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[] := '{}';
    v_row     public.activities;
begin
    for v_row in
        select q.*
        from public.activities as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        continue when v_row.processing_status not in ('processing') or not (v_trusted or v_row.session = v_session);
        continue when not exists (select from unnest(p_ids, p_leases) as u (id, lease)
                                  where u.id = v_row.id and u.lease = v_row.lease);
        v_done := v_done || v_row.id;
        return query select v_row.id, 'done', gleaner.put_back_activities(
            v_row, 'raw', v_now, true, v_row.attempts, v_row.lost);
    end loop;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
select u.id,
           case
               when q.id is null then 'gone'
               when q.lease = u.lease + 1 and q.processing_status not in ('processing') then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.processing_status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join public.activities as q on q.id = u.id
    where u.id <> all (v_done);
    end if;
end
$$;

ALTER FUNCTION gleaner.release_activities(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.release_dumps(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[] := '{}';
    v_row     public.agent_processing_queue;
begin
    for v_row in
        select q.*
        from public.agent_processing_queue as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        continue when v_row.processing_state not in ('claimed'::public.processing_state, 'processing'::public.processing_state) or not (v_trusted or v_row.session = v_session);
        continue when not exists (select from unnest(p_ids, p_leases) as u (id, lease)
                                  where u.id = v_row.id and u.lease = v_row.lease);
        v_done := v_done || v_row.id;
        return query select v_row.id, 'done', gleaner.put_back_dumps(
            v_row, 'pending'::public.processing_state, v_now, true, v_row.attempts, v_row.lost);
    end loop;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
select u.id,
           case
               when q.id is null then 'gone'
               when q.lease = u.lease + 1 and q.processing_state not in ('claimed'::public.processing_state, 'processing'::public.processing_state) then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.processing_state::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join public.agent_processing_queue as q on q.id = u.id
    where u.id <> all (v_done);
    end if;
end
$$;

ALTER FUNCTION gleaner.release_dumps(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.release_followups(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[] := '{}';
    v_row     public.scheduled_actions;
begin
    for v_row in
        select q.*
        from public.scheduled_actions as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        continue when v_row.status not in ('processing') or not (v_trusted or v_row.session = v_session);
        continue when not exists (select from unnest(p_ids, p_leases) as u (id, lease)
                                  where u.id = v_row.id and u.lease = v_row.lease);
        v_done := v_done || v_row.id;
        return query select v_row.id, 'done', gleaner.put_back_followups(
            v_row, 'pending', v_now, true, v_row.attempts, v_row.lost);
    end loop;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
select u.id,
           case
               when q.id is null then 'gone'
               when q.lease = u.lease + 1 and q.status not in ('processing') then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join public.scheduled_actions as q on q.id = u.id
    where u.id <> all (v_done);
    end if;
end
$$;

ALTER FUNCTION gleaner.release_followups(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.release_jobs(p_ids bigint[], p_leases bigint[]) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    bigint[] := '{}';
    v_row     gleaner.jobs;
begin
    perform gleaner.loosen_jobs(array_agg(u.id), -u.lease)
    from unnest(p_ids, p_leases) as u (id, lease) where u.lease < 0 group by u.lease order by u.lease desc;
    for v_row in
        select q.*
        from gleaner.jobs as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        continue when v_row.status not in ('running') or not (v_trusted or v_row.session = v_session);
        continue when not exists (select from unnest(p_ids, p_leases) as u (id, lease)
                                  where u.id = v_row.id and u.lease = v_row.lease);
        v_done := v_done || v_row.id;
        return query select v_row.id, 'done', gleaner.put_back_jobs(
            v_row, 'ready', v_now, true, v_row.attempts, v_row.lost);
    end loop;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
select u.id,
           case
               when q.id is null then 'gone'
               when q.lease = u.lease + 1 and q.status not in ('running') then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join gleaner.jobs as q on q.id = u.id
    where u.id <> all (v_done);
    end if;
end
$$;

ALTER FUNCTION gleaner.release_jobs(p_ids bigint[], p_leases bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.release_polls(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[] := '{}';
    v_row     gleaner.polls;
begin
    for v_row in
        select q.*
        from gleaner.polls as q
        where q.provider_id = any (p_ids)
        order by q.provider_id
        for no key update
    loop
        continue when v_row.status not in ('running') or not (v_trusted or v_row.session = v_session);
        continue when not exists (select from unnest(p_ids, p_leases) as u (id, lease)
                                  where u.id = v_row.provider_id and u.lease = v_row.lease);
        v_done := v_done || v_row.provider_id;
        return query select v_row.provider_id, 'done', gleaner.put_back_polls(
            v_row, 'ready', v_now, true, v_row.attempts, v_row.lost);
    end loop;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
select u.id,
           case
               when q.provider_id is null then 'gone'
               when q.lease = u.lease + 1 and q.status not in ('running') then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join gleaner.polls as q on q.provider_id = u.id
    where u.id <> all (v_done);
    end if;
end
$$;

ALTER FUNCTION gleaner.release_polls(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.release_runs(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[] := '{}';
    v_row     public.execution_jobs;
begin
    for v_row in
        select q.*
        from public.execution_jobs as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        continue when v_row.status not in ('running') or not (v_trusted or v_row.session = v_session);
        continue when not exists (select from unnest(p_ids, p_leases) as u (id, lease)
                                  where u.id = v_row.id and u.lease = v_row.lease);
        v_done := v_done || v_row.id;
        return query select v_row.id, 'done', gleaner.put_back_runs(
            v_row, 'queued', v_now, true, v_row.attempts, v_row.lost);
    end loop;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
select u.id,
           case
               when q.id is null then 'gone'
               when q.lease = u.lease + 1 and q.status not in ('running') then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join public.execution_jobs as q on q.id = u.id
    where u.id <> all (v_done);
    end if;
end
$$;

ALTER FUNCTION gleaner.release_runs(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

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
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
    v_row public.activities;
begin
    for v_row in
        select q.*
        from public.activities as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        if v_row.processing_status = 'raw' and v_row.due_at <= v_now then
            return query select v_row.id, 'already', v_row.processing_status::text;
            continue;
        end if;
        insert into gleaner.audit (queue, key, act, caller, detail)
        values ('activities', v_row.id::text, 'requeue', gleaner.caller_session(), jsonb_build_object('from', v_row.processing_status));
        return query select v_row.id, 'done', gleaner.put_back_activities(v_row, 'raw', v_now, false, 0, 0);
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from public.activities as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.requeue_activities(p_ids uuid[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.requeue_dumps(p_ids uuid[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
    v_row public.agent_processing_queue;
begin
    for v_row in
        select q.*
        from public.agent_processing_queue as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        if v_row.processing_state = 'pending'::public.processing_state and v_row.due_at <= v_now then
            return query select v_row.id, 'already', v_row.processing_state::text;
            continue;
        end if;
        insert into gleaner.audit (queue, key, act, caller, detail)
        values ('dumps', v_row.id::text, 'requeue', gleaner.caller_session(), jsonb_build_object('from', v_row.processing_state));
        return query select v_row.id, 'done', gleaner.put_back_dumps(v_row, 'pending'::public.processing_state, v_now, false, 0, 0);
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from public.agent_processing_queue as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.requeue_dumps(p_ids uuid[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.requeue_followups(p_ids uuid[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
    v_row public.scheduled_actions;
begin
    for v_row in
        select q.*
        from public.scheduled_actions as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        if v_row.status = 'pending' and v_row.due_at <= v_now then
            return query select v_row.id, 'already', v_row.status::text;
            continue;
        end if;
        insert into gleaner.audit (queue, key, act, caller, detail)
        values ('followups', v_row.id::text, 'requeue', gleaner.caller_session(), jsonb_build_object('from', v_row.status));
        return query select v_row.id, 'done', gleaner.put_back_followups(v_row, 'pending', v_now, false, 0, 0);
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from public.scheduled_actions as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.requeue_followups(p_ids uuid[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.requeue_jobs(p_ids bigint[]) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
    v_row gleaner.jobs;
begin
    perform gleaner.loosen_jobs(p_ids);
    for v_row in
        select q.*
        from gleaner.jobs as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        if v_row.status = 'ready' and v_row.due_at <= v_now
           -- A stray, which waits where nobody looks, stands alone from now on.
           and (v_row.lease <> -1 or (gleaner.swaths('jobs') + gleaner.sheaves('jobs')) @> v_row.id) then
            return query select v_row.id, 'already', v_row.status::text;
            continue;
        end if;
        insert into gleaner.audit (queue, key, act, caller, detail)
        values ('jobs', v_row.id::text, 'requeue', gleaner.caller_session(), jsonb_build_object('from', v_row.status));
        return query select v_row.id, 'done', gleaner.put_back_jobs(v_row, 'ready', v_now, false, 0, 0);
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from gleaner.jobs as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.requeue_jobs(p_ids bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.requeue_polls(p_ids uuid[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
    v_row gleaner.polls;
begin
    for v_row in
        select q.*
        from gleaner.polls as q
        where q.provider_id = any (p_ids)
        order by q.provider_id
        for no key update
    loop
        if v_row.status = 'ready' and v_row.due_at <= v_now then
            return query select v_row.provider_id, 'already', v_row.status::text;
            continue;
        end if;
        insert into gleaner.audit (queue, key, act, caller, detail)
        values ('polls', v_row.provider_id::text, 'requeue', gleaner.caller_session(), jsonb_build_object('from', v_row.status));
        return query select v_row.provider_id, 'done', gleaner.put_back_polls(v_row, 'ready', v_now, false, 0, 0);
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from gleaner.polls as q where q.provider_id = u.id);
end
$$;

ALTER FUNCTION gleaner.requeue_polls(p_ids uuid[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.requeue_runs(p_ids uuid[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now timestamptz := clock_timestamp();
    v_row public.execution_jobs;
begin
    for v_row in
        select q.*
        from public.execution_jobs as q
        where q.id = any (p_ids)
        order by q.id
        for no key update
    loop
        if v_row.status = 'queued' and v_row.due_at <= v_now then
            return query select v_row.id, 'already', v_row.status::text;
            continue;
        end if;
        insert into gleaner.audit (queue, key, act, caller, detail)
        values ('runs', v_row.id::text, 'requeue', gleaner.caller_session(), jsonb_build_object('from', v_row.status));
        return query select v_row.id, 'done', gleaner.put_back_runs(v_row, 'queued', v_now, false, 0, 0);
    end loop;
    return query
    select u.id, 'gone', null::text
    from unnest(p_ids) as u (id)
    where not exists (select from public.execution_jobs as q where q.id = u.id);
end
$$;

ALTER FUNCTION gleaner.requeue_runs(p_ids uuid[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.require_read_committed() RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'a claim needs read committed, this transaction is %', current_setting('transaction_isolation')
            using errcode = 'GL001',
                  hint = 'Claim in a transaction of its own, or begin it with: begin isolation level read committed';
    end if;
end
$$;

CREATE FUNCTION gleaner.rest_activities(p_row public.activities, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    p_row.metadata := jsonb_set(coalesce(p_row.metadata, '{}'), '{error}', jsonb_build_object('timestamp', v_now, 'type', p_category, 'message', p_reason, 'agent_id', coalesce(p_row.agent, p_row.session), 'retry_count', p_attempts));
    if p_lost > p_row.lost then
        p_row.metadata := jsonb_set(coalesce(p_row.metadata, '{}'), '{recovery_count}', to_jsonb(p_lost));
    end if;
    update public.activities as q
    set processing_status = 'failed',
        due_at = null,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts,
        lost = p_lost,
        metadata = p_row.metadata,
deadline_at = null,
        started = 0,
        locked_by = null,
        locked_at = null
    where q.id = p_row.id;
    perform gleaner.dead_letter_activities(p_row, p_reason);
end
$$;

ALTER FUNCTION gleaner.rest_activities(p_row public.activities, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.rest_dumps(p_row public.agent_processing_queue, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    update public.agent_processing_queue as q
    set processing_state = 'failed'::public.processing_state,
        due_at = null,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts,
        lost = p_lost,
        error_message = p_reason,
        completed_at = v_now,
deadline_at = null,
        started = 0
    where q.id = p_row.id;
end
$$;

ALTER FUNCTION gleaner.rest_dumps(p_row public.agent_processing_queue, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.rest_followups(p_row public.scheduled_actions, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    update public.scheduled_actions as q
    set status = 'failed',
        due_at = null,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts,
        lost = p_lost,
        error_message = p_reason,
        finished_at = v_now,
deadline_at = null,
        started = 0
    where q.id = p_row.id;
end
$$;

ALTER FUNCTION gleaner.rest_followups(p_row public.scheduled_actions, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.rest_jobs(p_row gleaner.jobs, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    update gleaner.jobs as q
    set status = 'failed',
        due_at = null,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts,
        lost = p_lost,
        error = jsonb_build_object('timestamp', v_now, 'type', p_category, 'message', p_reason, 'agent_id', coalesce(q.agent, q.session), 'retry_count', p_attempts),
        finished_at = v_now,
deadline_at = null,
        started = 0
    where q.id = p_row.id;
end
$$;

ALTER FUNCTION gleaner.rest_jobs(p_row gleaner.jobs, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.rest_polls(p_row gleaner.polls, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    update gleaner.polls as q
    set status = 'failed',
        due_at = null,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts,
        lost = p_lost,
deadline_at = null,
        started = 0
    where q.provider_id = p_row.provider_id;
end
$$;

ALTER FUNCTION gleaner.rest_polls(p_row gleaner.polls, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.rest_runs(p_row public.execution_jobs, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
declare
    v_now timestamptz := clock_timestamp();
begin
    update public.execution_jobs as q
    set status = 'failed',
        due_at = null,
        lease = case when p_own then q.lease + 1 else greatest(q.lease + 2, (extract(epoch from v_now) * 1000000)::bigint) end,
        attempts = p_attempts,
        lost = p_lost,
        error = p_reason,
        completed_at = v_now,
deadline_at = null,
        started = 0
    where q.id = p_row.id;
end
$$;

ALTER FUNCTION gleaner.rest_runs(p_row public.execution_jobs, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean) OWNER TO gleaner_engine;

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

CREATE FUNCTION gleaner.sheaves(p_queue text) RETURNS int8multirange
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return (select coalesce(range_agg(s.keys), '{}') from gleaner.sheaf as s where s.queue = p_queue);
end
$$;

COMMENT ON FUNCTION gleaner.sheaves(p_queue text) IS 'Keys of the rows that sheaves hold in a queue.';

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

CREATE FUNCTION gleaner.snooze_activities(p_id uuid, p_lease bigint, p_until timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_row     public.activities;
begin
    if p_until is null then
        raise exception 'snooze needs a time' using errcode = 'GL002', hint = 'Pass p_until, for example now() + interval ''10 minutes''.';
    end if;
    select q.* into v_row from public.activities as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.lease = p_lease + 1 and v_row.processing_status not in ('processing') then
        return query select p_id, 'already', v_row.processing_status::text;
    elsif v_row.lease is distinct from p_lease or v_row.processing_status not in ('processing') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.processing_status::text end;
    else
        return query select p_id, 'done', gleaner.put_back_activities(
            v_row, 'raw', p_until, true, v_row.attempts, v_row.lost);
    end if;
end
$$;

ALTER FUNCTION gleaner.snooze_activities(p_id uuid, p_lease bigint, p_until timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.snooze_dumps(p_id uuid, p_lease bigint, p_until timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_row     public.agent_processing_queue;
begin
    if p_until is null then
        raise exception 'snooze needs a time' using errcode = 'GL002', hint = 'Pass p_until, for example now() + interval ''10 minutes''.';
    end if;
    select q.* into v_row from public.agent_processing_queue as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.lease = p_lease + 1 and v_row.processing_state not in ('claimed'::public.processing_state, 'processing'::public.processing_state) then
        return query select p_id, 'already', v_row.processing_state::text;
    elsif v_row.lease is distinct from p_lease or v_row.processing_state not in ('claimed'::public.processing_state, 'processing'::public.processing_state) or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.processing_state::text end;
    else
        return query select p_id, 'done', gleaner.put_back_dumps(
            v_row, 'pending'::public.processing_state, p_until, true, v_row.attempts, v_row.lost);
    end if;
end
$$;

ALTER FUNCTION gleaner.snooze_dumps(p_id uuid, p_lease bigint, p_until timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.snooze_followups(p_id uuid, p_lease bigint, p_until timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_row     public.scheduled_actions;
begin
    if p_until is null then
        raise exception 'snooze needs a time' using errcode = 'GL002', hint = 'Pass p_until, for example now() + interval ''10 minutes''.';
    end if;
    select q.* into v_row from public.scheduled_actions as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.lease = p_lease + 1 and v_row.status not in ('processing') then
        return query select p_id, 'already', v_row.status::text;
    elsif v_row.lease is distinct from p_lease or v_row.status not in ('processing') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.status::text end;
    else
        return query select p_id, 'done', gleaner.put_back_followups(
            v_row, 'pending', p_until, true, v_row.attempts, v_row.lost);
    end if;
end
$$;

ALTER FUNCTION gleaner.snooze_followups(p_id uuid, p_lease bigint, p_until timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.snooze_jobs(p_id bigint, p_lease bigint, p_until timestamp with time zone) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_row     gleaner.jobs;
begin
    if p_until is null then
        raise exception 'snooze needs a time' using errcode = 'GL002', hint = 'Pass p_until, for example now() + interval ''10 minutes''.';
    end if;
    if p_lease < 0 then
        perform gleaner.loosen_jobs(array[p_id], -p_lease);
    end if;
    select q.* into v_row from gleaner.jobs as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.lease = p_lease + 1 and v_row.status not in ('running') then
        return query select p_id, 'already', v_row.status::text;
    elsif v_row.lease is distinct from p_lease or v_row.status not in ('running') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.status::text end;
    else
        return query select p_id, 'done', gleaner.put_back_jobs(
            v_row, 'ready', p_until, true, v_row.attempts, v_row.lost);
    end if;
end
$$;

ALTER FUNCTION gleaner.snooze_jobs(p_id bigint, p_lease bigint, p_until timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.snooze_polls(p_id uuid, p_lease bigint, p_until timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_row     gleaner.polls;
begin
    if p_until is null then
        raise exception 'snooze needs a time' using errcode = 'GL002', hint = 'Pass p_until, for example now() + interval ''10 minutes''.';
    end if;
    select q.* into v_row from gleaner.polls as q where q.provider_id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.lease = p_lease + 1 and v_row.status not in ('running') then
        return query select p_id, 'already', v_row.status::text;
    elsif v_row.lease is distinct from p_lease or v_row.status not in ('running') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.status::text end;
    else
        return query select p_id, 'done', gleaner.put_back_polls(
            v_row, 'ready', p_until, true, v_row.attempts, v_row.lost);
    end if;
end
$$;

ALTER FUNCTION gleaner.snooze_polls(p_id uuid, p_lease bigint, p_until timestamp with time zone) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.snooze_runs(p_id uuid, p_lease bigint, p_until timestamp with time zone) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_row     public.execution_jobs;
begin
    if p_until is null then
        raise exception 'snooze needs a time' using errcode = 'GL002', hint = 'Pass p_until, for example now() + interval ''10 minutes''.';
    end if;
    select q.* into v_row from public.execution_jobs as q where q.id = p_id for no key update;
    if not found then
        return query select p_id, 'gone', null::text;
    elsif v_row.lease = p_lease + 1 and v_row.status not in ('running') then
        return query select p_id, 'already', v_row.status::text;
    elsif v_row.lease is distinct from p_lease or v_row.status not in ('running') or not (v_trusted or v_row.session = v_session) then
        return query select p_id, 'lost', case when (v_trusted or v_row.session = v_session) then v_row.status::text end;
    else
        return query select p_id, 'done', gleaner.put_back_runs(
            v_row, 'queued', p_until, true, v_row.attempts, v_row.lost);
    end if;
end
$$;

ALTER FUNCTION gleaner.snooze_runs(p_id uuid, p_lease bigint, p_until timestamp with time zone) OWNER TO gleaner_engine;

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

CREATE TABLE gleaner.swath (
    queue text NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    class smallint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    CONSTRAINT swath_not_empty CHECK ((first <= last))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

COMMENT ON TABLE gleaner.swath IS 'Rows that were put in together and wait together: one entry in the line for all of them.';

CREATE FUNCTION gleaner.spread_jobs(p_swath gleaner.swath, p_upto bigint) RETURNS bigint[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
declare
    v_now    timestamptz := clock_timestamp();
    v_last   bigint := least(p_swath.last, p_upto);
    v_stayed bigint[] := '{}';
    v_key    bigint;
    v_reason text;
begin
    begin
        update gleaner.jobs as q set lease = 0
        where q.id = any (array(
            select q.id from gleaner.jobs as q
            where q.id between p_swath.first and v_last and q.lease = -1 and q.status = 'ready'
            order by q.id
            for no key update skip locked));
    exception when others then
        -- Trouble of the moment is the caller's to retry; the rest is a row's fault.
        if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
            raise;
        end if;
    end;
    if v_last < p_swath.last then
        update gleaner.swath as s set first = v_last + 1 where s.queue = 'jobs' and s.kind = p_swath.kind and s.class = p_swath.class and s.due_at = p_swath.due_at and s.first = p_swath.first;
    else
        delete from gleaner.swath as s where s.queue = 'jobs' and s.kind = p_swath.kind and s.class = p_swath.class and s.due_at = p_swath.due_at and s.first = p_swath.first;
    end if;
    for v_key in
        select q.id from gleaner.jobs as q
        where q.id between p_swath.first and v_last and q.lease = -1 and q.status = 'ready'
        order by q.id
    loop
        v_reason := null;
        perform from gleaner.jobs as q where q.id = v_key and q.lease = -1 and q.status = 'ready' for no key update skip locked;
        if found then
            -- A check that does not hold, a trigger that raised or swallowed the change: one by one, so that the others are worked.
            begin
                update gleaner.jobs as q set lease = 0 where q.id = v_key;
                continue when not exists (select from gleaner.jobs as q where q.id = v_key and q.lease = -1 and q.status = 'ready');
                v_reason := 'a trigger swallowed the change';
            exception when others then
                if sqlstate ~ '^(40|53|57|58|XX|55P03)' then
                    raise;
                end if;
                v_reason := sqlerrm;
            end;
            insert into gleaner.offender as o (queue, key, until, reason)
            values ('jobs', v_key::text, v_now + interval '1 minute', v_reason)
            on conflict (queue, key) do update set until = excluded.until, reason = excluded.reason;
        end if;
        v_stayed := v_stayed || v_key;
        insert into gleaner.swath (queue, kind, class, due_at, first, last)
        values ('jobs', p_swath.kind, p_swath.class, case when v_reason is null then p_swath.due_at else v_now + interval '1 minute' end, v_key, v_key);
    end loop;
    return v_stayed;
end
$$;

ALTER FUNCTION gleaner.spread_jobs(p_swath gleaner.swath, p_upto bigint) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.start_activities(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[];
begin
    with changed as (
        update public.activities as q
        set started = greatest(q.started, 1)
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where q.id = u.id and q.lease = u.lease
          and q.processing_status in ('processing') and (v_trusted or q.session = v_session)
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    return query select d, 'done', ('processing')::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
select u.id,
           case
               when q.id is null then 'gone'
               when false then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.processing_status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join public.activities as q on q.id = u.id
    where u.id <> all (v_done);
    end if;
end
$$;

ALTER FUNCTION gleaner.start_activities(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.start_dumps(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[];
begin
    with changed as (
        update public.agent_processing_queue as q
        set started = greatest(q.started, 1),
            processing_state = 'processing'::public.processing_state
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where q.id = u.id and q.lease = u.lease
          and q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) and (v_trusted or q.session = v_session)
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    return query select d, 'done', ('processing'::public.processing_state)::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
select u.id,
           case
               when q.id is null then 'gone'
               when false then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.processing_state::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join public.agent_processing_queue as q on q.id = u.id
    where u.id <> all (v_done);
    end if;
end
$$;

ALTER FUNCTION gleaner.start_dumps(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.start_followups(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[];
begin
    with changed as (
        update public.scheduled_actions as q
        set started = greatest(q.started, 1)
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where q.id = u.id and q.lease = u.lease
          and q.status in ('processing') and (v_trusted or q.session = v_session)
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    return query select d, 'done', ('processing')::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
select u.id,
           case
               when q.id is null then 'gone'
               when false then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join public.scheduled_actions as q on q.id = u.id
    where u.id <> all (v_done);
    end if;
end
$$;

ALTER FUNCTION gleaner.start_followups(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.start_jobs(p_ids bigint[], p_leases bigint[]) RETURNS TABLE(id bigint, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    bigint[];
    v_of      bigint[];
    v_begun   bigint[] := '{}';
    v_sheaf   gleaner.sheaf;
begin
    for v_sheaf in
        select s.*
        from gleaner.sheaf as s
        where s.queue = 'jobs' and s.id = any (array(select distinct -l from unnest(p_leases) as l where l < 0)) and (v_trusted or s.session = v_session)
        order by s.id
        for update
    loop
        v_of := array(
            select u.id
            from unnest(p_ids, p_leases) as u (id, lease)
            join gleaner.jobs as q on q.id = u.id
            where u.lease = -v_sheaf.id and v_sheaf.keys @> u.id and q.lease in (0, -1) and q.status = 'ready');
        update gleaner.sheaf as s set begun = s.begun + (select range_agg(int8range(i, i, '[]')) from unnest(v_of) as i)
        where s.id = v_sheaf.id and cardinality(v_of) > 0;
        return query select d, 'done', ('running')::text from unnest(v_of) as d;
        v_begun := v_begun || v_of;
    end loop;
    with changed as (
        update gleaner.jobs as q
        set started = greatest(q.started, 1)
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where q.id = u.id and q.lease = u.lease
          and q.status in ('running') and (v_trusted or q.session = v_session)
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    return query select d, 'done', ('running')::text from unnest(v_done) as d;
    v_done := v_done || v_begun;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
select u.id,
           case
               when q.id is null then 'gone'
               when false then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join gleaner.jobs as q on q.id = u.id
    where u.id <> all (v_done);
    end if;
end
$$;

ALTER FUNCTION gleaner.start_jobs(p_ids bigint[], p_leases bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.start_polls(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[];
begin
    with changed as (
        update gleaner.polls as q
        set started = greatest(q.started, 1)
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where q.provider_id = u.id and q.lease = u.lease
          and q.status in ('running') and (v_trusted or q.session = v_session)
        returning q.provider_id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    return query select d, 'done', ('running')::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
select u.id,
           case
               when q.provider_id is null then 'gone'
               when false then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join gleaner.polls as q on q.provider_id = u.id
    where u.id <> all (v_done);
    end if;
end
$$;

ALTER FUNCTION gleaner.start_polls(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.start_runs(p_ids uuid[], p_leases bigint[]) RETURNS TABLE(id uuid, outcome text, status text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    v_trusted boolean := gleaner.is_trusted();
    v_session text := gleaner.caller_session();
    v_done    uuid[];
begin
    with changed as (
        update public.execution_jobs as q
        set started = greatest(q.started, 1)
        from (select * from unnest(p_ids, p_leases) as u (id, lease) order by u.id) as u
        where q.id = u.id and q.lease = u.lease
          and q.status in ('running') and (v_trusted or q.session = v_session)
        returning q.id as id
    )
    select coalesce(array_agg(changed.id), '{}') into v_done from changed;
    return query select d, 'done', ('running')::text from unnest(v_done) as d;
    if cardinality(v_done) < cardinality(p_ids) then
        return query
select u.id,
           case
               when q.id is null then 'gone'
               when false then 'already'
               else 'lost'
           end,
           case when (v_trusted or q.session = v_session) then q.status::text end
    from unnest(p_ids, p_leases) as u (id, lease)
    left join public.execution_jobs as q on q.id = u.id
    where u.id <> all (v_done);
    end if;
end
$$;

ALTER FUNCTION gleaner.start_runs(p_ids uuid[], p_leases bigint[]) OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.stats_activities() RETURNS TABLE(state text, count bigint, capped boolean, oldest timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now   timestamptz := clock_timestamp();
    v_known bigint := 0;
    v_part  record;
begin
    for v_part in
        select s.state, count(*) as n, min(s.at) as oldest
        from (
            select case when q.processing_status in ('processing') then case when q.due_at < v_now then 'expired' else 'running' end
                        when q.processing_status = 'failed' then 'backing off'
                        when q.due_at > v_now then 'scheduled'
                        else 'ready' end as state,
                   q.due_at as at
            from (select q.* from public.activities as q where q.processing_status in ('raw', 'processing', 'failed') and q.due_at is not null) as q
            limit 10001
        ) as s
        group by s.state
    loop
        v_known := v_known + v_part.n;
        state := v_part.state; count := v_part.n; oldest := v_part.oldest; capped := false;
        return next;
    end loop;
    if v_known > 10000 then
        state := 'waiting'; capped := true; oldest := null;
        count := v_known;
        return next;
    end if;
    select 'dead', count(*), count(*) > 10000, null::timestamptz
    into state, count, capped, oldest
    from (select from public.activities as q where q.processing_status = 'failed' and q.due_at is null limit 10001) as d;
    v_known := v_known + count;
    return next;
    if coalesce((select coalesce(sum(pg_relation_size(t.relid)), pg_relation_size('public.activities')) from pg_partition_tree('public.activities') as t), pg_relation_size('public.activities')) < 16 * 1024 * 1024 then
        -- A new table has no statistics yet, and reading this much takes milliseconds.
        select 'finished', count(*), false, null::timestamptz
        into state, count, capped, oldest
        from public.activities as q where q.processing_status in ('completed', 'cancelled');
    else
        select 'finished', greatest(c.reltuples::bigint - v_known, 0), true, null::timestamptz
        into state, count, capped, oldest
        from pg_class as c where c.oid = 'public.activities'::regclass;
    end if;
    return next;
end
$$;

ALTER FUNCTION gleaner.stats_activities() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.stats_dumps() RETURNS TABLE(state text, count bigint, capped boolean, oldest timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now   timestamptz := clock_timestamp();
    v_known bigint := 0;
    v_part  record;
begin
    for v_part in
        select s.state, count(*) as n, min(s.at) as oldest
        from (
            select case when q.processing_state in ('claimed'::public.processing_state, 'processing'::public.processing_state) then case when q.due_at < v_now then 'expired' else 'running' end
                        when q.processing_state = 'failed'::public.processing_state then 'backing off'
                        when q.due_at > v_now then 'scheduled'
                        else 'ready' end as state,
                   q.due_at as at
            from (select q.* from public.agent_processing_queue as q where q.processing_state in ('pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state) and q.due_at is not null) as q
            limit 10001
        ) as s
        group by s.state
    loop
        v_known := v_known + v_part.n;
        state := v_part.state; count := v_part.n; oldest := v_part.oldest; capped := false;
        return next;
    end loop;
    if v_known > 10000 then
        state := 'waiting'; capped := true; oldest := null;
        count := v_known;
        return next;
    end if;
    select 'dead', count(*), count(*) > 10000, null::timestamptz
    into state, count, capped, oldest
    from (select from public.agent_processing_queue as q where q.processing_state = 'failed'::public.processing_state and q.due_at is null limit 10001) as d;
    v_known := v_known + count;
    return next;
    if coalesce((select coalesce(sum(pg_relation_size(t.relid)), pg_relation_size('public.agent_processing_queue')) from pg_partition_tree('public.agent_processing_queue') as t), pg_relation_size('public.agent_processing_queue')) < 16 * 1024 * 1024 then
        -- A new table has no statistics yet, and reading this much takes milliseconds.
        select 'finished', count(*), false, null::timestamptz
        into state, count, capped, oldest
        from public.agent_processing_queue as q where q.processing_state in ('completed'::public.processing_state, 'cancelled'::public.processing_state);
    else
        select 'finished', greatest(c.reltuples::bigint - v_known, 0), true, null::timestamptz
        into state, count, capped, oldest
        from pg_class as c where c.oid = 'public.agent_processing_queue'::regclass;
    end if;
    return next;
end
$$;

ALTER FUNCTION gleaner.stats_dumps() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.stats_followups() RETURNS TABLE(state text, count bigint, capped boolean, oldest timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now   timestamptz := clock_timestamp();
    v_known bigint := 0;
    v_part  record;
begin
    for v_part in
        select s.state, count(*) as n, min(s.at) as oldest
        from (
            select case when q.status in ('processing') then case when q.due_at < v_now then 'expired' else 'running' end
                        when q.status = 'failed' then 'backing off'
                        when q.due_at > v_now then 'scheduled'
                        else 'ready' end as state,
                   q.due_at as at
            from (select q.* from public.scheduled_actions as q where q.status in ('pending', 'processing', 'failed') and q.due_at is not null) as q
            limit 10001
        ) as s
        group by s.state
    loop
        v_known := v_known + v_part.n;
        state := v_part.state; count := v_part.n; oldest := v_part.oldest; capped := false;
        return next;
    end loop;
    if v_known > 10000 then
        state := 'waiting'; capped := true; oldest := null;
        count := v_known;
        return next;
    end if;
    select 'dead', count(*), count(*) > 10000, null::timestamptz
    into state, count, capped, oldest
    from (select from public.scheduled_actions as q where q.status = 'failed' and q.due_at is null limit 10001) as d;
    v_known := v_known + count;
    return next;
    if coalesce((select coalesce(sum(pg_relation_size(t.relid)), pg_relation_size('public.scheduled_actions')) from pg_partition_tree('public.scheduled_actions') as t), pg_relation_size('public.scheduled_actions')) < 16 * 1024 * 1024 then
        -- A new table has no statistics yet, and reading this much takes milliseconds.
        select 'finished', count(*), false, null::timestamptz
        into state, count, capped, oldest
        from public.scheduled_actions as q where q.status in ('executed', 'cancelled');
    else
        select 'finished', greatest(c.reltuples::bigint - v_known, 0), true, null::timestamptz
        into state, count, capped, oldest
        from pg_class as c where c.oid = 'public.scheduled_actions'::regclass;
    end if;
    return next;
end
$$;

ALTER FUNCTION gleaner.stats_followups() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.stats_jobs() RETURNS TABLE(state text, count bigint, capped boolean, oldest timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now   timestamptz := clock_timestamp();
    v_known bigint := 0;
    v_part  record;
    v_sheaves int8multirange := gleaner.sheaves('jobs');
begin
    for v_part in
        select s.state, count(*) as n, min(s.at) as oldest
        from (
            select case when q.status in ('running') then case when q.due_at < v_now then 'expired' else 'running' end
                        when q.lease in (0, -1) and v_sheaves @> q.id then 'running'
                        when q.status = 'failed' then 'backing off'
                        when q.due_at > v_now then 'scheduled'
                        else 'ready' end as state,
                   q.due_at as at
            from (select q.* from gleaner.jobs as q where q.lease <> -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null union all
                select q.* from unnest(gleaner.swaths('jobs') + gleaner.sheaves('jobs')) as r cross join lateral (
                    select q.* from gleaner.jobs as q where q.id >= lower(r) and q.id < upper(r) order by q.id offset 0
                ) as q
                where q.lease = -1 and q.status in ('ready', 'running', 'failed') and q.due_at is not null) as q
            limit 10001
        ) as s
        group by s.state
    loop
        v_known := v_known + v_part.n;
        state := v_part.state; count := v_part.n; oldest := v_part.oldest; capped := false;
        return next;
    end loop;
    if v_known > 10000 then
        state := 'waiting'; capped := true; oldest := null;
        count := v_known;
        return next;
    end if;
    select 'dead', count(*), count(*) > 10000, null::timestamptz
    into state, count, capped, oldest
    from (select from gleaner.jobs as q where q.status = 'failed' and q.due_at is null limit 10001) as d;
    v_known := v_known + count;
    return next;
    if coalesce((select coalesce(sum(pg_relation_size(t.relid)), pg_relation_size('gleaner.jobs')) from pg_partition_tree('gleaner.jobs') as t), pg_relation_size('gleaner.jobs')) < 16 * 1024 * 1024 then
        -- A new table has no statistics yet, and reading this much takes milliseconds.
        select 'finished', count(*), false, null::timestamptz
        into state, count, capped, oldest
        from gleaner.jobs as q where q.status in ('done', 'cancelled');
    else
        select 'finished', greatest(c.reltuples::bigint - v_known, 0), true, null::timestamptz
        into state, count, capped, oldest
        from pg_class as c where c.oid = 'gleaner.jobs'::regclass;
    end if;
    return next;
end
$$;

ALTER FUNCTION gleaner.stats_jobs() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.stats_polls() RETURNS TABLE(state text, count bigint, capped boolean, oldest timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'gleaner', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now   timestamptz := clock_timestamp();
    v_known bigint := 0;
    v_part  record;
begin
    for v_part in
        select s.state, count(*) as n, min(s.at) as oldest
        from (
            select case when q.status in ('running') then case when q.due_at < v_now then 'expired' else 'running' end
                        when q.status = 'failed' then 'backing off'
                        when q.due_at > v_now then 'scheduled'
                        else 'ready' end as state,
                   q.due_at as at
            from (select q.* from gleaner.polls as q where q.status in ('ready', 'running', 'failed') and q.due_at is not null) as q
            limit 10001
        ) as s
        group by s.state
    loop
        v_known := v_known + v_part.n;
        state := v_part.state; count := v_part.n; oldest := v_part.oldest; capped := false;
        return next;
    end loop;
    if v_known > 10000 then
        state := 'waiting'; capped := true; oldest := null;
        count := v_known;
        return next;
    end if;
    select 'dead', count(*), count(*) > 10000, null::timestamptz
    into state, count, capped, oldest
    from (select from gleaner.polls as q where q.status = 'failed' and q.due_at is null limit 10001) as d;
    v_known := v_known + count;
    return next;
    if coalesce((select coalesce(sum(pg_relation_size(t.relid)), pg_relation_size('gleaner.polls')) from pg_partition_tree('gleaner.polls') as t), pg_relation_size('gleaner.polls')) < 16 * 1024 * 1024 then
        -- A new table has no statistics yet, and reading this much takes milliseconds.
        select 'finished', count(*), false, null::timestamptz
        into state, count, capped, oldest
        from gleaner.polls as q where q.status in ('done');
    else
        select 'finished', greatest(c.reltuples::bigint - v_known, 0), true, null::timestamptz
        into state, count, capped, oldest
        from pg_class as c where c.oid = 'gleaner.polls'::regclass;
    end if;
    return next;
end
$$;

ALTER FUNCTION gleaner.stats_polls() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.stats_runs() RETURNS TABLE(state text, count bigint, capped boolean, oldest timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    v_now   timestamptz := clock_timestamp();
    v_known bigint := 0;
    v_part  record;
begin
    for v_part in
        select s.state, count(*) as n, min(s.at) as oldest
        from (
            select case when q.status in ('running') then case when q.due_at < v_now then 'expired' else 'running' end
                        when q.status = 'failed' then 'backing off'
                        when q.due_at > v_now then 'scheduled'
                        else 'ready' end as state,
                   q.due_at as at
            from (select q.* from public.execution_jobs as q where q.status in ('queued', 'running', 'failed') and q.due_at is not null) as q
            limit 10001
        ) as s
        group by s.state
    loop
        v_known := v_known + v_part.n;
        state := v_part.state; count := v_part.n; oldest := v_part.oldest; capped := false;
        return next;
    end loop;
    if v_known > 10000 then
        state := 'waiting'; capped := true; oldest := null;
        count := v_known;
        return next;
    end if;
    select 'dead', count(*), count(*) > 10000, null::timestamptz
    into state, count, capped, oldest
    from (select from public.execution_jobs as q where q.status = 'failed' and q.due_at is null limit 10001) as d;
    v_known := v_known + count;
    return next;
    if coalesce((select coalesce(sum(pg_relation_size(t.relid)), pg_relation_size('public.execution_jobs')) from pg_partition_tree('public.execution_jobs') as t), pg_relation_size('public.execution_jobs')) < 16 * 1024 * 1024 then
        -- A new table has no statistics yet, and reading this much takes milliseconds.
        select 'finished', count(*), false, null::timestamptz
        into state, count, capped, oldest
        from public.execution_jobs as q where q.status in ('completed', 'cancelled');
    else
        select 'finished', greatest(c.reltuples::bigint - v_known, 0), true, null::timestamptz
        into state, count, capped, oldest
        from pg_class as c where c.oid = 'public.execution_jobs'::regclass;
    end if;
    return next;
end
$$;

ALTER FUNCTION gleaner.stats_runs() OWNER TO gleaner_engine;

CREATE FUNCTION gleaner.swaths(p_queue text) RETURNS int8multirange
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return (select coalesce(range_agg(int8range(s.first, s.last, '[]')), '{}') from gleaner.swath as s where s.queue = p_queue);
end
$$;

COMMENT ON FUNCTION gleaner.swaths(p_queue text) IS 'Keys of the rows that lie in swaths of a queue.';

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
    update public.activities as a
    set contact_id = null,
        metadata = case when jsonb_typeof(coalesce(a.metadata, '{}')) = 'object'
            then coalesce(a.metadata, '{}') || jsonb_build_object('match', jsonb_build_object('method', 'unlinked', 'candidates', array[v_contact]))
            else a.metadata end
    where a.id = p_activity;
    perform gleaner.audit_link(array[p_activity], 'unlink', v_contact, null);
    return query select p_activity, 'done';
end
$$;

COMMENT ON FUNCTION gleaner.unlink_activity(p_activity uuid) IS 'Takes an activity from the contact it is linked to.';

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
    -- To the minute, and never waiting for somebody who does the same.
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

COMMENT ON FUNCTION gleaner.worker_session() IS 'The session of a caller with a worker''s key; null for everybody else.';

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
    -- Nobody's address is that long, and it would not fit the index.
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
    -- Two statements: the second must see what the first changed.
    v_ids := array(
        select c.id
        from gleaner.cancel_followups_matching(jsonb_build_object('prospect_id', p_prospect_id), p_reason) as c
        where c.outcome = 'done');
    update public.scheduled_actions as a set cancelled_reason = p_reason where a.id = any (v_ids);
    return cardinality(v_ids);
end
$$;

COMMENT ON FUNCTION public.cancel_pending_for_prospect(p_prospect_id text, p_reason text) IS 'Calls off every unfinished action of a prospect, running ones included; returns how many.';

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

COMMENT ON FUNCTION public.claim_next_pending_activity(p_agent_sales_id bigint) IS 'Takes one activity: the owner''s own, then nobody''s, then what another owner left standing too long.';

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

CREATE FUNCTION public.fn_block_create(p_basket_id uuid, p_title text, p_content text, p_semantic_type text, p_confidence_score numeric DEFAULT NULL::numeric) RETURNS uuid
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    insert into public.blocks as b (basket_id, title, content, semantic_type, confidence_score)
    values (p_basket_id, p_title, coalesce(p_content, ''), p_semantic_type, p_confidence_score)
    on conflict (basket_id, semantic_type, md5(title), md5(content))
    do update set confidence_score = coalesce(excluded.confidence_score, b.confidence_score)
    returning b.id
$$;

COMMENT ON FUNCTION public.fn_block_create(p_basket_id uuid, p_title text, p_content text, p_semantic_type text, p_confidence_score numeric) IS 'Stores one insight of a basket; returns its id.';

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

CREATE FUNCTION public.fn_context_item_upsert_bulk(p_basket_id uuid, p_items jsonb) RETURNS integer
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    with item as (
        select distinct on (item ->> 'kind', item ->> 'label')
               item ->> 'kind' as kind,
               item ->> 'label' as label,
               coalesce(nullif(item -> 'metadata', 'null'), '{}') as metadata
        from jsonb_array_elements(p_items) with ordinality as given (item, n)
        order by item ->> 'kind', item ->> 'label', n desc
    ), stored as (
        insert into public.context_items as c (basket_id, kind, label, metadata)
        select p_basket_id, item.kind, item.label, item.metadata
        from item
        order by item.kind, item.label
        on conflict on constraint context_items_basket_id_kind_label_key
        do update set metadata = c.metadata || excluded.metadata, updated_at = now()
        returning 1
    )
    select count(*)::integer from stored
$$;

COMMENT ON FUNCTION public.fn_context_item_upsert_bulk(p_basket_id uuid, p_items jsonb) IS 'Stores the entities of a basket, once each; returns how many.';

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
begin
    if tg_op = 'UPDATE' then
        delete from public.contact_addresses as a where a.contact_id = new.id;
    end if;
    insert into public.contact_addresses (contact_id, kind, address, written, loose, parsed)
    select new.id, l.kind, l.address, l.written, l.loose, l.parsed
    from public.list_contact_addresses(new.email, new.phone_number, new.email_jsonb, new.phone_jsonb) as l;
    return null;
end
$$;

COMMENT ON FUNCTION public.refresh_contact_addresses() IS 'Keeps contact_addresses in step with contacts.';

CREATE FUNCTION public.reset_stale_locks() RETURNS integer
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select gleaner.recover_activities()
$$;

COMMENT ON FUNCTION public.reset_stale_locks() IS 'Gives activities whose lease has ended back; returns how many.';

CREATE FUNCTION public.reset_stale_processing(p_stale_after_seconds integer DEFAULT 600) RETURNS integer
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select gleaner.recover_followups(make_interval(secs => greatest(p_stale_after_seconds - 300, 0)))
$$;

COMMENT ON FUNCTION public.reset_stale_processing(p_stale_after_seconds integer) IS 'Gives actions whose lease has ended back; returns how many.';

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
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    new.updated_at := clock_timestamp();
    if new.status is distinct from old.status then
        new.executed_at := case when new.status = 'executed' then coalesce(new.executed_at, new.updated_at) end;
    end if;
    return new;
end
$$;

COMMENT ON FUNCTION public.touch_scheduled_actions() IS 'Keeps updated_at and executed_at of follow-ups.';

CREATE FUNCTION public.unlock_stale_locks() RETURNS integer
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    select gleaner.recover_activities()
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
    CONSTRAINT migration_lock_single CHECK ((id = 1))
);

CREATE TABLE gleaner.offender (
    queue text NOT NULL,
    key text NOT NULL,
    until timestamp with time zone NOT NULL,
    reason text NOT NULL
);

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

CREATE TABLE gleaner.request (
    queue text NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    keys text[] DEFAULT '{}'::text[] NOT NULL,
    leases bigint[] DEFAULT '{}'::bigint[] NOT NULL
);

CREATE TABLE gleaner.sheaf (
    id bigint NOT NULL,
    queue text NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    keys int8multirange NOT NULL,
    begun int8multirange DEFAULT '{}'::int8multirange NOT NULL,
    agent text,
    session text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    deadline_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

COMMENT ON TABLE gleaner.sheaf IS 'Rows that one claim took together: one lease for all of them.';

ALTER TABLE gleaner.sheaf ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME gleaner.sheaf_id_seq
    START WITH 1000
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE gleaner.stretch (
    queue text NOT NULL,
    begins bigint NOT NULL,
    oldest timestamp with time zone NOT NULL,
    unread_since timestamp with time zone
);

COMMENT ON TABLE gleaner.stretch IS 'Stretches of keys that prune has walked, and the earliest end it left in each.';

COMMENT ON COLUMN gleaner.stretch.oldest IS 'Nothing in the stretch ended earlier: until this is too old, nobody need look.';

COMMENT ON COLUMN gleaner.stretch.unread_since IS 'Since when `oldest` is inferred from the rows before, and not read; null when it was read.';

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
    CONSTRAINT blocks_confidence_score_check CHECK (((confidence_score >= (0)::numeric) AND (confidence_score <= (1)::numeric)))
);

COMMENT ON TABLE public.blocks IS 'Structured insights extracted from dumps.';

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

COMMENT ON COLUMN public.contact_addresses.written_at IS 'Since when: messages that came later deserve a second look once it is parsed.';

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
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE public.raw_dumps IS 'Captured text, kept as it came; each one is queued for processing as it arrives.';

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
    CONSTRAINT substrate_relationships_from_type_check CHECK ((from_type = ANY (ARRAY['dump'::text, 'block'::text, 'context_item'::text]))),
    CONSTRAINT substrate_relationships_to_type_check CHECK ((to_type = ANY (ARRAY['dump'::text, 'block'::text, 'context_item'::text])))
);

COMMENT ON TABLE public.substrate_relationships IS 'How dumps, blocks and context items of a basket relate.';

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

ALTER TABLE gleaner.api_key
    ADD CONSTRAINT api_key_hash_key UNIQUE (hash);

ALTER TABLE gleaner.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);

ALTER TABLE gleaner.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);

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

ALTER TABLE gleaner.migration_lock
    ADD CONSTRAINT migration_lock_pkey PRIMARY KEY (id);

ALTER TABLE gleaner.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (name);

ALTER TABLE gleaner.offender
    ADD CONSTRAINT offender_pkey PRIMARY KEY (queue, key);

ALTER TABLE gleaner.polls
    ADD CONSTRAINT polls_pkey PRIMARY KEY (provider_id);

ALTER TABLE gleaner.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (name);

ALTER TABLE gleaner.queue
    ADD CONSTRAINT queue_table_name_key UNIQUE (table_name);

ALTER TABLE gleaner.raw_request
    ADD CONSTRAINT raw_request_pkey PRIMARY KEY (id);

ALTER TABLE gleaner.request
    ADD CONSTRAINT request_pkey PRIMARY KEY (queue, id);

ALTER TABLE gleaner.sheaf
    ADD CONSTRAINT sheaf_pkey PRIMARY KEY (id);

ALTER TABLE gleaner.stretch
    ADD CONSTRAINT stretch_pkey PRIMARY KEY (queue, begins);

ALTER TABLE gleaner.swath
    ADD CONSTRAINT swath_pkey PRIMARY KEY (queue, kind, class, due_at, first);

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

ALTER TABLE public.contacts
    ADD CONSTRAINT contacts_pkey PRIMARY KEY (id);

ALTER TABLE public.context_items
    ADD CONSTRAINT context_items_basket_id_kind_label_key UNIQUE (basket_id, kind, label);

ALTER TABLE public.context_items
    ADD CONSTRAINT context_items_pkey PRIMARY KEY (id);

ALTER TABLE public.crm_processing_nodes
    ADD CONSTRAINT crm_processing_nodes_pkey PRIMARY KEY (id);

ALTER TABLE public.crm_processing_nodes
    ADD CONSTRAINT crm_processing_nodes_sales_id_app_name_device_name_key UNIQUE (sales_id, app_name, device_name);

ALTER TABLE public.execution_jobs
    ADD CONSTRAINT execution_jobs_pkey PRIMARY KEY (id);

ALTER TABLE public.ingestion_providers
    ADD CONSTRAINT ingestion_providers_ingestion_key_key UNIQUE (ingestion_key);

ALTER TABLE public.ingestion_providers
    ADD CONSTRAINT ingestion_providers_pkey PRIMARY KEY (id);

ALTER TABLE public.raw_dumps
    ADD CONSTRAINT raw_dumps_pkey PRIMARY KEY (id);

ALTER TABLE public.sales
    ADD CONSTRAINT sales_pkey PRIMARY KEY (id);

ALTER TABLE public.scheduled_actions
    ADD CONSTRAINT scheduled_actions_pkey PRIMARY KEY (id);

ALTER TABLE public.substrate_relationships
    ADD CONSTRAINT substrate_relationships_once_key UNIQUE (basket_id, from_id, to_id, relationship_type);

ALTER TABLE public.substrate_relationships
    ADD CONSTRAINT substrate_relationships_pkey PRIMARY KEY (id);

ALTER TABLE public.workspaces
    ADD CONSTRAINT workspaces_pkey PRIMARY KEY (id);

CREATE INDEX identities_user_id_idx ON auth.identities USING btree (user_id);

CREATE INDEX one_time_tokens_user_id_idx ON auth.one_time_tokens USING btree (user_id);

CREATE INDEX refresh_tokens_session_id_idx ON auth.refresh_tokens USING btree (session_id);

CREATE INDEX sessions_user_id_idx ON auth.sessions USING btree (user_id);

CREATE UNIQUE INDEX api_key_name_key ON gleaner.api_key USING btree (name) WHERE (revoked_at IS NULL);

CREATE INDEX audit_key_idx ON gleaner.audit USING btree (queue, key, id);

CREATE INDEX change_xid_idx ON gleaner.change USING btree (xid);

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

CREATE INDEX raw_request_received_at_idx ON gleaner.raw_request USING btree (received_at);

CREATE INDEX request_at_idx ON gleaner.request USING btree (at);

CREATE INDEX sheaf_queue_idx ON gleaner.sheaf USING btree (queue, xid);

CREATE INDEX stretch_oldest_idx ON gleaner.stretch USING btree (queue, oldest);

CREATE INDEX activities_contact_id_idx ON public.activities USING btree (contact_id, created_at);

CREATE INDEX activities_created_at_idx ON public.activities USING btree (created_at);

CREATE UNIQUE INDEX activities_provider_id_external_id_key ON public.activities USING btree (provider_id, external_id) WHERE (provider_id IS NOT NULL);

CREATE INDEX activities_sales_id_idx ON public.activities USING btree (sales_id, created_at);

CREATE INDEX activities_unmatched_sender_idx ON public.activities USING btree (sender_kind, sender_address, created_at) WHERE ((contact_id IS NULL) AND (sender_address IS NOT NULL));

CREATE INDEX activity_failures_created_at_idx ON public.activity_failures USING btree (created_at);

CREATE INDEX activity_failures_original_activity_id_idx ON public.activity_failures USING btree (original_activity_id);

CREATE INDEX baskets_workspace_id_idx ON public.baskets USING btree (workspace_id);

CREATE UNIQUE INDEX blocks_same_insight_key ON public.blocks USING btree (basket_id, semantic_type, md5(title), md5(content));

CREATE INDEX contact_addresses_contact_id_idx ON public.contact_addresses USING btree (contact_id);

CREATE INDEX contact_addresses_loose_idx ON public.contact_addresses USING btree (kind, loose) WHERE (loose IS NOT NULL);

CREATE INDEX contact_addresses_unparsed_idx ON public.contact_addresses USING btree (contact_id) WHERE (NOT parsed);

CREATE INDEX crm_processing_nodes_current_activity_id_idx ON public.crm_processing_nodes USING btree (current_activity_id) WHERE (current_activity_id IS NOT NULL);

CREATE INDEX gleaner_activities_dead ON public.activities USING btree (id) WHERE ((due_at IS NULL) AND (processing_status = 'failed'::text));

CREATE INDEX gleaner_activities_global ON public.activities USING btree (((hashtextextended((type COLLATE "C"), (0)::bigint) & ('-16'::integer)::bigint)), due_at, id) WHERE ((processing_status = ANY (ARRAY['raw'::text, 'processing'::text, 'failed'::text])) AND (due_at IS NOT NULL) AND (sales_id IS NULL));

CREATE INDEX gleaner_activities_own ON public.activities USING btree (sales_id, ((hashtextextended((type COLLATE "C"), (0)::bigint) & ('-16'::integer)::bigint)), due_at, id) WHERE ((processing_status = ANY (ARRAY['raw'::text, 'processing'::text, 'failed'::text])) AND (due_at IS NOT NULL) AND (sales_id IS NOT NULL));

CREATE INDEX gleaner_activities_stale ON public.activities USING btree (((hashtextextended((type COLLATE "C"), (0)::bigint) & ('-16'::integer)::bigint)), open_at, id) WHERE ((processing_status = ANY (ARRAY['raw'::text, 'processing'::text, 'failed'::text])) AND (due_at IS NOT NULL) AND (sales_id IS NOT NULL) AND (open_at IS NOT NULL));

CREATE INDEX gleaner_dumps_dead ON public.agent_processing_queue USING btree (id) WHERE ((due_at IS NULL) AND (processing_state = 'failed'::public.processing_state));

CREATE INDEX gleaner_dumps_global ON public.agent_processing_queue USING btree (due_at, id) WHERE ((processing_state = ANY (ARRAY['pending'::public.processing_state, 'claimed'::public.processing_state, 'processing'::public.processing_state, 'failed'::public.processing_state])) AND (due_at IS NOT NULL));

CREATE INDEX gleaner_followups_dead ON public.scheduled_actions USING btree (id) WHERE ((due_at IS NULL) AND ((status)::text = 'failed'::text));

CREATE INDEX gleaner_followups_global ON public.scheduled_actions USING btree (((hashtextextended((action_type COLLATE "C"), (0)::bigint) & ('-16'::integer)::bigint)), due_at, id) WHERE (((status)::text = ANY ((ARRAY['pending'::character varying, 'processing'::character varying, 'failed'::character varying])::text[])) AND (due_at IS NOT NULL));

CREATE INDEX gleaner_runs_dead ON public.execution_jobs USING btree (id) WHERE ((due_at IS NULL) AND (status = 'failed'::text));

CREATE INDEX gleaner_runs_global ON public.execution_jobs USING btree (due_at, id) WHERE ((status = ANY (ARRAY['queued'::text, 'running'::text, 'failed'::text])) AND (due_at IS NOT NULL));

CREATE INDEX idx_execution_jobs_created_at ON public.execution_jobs USING btree (created_at);

CREATE INDEX idx_execution_jobs_status ON public.execution_jobs USING btree (status);

CREATE INDEX idx_execution_jobs_status_created ON public.execution_jobs USING btree (status, created_at);

CREATE INDEX idx_queue_completed ON public.agent_processing_queue USING btree (completed_at) WHERE (processing_state = 'completed'::public.processing_state);

CREATE INDEX idx_queue_dump ON public.agent_processing_queue USING btree (dump_id);

CREATE INDEX idx_queue_state_created ON public.agent_processing_queue USING btree (processing_state, created_at);

CREATE INDEX idx_queue_workspace ON public.agent_processing_queue USING btree (workspace_id, processing_state);

CREATE INDEX idx_scheduled_actions_polling ON public.scheduled_actions USING btree (scheduled_for, status) WHERE ((status)::text = ANY ((ARRAY['pending'::character varying, 'processing'::character varying])::text[]));

CREATE INDEX idx_scheduled_actions_prospect ON public.scheduled_actions USING btree (prospect_id, scheduled_for);

CREATE UNIQUE INDEX ingestion_providers_key_hash_key ON public.ingestion_providers USING btree (key_hash);

CREATE UNIQUE INDEX ingestion_providers_previous_key_hash_key ON public.ingestion_providers USING btree (previous_key_hash) WHERE (previous_key_hash IS NOT NULL);

CREATE INDEX ingestion_providers_sales_id_idx ON public.ingestion_providers USING btree (sales_id);

CREATE INDEX raw_dumps_basket_id_idx ON public.raw_dumps USING btree (basket_id);

CREATE UNIQUE INDEX sales_user_id_key ON public.sales USING btree (user_id);

CREATE INDEX substrate_relationships_to_id_idx ON public.substrate_relationships USING btree (to_id);

CREATE TRIGGER zz_gleaner_delete_jobs AFTER DELETE ON gleaner.jobs FOR EACH ROW WHEN (((old.lease = ANY (ARRAY[(0)::bigint, ('-1'::integer)::bigint])) AND (old.status = 'ready'::text))) EXECUTE FUNCTION gleaner.leave_sheaf('jobs', 'id');

CREATE TRIGGER zz_gleaner_insert_polls BEFORE INSERT ON gleaner.polls FOR EACH ROW WHEN ((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name)) EXECUTE FUNCTION gleaner.adapt_polls();

CREATE TRIGGER zz_gleaner_truncate_jobs AFTER TRUNCATE ON gleaner.jobs FOR EACH STATEMENT EXECUTE FUNCTION gleaner.leave_sheaf('jobs');

CREATE TRIGGER zz_gleaner_update_jobs BEFORE UPDATE OF due_at, lease, deadline_at, attempts, lost, started, agent, session, id, status, kind, priority, unique_key ON gleaner.jobs FOR EACH STATEMENT WHEN ((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name)) EXECUTE FUNCTION gleaner.refuse_update('jobs');

CREATE TRIGGER zz_gleaner_update_polls BEFORE UPDATE ON gleaner.polls FOR EACH ROW WHEN ((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name)) EXECUTE FUNCTION gleaner.adapt_polls();

CREATE TRIGGER after_dump_insert AFTER INSERT ON public.raw_dumps FOR EACH ROW EXECUTE FUNCTION public.queue_agent_processing();

CREATE TRIGGER before_insert_activity_link_contact BEFORE INSERT ON public.activities FOR EACH ROW WHEN (((new.contact_id IS NULL) AND ((new.sender_address IS NOT NULL) OR (new.metadata ? 'from'::text) OR (new.raw_data ? 'sender'::text)))) EXECUTE FUNCTION public.auto_link_contact();

CREATE TRIGGER forget_files AFTER DELETE ON public.activities REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION gleaner.forget_files();

CREATE TRIGGER keep_channel_secrets BEFORE INSERT OR UPDATE ON public.ingestion_providers FOR EACH ROW EXECUTE FUNCTION public.keep_channel_secrets();

CREATE TRIGGER refresh_contact_addresses AFTER INSERT OR UPDATE OF email, phone_number, email_jsonb, phone_jsonb ON public.contacts FOR EACH ROW EXECUTE FUNCTION public.refresh_contact_addresses();

CREATE TRIGGER schedule_first_poll AFTER INSERT ON public.ingestion_providers FOR EACH ROW WHEN (((new.provider_code = 'gmail'::text) AND new.is_active)) EXECUTE FUNCTION gleaner.schedule_poll();

CREATE TRIGGER schedule_poll AFTER UPDATE OF provider_code, is_active ON public.ingestion_providers FOR EACH ROW WHEN (((new.provider_code = 'gmail'::text) AND new.is_active AND ((old.provider_code IS DISTINCT FROM new.provider_code) OR (old.is_active IS DISTINCT FROM new.is_active)))) EXECUTE FUNCTION gleaner.schedule_poll();

CREATE TRIGGER touch_execution_jobs BEFORE UPDATE ON public.execution_jobs FOR EACH ROW EXECUTE FUNCTION public.touch_execution_jobs();

CREATE TRIGGER touch_scheduled_actions BEFORE UPDATE ON public.scheduled_actions FOR EACH ROW EXECUTE FUNCTION public.touch_scheduled_actions();

CREATE TRIGGER zz_gleaner_again_activities BEFORE UPDATE OF processing_status ON public.activities FOR EACH ROW WHEN (((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name) AND (old.processing_status = 'completed'::text) AND (new.processing_status = 'completed'::text) AND (new.processed_data IS DISTINCT FROM old.processed_data))) EXECUTE FUNCTION gleaner.adapt_activities('again');

CREATE TRIGGER zz_gleaner_again_dumps BEFORE UPDATE OF processing_state ON public.agent_processing_queue FOR EACH ROW WHEN (((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name) AND (old.processing_state = 'completed'::public.processing_state) AND (new.processing_state = 'completed'::public.processing_state) AND (new.result IS DISTINCT FROM old.result))) EXECUTE FUNCTION gleaner.adapt_dumps('again');

CREATE TRIGGER zz_gleaner_again_runs BEFORE UPDATE OF status ON public.execution_jobs FOR EACH ROW WHEN (((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name) AND (old.status = 'completed'::text) AND (new.status = 'completed'::text) AND (new.result IS DISTINCT FROM old.result))) EXECUTE FUNCTION gleaner.adapt_runs('again');

CREATE TRIGGER zz_gleaner_insert_activities BEFORE INSERT ON public.activities FOR EACH ROW WHEN ((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name)) EXECUTE FUNCTION gleaner.adapt_activities();

CREATE TRIGGER zz_gleaner_insert_dumps BEFORE INSERT ON public.agent_processing_queue FOR EACH ROW WHEN ((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name)) EXECUTE FUNCTION gleaner.adapt_dumps();

CREATE TRIGGER zz_gleaner_insert_followups BEFORE INSERT ON public.scheduled_actions FOR EACH ROW WHEN ((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name)) EXECUTE FUNCTION gleaner.adapt_followups();

CREATE TRIGGER zz_gleaner_insert_runs BEFORE INSERT ON public.execution_jobs FOR EACH ROW WHEN ((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name)) EXECUTE FUNCTION gleaner.adapt_runs();

CREATE TRIGGER zz_gleaner_update_activities BEFORE UPDATE ON public.activities FOR EACH ROW WHEN ((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name)) EXECUTE FUNCTION gleaner.adapt_activities();

CREATE TRIGGER zz_gleaner_update_dumps BEFORE UPDATE ON public.agent_processing_queue FOR EACH ROW WHEN ((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name)) EXECUTE FUNCTION gleaner.adapt_dumps();

CREATE TRIGGER zz_gleaner_update_followups BEFORE UPDATE ON public.scheduled_actions FOR EACH ROW WHEN ((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name)) EXECUTE FUNCTION gleaner.adapt_followups();

CREATE TRIGGER zz_gleaner_update_runs BEFORE UPDATE ON public.execution_jobs FOR EACH ROW WHEN ((CURRENT_USER IS DISTINCT FROM 'gleaner_engine'::name)) EXECUTE FUNCTION gleaner.adapt_runs();

ALTER TABLE auth.identities
    ADD CONSTRAINT identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE auth.one_time_tokens
    ADD CONSTRAINT one_time_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE auth.refresh_tokens
    ADD CONSTRAINT refresh_tokens_session_id_fkey FOREIGN KEY (session_id) REFERENCES auth.sessions(id) ON DELETE CASCADE;

ALTER TABLE auth.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

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
    ADD CONSTRAINT agent_processing_queue_dump_id_fkey FOREIGN KEY (dump_id) REFERENCES public.raw_dumps(id);

ALTER TABLE public.agent_processing_queue
    ADD CONSTRAINT agent_processing_queue_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(id);

ALTER TABLE public.baskets
    ADD CONSTRAINT baskets_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(id);

ALTER TABLE public.blocks
    ADD CONSTRAINT blocks_basket_id_fkey FOREIGN KEY (basket_id) REFERENCES public.baskets(id);

ALTER TABLE public.contact_addresses
    ADD CONSTRAINT contact_addresses_contact_id_fkey FOREIGN KEY (contact_id) REFERENCES public.contacts(id) ON DELETE CASCADE;

ALTER TABLE public.contacts
    ADD CONSTRAINT contacts_sales_id_fkey FOREIGN KEY (sales_id) REFERENCES public.sales(id);

ALTER TABLE public.context_items
    ADD CONSTRAINT context_items_basket_id_fkey FOREIGN KEY (basket_id) REFERENCES public.baskets(id);

ALTER TABLE public.crm_processing_nodes
    ADD CONSTRAINT crm_processing_nodes_current_activity_id_fkey FOREIGN KEY (current_activity_id) REFERENCES public.activities(id) ON DELETE SET NULL;

ALTER TABLE public.crm_processing_nodes
    ADD CONSTRAINT crm_processing_nodes_sales_id_fkey FOREIGN KEY (sales_id) REFERENCES public.sales(id) ON DELETE CASCADE;

ALTER TABLE public.ingestion_providers
    ADD CONSTRAINT ingestion_providers_sales_id_fkey FOREIGN KEY (sales_id) REFERENCES public.sales(id) ON DELETE RESTRICT;

ALTER TABLE public.raw_dumps
    ADD CONSTRAINT raw_dumps_basket_id_fkey FOREIGN KEY (basket_id) REFERENCES public.baskets(id);

ALTER TABLE public.substrate_relationships
    ADD CONSTRAINT substrate_relationships_basket_id_fkey FOREIGN KEY (basket_id) REFERENCES public.baskets(id);

ALTER TABLE gleaner.forgotten_files ENABLE ROW LEVEL SECURITY;

ALTER TABLE gleaner.ingest_memory ENABLE ROW LEVEL SECURITY;

ALTER TABLE gleaner.ingest_refusal ENABLE ROW LEVEL SECURITY;

CREATE POLICY ingest_refusal_administrators ON gleaner.ingest_refusal FOR SELECT TO authenticated USING (( SELECT gleaner.is_administrator() AS is_administrator));

CREATE POLICY ingest_refusal_service ON gleaner.ingest_refusal FOR SELECT TO service_role USING (true);

ALTER TABLE gleaner.polls ENABLE ROW LEVEL SECURITY;

CREATE POLICY polls_engine ON gleaner.polls TO gleaner_engine USING (true) WITH CHECK (true);

CREATE POLICY polls_service ON gleaner.polls TO service_role USING (true) WITH CHECK (true);

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

CREATE POLICY agent_processing_queue_read ON public.agent_processing_queue FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY agent_processing_queue_service ON public.agent_processing_queue TO service_role USING (true) WITH CHECK (true);

CREATE POLICY agent_processing_queue_workers ON public.agent_processing_queue AS RESTRICTIVE TO authenticated USING (((( SELECT gleaner.worker_session() AS worker_session) IS NULL) OR (session = ( SELECT gleaner.worker_session() AS worker_session)))) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.baskets ENABLE ROW LEVEL SECURITY;

CREATE POLICY baskets_insert ON public.baskets FOR INSERT TO authenticated WITH CHECK (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY baskets_read ON public.baskets FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY baskets_service ON public.baskets TO service_role USING (true) WITH CHECK (true);

CREATE POLICY baskets_workers ON public.baskets AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.blocks ENABLE ROW LEVEL SECURITY;

CREATE POLICY blocks_read ON public.blocks FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY blocks_service ON public.blocks TO service_role USING (true) WITH CHECK (true);

CREATE POLICY blocks_workers ON public.blocks AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.contact_addresses ENABLE ROW LEVEL SECURITY;

CREATE POLICY contact_addresses_service ON public.contact_addresses FOR SELECT TO service_role USING (true);

ALTER TABLE public.contacts ENABLE ROW LEVEL SECURITY;

CREATE POLICY contacts_engine ON public.contacts FOR SELECT TO gleaner_engine USING (true);

CREATE POLICY contacts_service ON public.contacts TO service_role USING (true) WITH CHECK (true);

CREATE POLICY contacts_team ON public.contacts TO authenticated USING (( SELECT gleaner.is_member() AS is_member)) WITH CHECK (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY contacts_workers ON public.contacts AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.context_items ENABLE ROW LEVEL SECURITY;

CREATE POLICY context_items_read ON public.context_items FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

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

ALTER TABLE public.execution_jobs ENABLE ROW LEVEL SECURITY;

CREATE POLICY execution_jobs_engine ON public.execution_jobs TO gleaner_engine USING (true) WITH CHECK (true);

CREATE POLICY execution_jobs_insert ON public.execution_jobs FOR INSERT TO authenticated WITH CHECK (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY execution_jobs_read ON public.execution_jobs FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY execution_jobs_service ON public.execution_jobs TO service_role USING (true) WITH CHECK (true);

CREATE POLICY execution_jobs_workers ON public.execution_jobs AS RESTRICTIVE TO authenticated USING (((( SELECT gleaner.worker_session() AS worker_session) IS NULL) OR (session = ( SELECT gleaner.worker_session() AS worker_session)))) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.ingestion_providers ENABLE ROW LEVEL SECURITY;

CREATE POLICY ingestion_providers_administrators ON public.ingestion_providers TO authenticated USING (( SELECT gleaner.is_administrator() AS is_administrator)) WITH CHECK (( SELECT gleaner.is_administrator() AS is_administrator));

CREATE POLICY ingestion_providers_service ON public.ingestion_providers TO service_role USING (true) WITH CHECK (true);

ALTER TABLE public.raw_dumps ENABLE ROW LEVEL SECURITY;

CREATE POLICY raw_dumps_insert ON public.raw_dumps FOR INSERT TO authenticated WITH CHECK (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY raw_dumps_read ON public.raw_dumps FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY raw_dumps_service ON public.raw_dumps TO service_role USING (true) WITH CHECK (true);

CREATE POLICY raw_dumps_workers ON public.raw_dumps AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

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

CREATE POLICY substrate_relationships_read ON public.substrate_relationships FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

CREATE POLICY substrate_relationships_service ON public.substrate_relationships TO service_role USING (true) WITH CHECK (true);

CREATE POLICY substrate_relationships_workers ON public.substrate_relationships AS RESTRICTIVE TO authenticated USING ((( SELECT gleaner.worker_session() AS worker_session) IS NULL)) WITH CHECK ((( SELECT gleaner.worker_session() AS worker_session) IS NULL));

ALTER TABLE public.workspaces ENABLE ROW LEVEL SECURITY;

CREATE POLICY workspaces_read ON public.workspaces FOR SELECT TO authenticated USING (( SELECT gleaner.is_member() AS is_member));

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

REVOKE ALL ON FUNCTION gleaner.add_first_administrator(p_email text, p_password text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.add_user(p_email text, p_password text, p_user_meta jsonb, p_app_meta jsonb, p_confirmed boolean, p_administrator boolean, p_link boolean, p_id uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.assign_activities(p_ids uuid[], p_owner bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.assign_activities(p_ids uuid[], p_owner bigint) TO service_role;

REVOKE ALL ON FUNCTION gleaner.audit_link(p_activities uuid[], p_act text, p_from bigint, p_to bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.audit_link(p_activities uuid[], p_act text, p_from bigint, p_to bigint) TO authenticated;
GRANT ALL ON FUNCTION gleaner.audit_link(p_activities uuid[], p_act text, p_from bigint, p_to bigint) TO service_role;

REVOKE ALL ON FUNCTION gleaner.backoff(p_first interval, p_cap interval, p_attempt integer, p_key text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.backoff(p_first interval, p_cap interval, p_attempt integer, p_key text) TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.backoff(p_first interval, p_cap interval, p_attempt integer, p_key text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.bury_activities(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.bury_activities(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.bury_dumps(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.bury_dumps(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.bury_followups(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.bury_followups(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.bury_jobs(p_ids bigint[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.bury_jobs(p_ids bigint[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.bury_polls(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.bury_polls(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.bury_runs(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.bury_runs(p_ids uuid[], p_reason text) TO service_role;

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
GRANT ALL ON FUNCTION gleaner.cancel_activities(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_activities_matching(p_match jsonb, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_activities_matching(p_match jsonb, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_dumps(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_dumps(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_dumps_matching(p_match jsonb, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_dumps_matching(p_match jsonb, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_followups(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_followups(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_followups_matching(p_match jsonb, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_followups_matching(p_match jsonb, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_jobs(p_ids bigint[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_jobs(p_ids bigint[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_jobs_matching(p_match jsonb, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_jobs_matching(p_match jsonb, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_polls(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_polls(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_polls_matching(p_match jsonb, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_polls_matching(p_match jsonb, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_runs(p_ids uuid[], p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_runs(p_ids uuid[], p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.cancel_runs_matching(p_match jsonb, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.cancel_runs_matching(p_match jsonb, p_reason text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.capture_changes(p_table regclass, p_on boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.change_user(p_user uuid, p_changes jsonb, p_session uuid) FROM PUBLIC;

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

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.jobs TO gleaner_engine;
GRANT SELECT,DELETE,UPDATE ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(id) ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(due_at) ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(created_at) ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(priority) ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(kind) ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(unique_key) ON TABLE gleaner.jobs TO service_role;

GRANT INSERT(payload) ON TABLE gleaner.jobs TO service_role;

REVOKE ALL ON FUNCTION gleaner.claim_jobs(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.claim_jobs(p_agent text, p_limit integer, p_kinds text[], p_request uuid, p_started boolean, p_hold interval, p_early interval) TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.polls TO gleaner_engine;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.polls TO service_role;

REVOKE ALL ON FUNCTION gleaner.claim_polls(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.claim_polls(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval) TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.execution_jobs TO gleaner_engine;
GRANT SELECT,INSERT ON TABLE public.execution_jobs TO authenticated;
GRANT ALL ON TABLE public.execution_jobs TO service_role;

REVOKE ALL ON FUNCTION gleaner.claim_runs(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.claim_runs(p_agent text, p_limit integer, p_request uuid, p_started boolean, p_hold interval, p_early interval, p_holder text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.close_sessions(p_user uuid, p_session uuid, p_scope text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.complete_activities(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_activities(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.complete_activities(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_activities(p_id uuid, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_activities(p_id uuid, p_lease bigint, p_result jsonb) TO authenticated;
GRANT ALL ON FUNCTION gleaner.complete_activities(p_id uuid, p_lease bigint, p_result jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_activities_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_activities_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.complete_activities_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_dumps(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_dumps(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_dumps(p_id uuid, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_dumps(p_id uuid, p_lease bigint, p_result jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_dumps_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_dumps_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_followups(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_followups(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_followups(p_id uuid, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_followups(p_id uuid, p_lease bigint, p_result jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_followups_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_followups_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_jobs(p_ids bigint[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_jobs(p_ids bigint[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_jobs(p_id bigint, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_jobs(p_id bigint, p_lease bigint, p_result jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_jobs_grouped(p_ids bigint[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_jobs_grouped(p_ids bigint[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_polls(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_polls(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_polls(p_id uuid, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_polls(p_id uuid, p_lease bigint, p_result jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_polls_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_polls_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_runs(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_runs(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_runs(p_id uuid, p_lease bigint, p_result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_runs(p_id uuid, p_lease bigint, p_result jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.complete_runs_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.complete_runs_grouped(p_ids uuid[], p_leases bigint[], p_results jsonb[]) TO service_role;

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

REVOKE ALL ON FUNCTION gleaner.explain_activities(p_id uuid, p_owner bigint, p_kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_activities(p_id uuid, p_owner bigint, p_kinds text[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.explain_activities(p_id uuid, p_owner bigint, p_kinds text[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.explain_dumps(p_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_dumps(p_id uuid) TO service_role;

REVOKE ALL ON FUNCTION gleaner.explain_followups(p_id uuid, p_kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_followups(p_id uuid, p_kinds text[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.explain_jobs(p_id bigint, p_kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_jobs(p_id bigint, p_kinds text[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.explain_polls(p_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_polls(p_id uuid) TO service_role;

REVOKE ALL ON FUNCTION gleaner.explain_runs(p_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.explain_runs(p_id uuid) TO service_role;

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

REVOKE ALL ON FUNCTION gleaner.fill_activities(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.fill_dumps(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.fill_followups(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.fill_jobs(p_after bigint, p_limit integer, OUT last bigint, OUT filled integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.fill_polls(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.fill_runs(p_after uuid, p_limit integer, OUT last uuid, OUT filled integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.find_ban(p_user uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.forget_files() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.ingest_activities(p_patience text, p_channels uuid[], p_raw_ids uuid[], p_methods text[], p_targets text[], p_headers jsonb[], p_bodies bytea[], p_body_files text[], p_requests integer[], p_ids uuid[], p_types text[], p_directions text[], p_raw_data jsonb[], p_metadata jsonb[], p_external_ids text[], p_sender_kinds text[], p_sender_addresses text[], p_recalls text[], p_once jsonb, p_remember jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.insert_contact(p_first text, p_last text, p_kind text, p_address text, p_sales_id bigint, p_seen timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.is_administrator() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.is_administrator() TO authenticated;
GRANT ALL ON FUNCTION gleaner.is_administrator() TO service_role;

REVOKE ALL ON FUNCTION gleaner.is_disabled(p_user uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.is_member() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.is_member() TO authenticated;
GRANT ALL ON FUNCTION gleaner.is_member() TO service_role;

REVOKE ALL ON FUNCTION gleaner.is_plain(p_table regclass, p_columns text[], p_status text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.is_plain(p_table regclass, p_columns text[], p_status text) TO gleaner_engine;

REVOKE ALL ON FUNCTION gleaner.is_region_of_one(p_provider uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.is_trusted() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.is_trusted() TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.is_trusted() TO service_role;

REVOKE ALL ON FUNCTION gleaner.issue_token(p_user uuid, p_type text, p_hash text, p_valid interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.join_team(p_user uuid, p_administrator boolean, p_link boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.lay_jobs(p_first bigint[], p_last bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.lay_jobs(p_first bigint[], p_last bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.leave_sheaf() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.link_activity(p_activity uuid, p_contact bigint, p_backfill boolean, p_remember boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.link_activity(p_activity uuid, p_contact bigint, p_backfill boolean, p_remember boolean) TO authenticated;
GRANT ALL ON FUNCTION gleaner.link_activity(p_activity uuid, p_contact bigint, p_backfill boolean, p_remember boolean) TO service_role;

REVOKE ALL ON FUNCTION gleaner.list_captures() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.look_again(p_kind text, p_addresses text[], p_since timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.loose_email(p_address text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.loosen_jobs(p_ids bigint[], p_sheaf bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.match_contact(p_kind text, p_address text, p_provider uuid, OUT method text, OUT candidates bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.merge_metadata(p_old jsonb, p_new jsonb) FROM PUBLIC;

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

REVOKE ALL ON FUNCTION gleaner.next_due_runs() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.next_due_runs() TO service_role;

REVOKE ALL ON FUNCTION gleaner.note_change() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.number_jobs(p_count integer) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.number_jobs(p_count integer) TO service_role;

REVOKE ALL ON FUNCTION gleaner.open_activities(p_owner bigint, p_since timestamp with time zone, p_due timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.open_session(p_user uuid, p_password text, p_token text, p_method text, p_user_agent text, p_ip inet) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.own_activities(p_owner bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.parse_addresses(p_parsed jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.pending_addresses(p_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.phone_aliases(p_address text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.progress_activities(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.progress_activities(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) TO authenticated;
GRANT ALL ON FUNCTION gleaner.progress_activities(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.progress_dumps(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.progress_dumps(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.progress_followups(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.progress_followups(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.progress_jobs(p_id bigint, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.progress_jobs(p_id bigint, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.progress_polls(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.progress_polls(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.progress_runs(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.progress_runs(p_id uuid, p_lease bigint, p_stage text, p_percent numeric, p_partial jsonb) TO service_role;

REVOKE ALL ON FUNCTION gleaner.prune_changes(p_before xid8, p_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.prune_dumps(p_limit integer, p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.prune_dumps(p_limit integer, p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.prune_followups(p_limit integer, p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.prune_followups(p_limit integer, p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.prune_ingestion(p_raw_age interval, p_raw_rows bigint, p_refusal_age interval, p_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.prune_jobs(p_limit integer, p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.prune_jobs(p_limit integer, p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.prune_runs(p_limit integer, p_older_than interval) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.prune_runs(p_limit integer, p_older_than interval) TO service_role;

REVOKE ALL ON FUNCTION gleaner.put_back_activities(p_row public.activities, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.put_back_dumps(p_row public.agent_processing_queue, p_status public.processing_state, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.put_back_followups(p_row public.scheduled_actions, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.put_back_jobs(p_row gleaner.jobs, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.put_back_polls(p_row gleaner.polls, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.put_back_runs(p_row public.execution_jobs, p_status text, p_due timestamp with time zone, p_own boolean, p_attempts integer, p_lost integer, p_category text, p_message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.record_nodes(p_nodes jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.record_refusals(p_refusals jsonb) FROM PUBLIC;

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

REVOKE ALL ON FUNCTION gleaner.redeem_token(p_hash text, p_types text[], p_password text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.refresh_session(p_token text, p_next text, p_grace interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.refuse_banned(p_user uuid) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.refuse_update() FROM PUBLIC;

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

REVOKE ALL ON FUNCTION gleaner.request_poll(p_provider_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.request_poll(p_provider_id uuid) TO service_role;

REVOKE ALL ON FUNCTION gleaner.requeue_activities(p_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.requeue_activities(p_ids uuid[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.requeue_dumps(p_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.requeue_dumps(p_ids uuid[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.requeue_followups(p_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.requeue_followups(p_ids uuid[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.requeue_jobs(p_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.requeue_jobs(p_ids bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.requeue_polls(p_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.requeue_polls(p_ids uuid[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.requeue_runs(p_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.requeue_runs(p_ids uuid[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.require_read_committed() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.require_read_committed() TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.require_read_committed() TO service_role;

REVOKE ALL ON FUNCTION gleaner.rest_activities(p_row public.activities, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.rest_dumps(p_row public.agent_processing_queue, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.rest_followups(p_row public.scheduled_actions, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.rest_jobs(p_row gleaner.jobs, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.rest_polls(p_row gleaner.polls, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.rest_runs(p_row public.execution_jobs, p_reason text, p_category text, p_attempts integer, p_lost integer, p_own boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.schedule_poll() FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.scoped_kinds(p_queue text, p_kinds text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.scoped_kinds(p_queue text, p_kinds text[]) TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.scoped_kinds(p_queue text, p_kinds text[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.serves_auth() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.serves_auth() TO service_role;

REVOKE ALL ON FUNCTION gleaner.sheaves(p_queue text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.sheaves(p_queue text) TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.sheaves(p_queue text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.sheaves(p_queue text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.short_key(p_key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.show_user(p_user uuid) FROM PUBLIC;

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

REVOKE ALL ON FUNCTION gleaner.split_name(p_name text, p_address text, OUT first_name text, OUT last_name text) FROM PUBLIC;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.swath TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.swath TO service_role;

REVOKE ALL ON FUNCTION gleaner.spread_jobs(p_swath gleaner.swath, p_upto bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.start_activities(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.start_activities(p_ids uuid[], p_leases bigint[]) TO authenticated;
GRANT ALL ON FUNCTION gleaner.start_activities(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.start_dumps(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.start_dumps(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.start_followups(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.start_followups(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.start_jobs(p_ids bigint[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.start_jobs(p_ids bigint[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.start_polls(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.start_polls(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.start_runs(p_ids uuid[], p_leases bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.start_runs(p_ids uuid[], p_leases bigint[]) TO service_role;

REVOKE ALL ON FUNCTION gleaner.stats_activities() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.stats_activities() TO service_role;

REVOKE ALL ON FUNCTION gleaner.stats_dumps() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.stats_dumps() TO service_role;

REVOKE ALL ON FUNCTION gleaner.stats_followups() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.stats_followups() TO service_role;

REVOKE ALL ON FUNCTION gleaner.stats_jobs() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.stats_jobs() TO service_role;

REVOKE ALL ON FUNCTION gleaner.stats_polls() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.stats_polls() TO service_role;

REVOKE ALL ON FUNCTION gleaner.stats_runs() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.stats_runs() TO service_role;

REVOKE ALL ON FUNCTION gleaner.swaths(p_queue text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.swaths(p_queue text) TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.swaths(p_queue text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.swaths(p_queue text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.unlink_activity(p_activity uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.unlink_activity(p_activity uuid) TO authenticated;
GRANT ALL ON FUNCTION gleaner.unlink_activity(p_activity uuid) TO service_role;

REVOKE ALL ON FUNCTION gleaner.verify_key(p_hash bytea) FROM PUBLIC;

REVOKE ALL ON FUNCTION gleaner.with_address(p_list jsonb, p_key text, p_address text) FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.with_address(p_list jsonb, p_key text, p_address text) TO authenticated;
GRANT ALL ON FUNCTION gleaner.with_address(p_list jsonb, p_key text, p_address text) TO service_role;

REVOKE ALL ON FUNCTION gleaner.worker_session() FROM PUBLIC;
GRANT ALL ON FUNCTION gleaner.worker_session() TO gleaner_engine;
GRANT ALL ON FUNCTION gleaner.worker_session() TO authenticated;
GRANT ALL ON FUNCTION gleaner.worker_session() TO service_role;

REVOKE ALL ON FUNCTION public.auto_link_contact() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.cancel_pending_for_prospect(p_prospect_id text, p_reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.cancel_pending_for_prospect(p_prospect_id text, p_reason text) TO service_role;

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

REVOKE ALL ON FUNCTION public.fn_block_create(p_basket_id uuid, p_title text, p_content text, p_semantic_type text, p_confidence_score numeric) FROM PUBLIC;
GRANT ALL ON FUNCTION public.fn_block_create(p_basket_id uuid, p_title text, p_content text, p_semantic_type text, p_confidence_score numeric) TO service_role;

REVOKE ALL ON FUNCTION public.fn_claim_next_dumps(p_worker_id text, p_limit integer, p_stale_after_minutes integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.fn_claim_next_dumps(p_worker_id text, p_limit integer, p_stale_after_minutes integer) TO service_role;

REVOKE ALL ON FUNCTION public.fn_context_item_upsert_bulk(p_basket_id uuid, p_items jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION public.fn_context_item_upsert_bulk(p_basket_id uuid, p_items jsonb) TO service_role;

REVOKE ALL ON FUNCTION public.get_pending_actions(p_prospect_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.get_pending_actions(p_prospect_id text) TO authenticated;
GRANT ALL ON FUNCTION public.get_pending_actions(p_prospect_id text) TO service_role;

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

REVOKE ALL ON FUNCTION public.touch_execution_jobs() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.touch_scheduled_actions() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.unlock_stale_locks() FROM PUBLIC;
GRANT ALL ON FUNCTION public.unlock_stale_locks() TO authenticated;
GRANT ALL ON FUNCTION public.unlock_stale_locks() TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.audit TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.audit TO service_role;

GRANT SELECT ON TABLE gleaner.ingest_refusal TO authenticated;
GRANT SELECT ON TABLE gleaner.ingest_refusal TO service_role;

GRANT USAGE ON SEQUENCE gleaner.jobs_id_seq TO gleaner_engine;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.late_result TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.late_result TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.offender TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.offender TO service_role;

GRANT SELECT ON TABLE gleaner.queue TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.queue TO authenticated;
GRANT SELECT ON TABLE gleaner.queue TO service_role;

GRANT SELECT ON TABLE gleaner.raw_request TO authenticated;
GRANT SELECT ON TABLE gleaner.raw_request TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.request TO gleaner_engine;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.sheaf TO gleaner_engine;
GRANT SELECT ON TABLE gleaner.sheaf TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE gleaner.stretch TO gleaner_engine;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.activity_failures TO gleaner_engine;
GRANT SELECT ON TABLE public.activity_failures TO authenticated;
GRANT ALL ON TABLE public.activity_failures TO service_role;

GRANT SELECT,INSERT ON TABLE public.baskets TO authenticated;
GRANT ALL ON TABLE public.baskets TO service_role;

GRANT SELECT ON TABLE public.blocks TO authenticated;
GRANT ALL ON TABLE public.blocks TO service_role;

GRANT SELECT ON TABLE public.contact_addresses TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.contacts TO authenticated;
GRANT ALL ON TABLE public.contacts TO service_role;
GRANT SELECT ON TABLE public.contacts TO gleaner_engine;

GRANT SELECT ON TABLE public.context_items TO authenticated;
GRANT ALL ON TABLE public.context_items TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.crm_processing_nodes TO authenticated;
GRANT ALL ON TABLE public.crm_processing_nodes TO service_role;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.crm_processing_nodes TO gleaner_engine;

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

GRANT SELECT,INSERT ON TABLE public.raw_dumps TO authenticated;
GRANT ALL ON TABLE public.raw_dumps TO service_role;

GRANT SELECT ON TABLE public.sales TO gleaner_engine;
GRANT SELECT,UPDATE ON TABLE public.sales TO authenticated;
GRANT ALL ON TABLE public.sales TO service_role;

GRANT SELECT ON TABLE public.stuck_dumps TO authenticated;
GRANT SELECT ON TABLE public.stuck_dumps TO service_role;

GRANT SELECT ON TABLE public.substrate_relationships TO authenticated;
GRANT ALL ON TABLE public.substrate_relationships TO service_role;

GRANT SELECT ON TABLE public.unmatched_activities TO authenticated;
GRANT SELECT ON TABLE public.unmatched_activities TO service_role;

