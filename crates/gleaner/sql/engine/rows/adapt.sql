{%- from "macros.sql" import inner, in_zone, waiting_since, keep_open, error_value, lease_after_other, lease_after_own -%}
{%- set definer -%}
language plpgsql security definer set search_path = {{ search_path }} as {{ body }}
{%- endset -%}
{#- From when a row that waits since its creation, or since `otherwise`, is open to all. -#}
{%- macro opened(otherwise) -%}
case when new.{{ owner.column }} is null then new.{{ col.due }}
            else gleaner.open_{{ name }}(new.{{ owner.column }}, coalesce({{ waiting_since("new") }}, {{ otherwise }}), new.{{ col.due }}) end
{%- endmacro -%}
{%- macro insert() -%}
select 0, 0, 0, null, null, null into new.{{ col.lease }}, new.{{ col.lost }}, new.{{ col.started }}, new.{{ col.deadline }}, new.{{ col.agent }}, new.{{ col.session }};
    new.{{ col.attempts }} := {% if attempts_declared %}coalesce(new.{{ col.attempts }}, 0){% else %}0{% endif %};
    new.{{ status.column }} := coalesce(new.{{ status.column }}, {{ status.ready }});
    if {{ when.new.ready }} then
{%- if due %}
        new.{{ col.due }} := coalesce({{ in_zone("new." ~ due.column, due.type) }}, v_now);
{%- elif created %}
        -- A due time in the future is an appointment; otherwise the row has waited since it was created.
        new.{{ col.due }} := case when new.{{ col.due }} > v_now then new.{{ col.due }} else least(coalesce({{ in_zone("new." ~ created.column, created.type) }}, v_now), v_now) end;
{%- else %}
        new.{{ col.due }} := coalesce(new.{{ col.due }}, v_now);
{%- endif %}
    elsif {{ when.new.held }} then
        -- Inserted as already being worked on: the inserter holds it.
        new.{{ col.lease }} := (extract(epoch from v_now) * 1000000)::bigint;
{%- if holder.at %}
        -- Taken when the row says so: one inserted with an old lock has lost its holder already.
        v_now := least(coalesce({{ in_zone("new." ~ holder.at.column, holder.at.type) }}, v_now), v_now);
{%- endif %}
        select v_now + {{ hold_new }}, v_now + {{ deadline_new }}, 1, gleaner.caller_session()
        into new.{{ col.due }}, new.{{ col.deadline }}, new.{{ col.started }}, new.{{ col.session }};
    else
        -- Written as finished, or as failed by one who knows better: history, not work.
        new.{{ col.due }} := null;
    end if;
{%- if owner %}
    if new.{{ col.due }} is not null then
        new.{{ col.open }} := {{ opened("case when " ~ when.new.held ~ " then v_now else new." ~ col.due ~ " end") }};
    end if;
{%- endif %}
{%- endmacro -%}
{%- set updates = engine == "rows" and not distributed -%}
{%- if adapt_inserts and not updates %}
/*
 * The adapter for plain inserts, for programs that know nothing of us: gives the row its times. Skipped for the acts' own statements.
 * The engine's columns cannot be written from outside.
 */
create or replace function gleaner.adapt_{{ name }}() returns trigger
{{ definer }}
declare
    v_now timestamptz := clock_timestamp();
begin
    {{ insert() }}
    return new;
end
{{ body }};
{%- elif updates %}

/*
 * The adapter for plain writes, for programs that know nothing of us: an insert gets its times, and an update of the status is an act:
 * running a claim, done a completion, failed a failure, ready a requeue. Skipped for the acts' own statements. What a client read
 * earlier and writes back into the engine's columns is ignored. An update that the fence refuses changes nothing: zero rows, no error,
 * as for a row that is not there.
{%- if result %}
 * With an argument: finished work is finished again, with another result. Its own holder may do so, or anyone where it never had a
 * holder; a former holder's late result must not take the place of the one that counts.
{%- endif %}
 */
create or replace function gleaner.adapt_{{ name }}() returns trigger
{{ definer }}
declare
    v_now      timestamptz := clock_timestamp();
    v_attempts integer := old.{{ col.attempts }} + 1;
    -- The holder is known by its sign-in. Without a token only roles can be distinguished, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session  text := gleaner.caller_session();
    v_mine     boolean := coalesce(old.{{ col.session }} = v_session and (gleaner.caller_uid() is not null or old.{{ col.agent }} is null), false);
begin
{%- if result %}
    if tg_nargs > 0 then
        return case when v_mine or old.{{ col.session }} is null or new.{{ result.column }} is not distinct from old.{{ result.column }} then new end;
    end if;
{%- endif %}
{%- if adapt_inserts %}
    if tg_op = 'INSERT' then
        {{ insert() | indent(4) }}
        return new;
    end if;
{%- endif %}
    -- Out of reach, always.
    select old.{{ col.lease }}, old.{{ col.due }}, old.{{ col.lost }}, old.{{ col.started }}, old.{{ col.deadline }}, old.{{ col.agent }}, old.{{ col.session }}, old.{{ col.attempts }}{% if owner %}, old.{{ col.open }}{% endif %}
    into new.{{ col.lease }}, new.{{ col.due }}, new.{{ col.lost }}, new.{{ col.started }}, new.{{ col.deadline }}, new.{{ col.agent }}, new.{{ col.session }}, new.{{ col.attempts }}{% if owner %}, new.{{ col.open }}{% endif %};
{%- if notify %}
    if {% for column in notify_on %}{{ " or " if not loop.first }}new.{{ column }} is distinct from old.{{ column }}{% endfor %} then
        perform pg_notify('gleaner', {{ name_literal }});
    end if;
{%- endif %}
    if new.{{ status.column }} is distinct from old.{{ status.column }} and (
        -- Completed by one who does not hold it; failed or put back so, before the lease has run out, and not by an operator.
        {{ when.old.held }} and ({{ when.new.held }}) is not true and not v_mine{{ " and new." ~ status.column ~ " is distinct from " ~ status.cancelled if status.cancelled != status.failed }}
            and ({{ when.new.done }} or old.{{ col.due }} > v_now and not (gleaner.is_trusted() and {{ when.new.ready }}))
        -- A late end: the one who held it last comes back to a row that waits for the next agent, or was called off.
        or old.{{ status.column }} in ({{ status.waiting }}{{ ", " ~ status.cancelled if status.cancelled != status.failed }}) and v_mine and new.{{ status.column }} in ({{ status.done }}, {{ status.failed }})
        -- What is finished is not given up by one who no longer holds it. Nor is it, or what is dead, claimable: it is put back first.
        or {{ when.old.final }} and {{ when.new.failed }} or {{ when.old.finished }} and {{ when.new.held }}
{%- if owner %}
        or {{ when.new.held }} and ({{ when.old.held }}) is not true and old.{{ owner.column }} is not null and not gleaner.is_trusted() and old.{{ owner.column }} is distinct from gleaner.own_{{ name }}(null)
            and (gleaner.open_{{ name }}(old.{{ owner.column }}, {{ waiting_since("old") }}, old.{{ col.due }}) <= v_now) is not true
{%- endif %}
    ) then
        return null;
    end if;
    if {{ when.old.held }} and {{ when.new.held }} and not v_mine then
        -- Another than the holder edits the row: what belongs to the work stays as the holder left it.
        select {% for column in guarded %}old.{{ column }}, {% endfor %}old.{{ status.column }} into {% for column in guarded %}new.{{ column }}, {% endfor %}new.{{ status.column }};
    elsif {{ when.old.held }} and {{ when.new.held }} then
{%- if status.claimed %}
        if {{ when.new.running }} then
            new.{{ col.started }} := greatest(old.{{ col.started }}, 1);
        end if;
{%- endif %}
{%- set signs = [] %}
{%- if result %}{% set signs = signs + [result.column] %}{% endif %}
{%- if progress %}{% set signs = signs + [progress.column] %}{% endif %}
{%- if holder.at %}{% set signs = signs + [holder.at.column] %}{% endif %}
{%- if status.claimed %}{% set signs = signs + [status.column] %}{% endif %}
        -- A sign of life: a holder that writes results, progress or its lock keeps the row, up to the deadline.
        if ({% for column in signs %}{{ " or " if not loop.first }}new.{{ column }} is distinct from old.{{ column }}{% else %}false{% endfor %}) and old.{{ col.due }} - v_now < ({{ hold_new }}) / 2 then
            new.{{ col.due }} := greatest(old.{{ col.due }}, least(v_now + {{ hold_new }}, old.{{ col.deadline }}));
        end if;
{%- if due %}
    elsif new.{{ status.column }} is not distinct from old.{{ status.column }} then
        if new.{{ due.column }} is distinct from old.{{ due.column }} and old.{{ col.due }} is not null and {{ when.old.waiting }} then
            new.{{ col.due }} := coalesce({{ in_zone("new." ~ due.column, due.type) }}, v_now);
        end if;
{%- endif %}
    elsif {{ when.new.held }} then
        -- A plain claim.
        select greatest(old.{{ col.lease }} + 1, (extract(epoch from v_now) * 1000000)::bigint), v_now + {{ hold_new }}, v_now + {{ deadline_new }}, 1, null, v_session
        into new.{{ col.lease }}, new.{{ col.due }}, new.{{ col.deadline }}, new.{{ col.started }}, new.{{ col.agent }}, new.{{ col.session }};
    elsif new.{{ status.column }} is distinct from old.{{ status.column }} then
        if {{ when.new.ready }} then
            -- A requeue, or the holder's release.
            new.{{ col.lease }} := {{ lease_after_other("old") }};
            new.{{ col.due }} := v_now;
            select case when {{ when.old.held }} and v_mine then old.{{ col.attempts }} else 0 end, case when {{ when.old.held }} and v_mine then old.{{ col.lost }} else 0 end
            into new.{{ col.attempts }}, new.{{ col.lost }};
        elsif {{ when.new.failed }} then
            -- Counts an attempt and backs off; in the end the row is dead.
            select v_attempts, {{ lease_after_own("old") }}, case when {{ may_retry_old }} then v_now + gleaner.backoff({{ retry.first }}, {{ retry.cap }}, v_attempts, old.{{ key.column }}::text) end
            into new.{{ col.attempts }}, new.{{ col.lease }}, new.{{ col.due }};
{%- if error %}
{%- if error.path %}
            -- An account of an earlier try is not the writer's of this one.
            if new.{{ error.column }} #> {{ error.path }} is null or new.{{ error.column }} #> {{ error.path }} = old.{{ error.column }} #> {{ error.path }} then
{%- elif error.type == "jsonb" %}
            if new.{{ error.column }} is null or new.{{ error.column }} = old.{{ error.column }} then
{%- else %}
            -- The same words may well be meant again.
            if new.{{ error.column }} is null then
{%- endif %}
                new.{{ error.column }} := {{ error_value("new", "'Error'", "'marked as failed'", "coalesce(old." ~ col.agent ~ ", old." ~ col.session ~ ")", "v_attempts") }};
            end if;
{%- endif %}
{%- if dead %}
            if new.{{ col.due }} is null then
{%- if finished %}
                new.{{ finished.column }} := {{ in_zone("v_now", finished.type) }};
{%- endif %}
                perform gleaner.dead_letter_{{ name }}(new, {{ dead_reason_new }});
            end if;
{%- endif %}
        elsif ({{ when.old.held }} and {{ when.new.done }}) is not true then
            -- Finished without a claim: a note, a decision by hand. No late result may reopen it.
            new.{{ col.lease }} := {{ lease_after_other("old") }};
            new.{{ col.due }} := null;
        end if;
{%- if unique %}
        if {{ when.new.waiting }} and new.{{ col.due }} is not null and exists (
            select from {{ table }} as q
            where {{ "q." ~ tenant.column ~ " = new." ~ tenant.column ~ " and " if tenant }}q.{{ unique.column }} = new.{{ unique.column }}
              and q.{{ status.column }} in ({{ status.waiting }}) and q.{{ col.due }} is not null and q.{{ key.column }} <> new.{{ key.column }}
        ) then
            -- Going back to the line where a twin waits already: superseded, as by the acts.
            select {{ status.cancelled }}, null, old.{{ col.attempts }}, old.{{ col.lost }} into new.{{ status.column }}, new.{{ col.due }}, new.{{ col.attempts }}, new.{{ col.lost }};
{%- if error and not error.path %}
            new.{{ error.column }} := {{ error_value("new", "'Superseded'", "'superseded by a waiting row with the same key'", "coalesce(old." ~ col.agent ~ ", old." ~ col.session ~ ")", "old." ~ col.attempts) }};
{%- endif %}
        end if;
{%- endif %}
        select null, 0 into new.{{ col.deadline }}, new.{{ col.started }};
{%- if holder.by and not holder.keep %}
        new.{{ holder.by.column }} := null;
{%- endif %}
{%- if holder.at and not holder.keep %}
        new.{{ holder.at.column }} := null;
{%- endif %}
{%- if finished %}
        new.{{ finished.column }} := case when {{ when.new.ready }} then null when {{ when.new.claimable }} then new.{{ finished.column }}
            else coalesce(nullif(new.{{ finished.column }}, old.{{ finished.column }}), {{ in_zone("v_now", finished.type) }}) end;
{%- endif %}
    end if;
{%- if owner %}
    if new.{{ col.due }} is not null and (new.{{ owner.column }}, new.{{ col.due }}) is distinct from (old.{{ owner.column }}, old.{{ col.due }}) then
        new.{{ col.open }} := case when {{ when.new.held }} and new.{{ owner.column }} is not distinct from old.{{ owner.column }} then {{ keep_open("old", "new." ~ col.due) }}
            else {{ opened("new." ~ col.due) }} end;
    end if;
{%- endif %}
    return new;
end
{{ body }};
{%- endif %}
