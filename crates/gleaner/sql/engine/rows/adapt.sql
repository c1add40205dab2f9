{%- from "macros.sql" import act, in_zone, waiting_since, keep_open, error_value, lease_after_other, lease_after_own -%}
{#- Both times of a row that waits from `since` on. -#}
{%- macro stamp(due) %}
        new.{{ col.due }} := {{ due }};
{%- if owner %}
        new.{{ col.open }} := case when new.{{ owner.column }} is null then new.{{ col.due }}
            else gleaner.open_{{ name }}(new.{{ owner.column }}, coalesce({{ waiting_since("new") }}, new.{{ col.due }}), new.{{ col.due }}) end;
{%- endif %}
{%- endmacro -%}
{#- Ends a holder's say in the row. -#}
{%- macro unhold() %}
        new.{{ col.deadline }} := null;
        new.{{ col.started }} := 0;
{%- if holder.by and not holder.keep %}
        new.{{ holder.by.column }} := null;
{%- endif %}
{%- if holder.at and not holder.keep %}
        new.{{ holder.at.column }} := null;
{%- endif %}
{%- endmacro -%}
{%- if adapt_inserts %}
/*
 * The adapter for plain inserts, for programs that know nothing of us: gives the row its times. Skipped for the acts' own statements.
 * The engine's columns cannot be written from outside.
 */
create or replace function gleaner.adapt_insert_{{ name }}() returns trigger
language plpgsql
security definer
set search_path = {{ search_path }}
as {{ body }}
declare
    v_now timestamptz := clock_timestamp();
begin
    new.{{ col.lease }} := 0;
    new.{{ col.lost }} := 0;
    new.{{ col.started }} := 0;
    new.{{ col.deadline }} := null;
    new.{{ col.agent }} := null;
    new.{{ col.session }} := null;
{%- if not attempts_declared %}
    new.{{ col.attempts }} := 0;
{%- else %}
    new.{{ col.attempts }} := coalesce(new.{{ col.attempts }}, 0);
{%- endif %}
    if new.{{ status.column }} is null then
        new.{{ status.column }} := {{ status.ready }};
    end if;
    if new.{{ status.column }} in ({{ status.waiting }}, {{ status.held }}) then
{%- if due %}
{{- stamp("coalesce(" ~ in_zone("new." ~ due.column, due.type) ~ ", v_now)") }}
{%- elif created %}
        -- A due time in the future is an appointment; otherwise the row has waited since it was created.
{{- stamp("case when new." ~ col.due ~ " > v_now then new." ~ col.due ~ " else least(coalesce(" ~ in_zone("new." ~ created.column, created.type) ~ ", v_now), v_now) end") }}
{%- else %}
{{- stamp("coalesce(new." ~ col.due ~ ", v_now)") }}
{%- endif %}
        if new.{{ status.column }} = {{ status.failed }} then
            -- Written as failed by somebody who knows better: history, not work.
            new.{{ col.due }} := null;
        elsif new.{{ status.column }} in ({{ status.held }}) then
            -- Inserted as already being worked on: the inserter holds it.
            new.{{ col.lease }} := (extract(epoch from v_now) * 1000000)::bigint;
{%- if holder.at %}
            -- Taken when the row says so: one inserted with an old lock has lost its holder already.
            v_now := least(coalesce({{ in_zone("new." ~ holder.at.column, holder.at.type) }}, v_now), v_now);
{%- endif %}
            new.{{ col.deadline }} := v_now + {{ deadline_new }};
            new.{{ col.due }} := v_now + {{ hold_new }};
{%- if owner %}
            new.{{ col.open }} := {{ keep_open("new", "new." ~ col.due) }};
{%- endif %}
            new.{{ col.started }} := 1;
            new.{{ col.session }} := gleaner.caller_session();
        end if;
    else
        new.{{ col.due }} := null;
    end if;
    return new;
end
{{ body }};
{%- endif %}
{%- if engine == "rows" and not distributed %}

/*
 * A plain update of a row that is held and stays so. The holder shows life by it; of others the columns that belong to the work stay as
 * they are.
 */
create or replace function gleaner.adapt_edit_{{ name }}(old {{ table }}, new {{ table }}, v_mine boolean) returns {{ table }}
language plpgsql
as {{ body }}
declare
    v_now timestamptz := clock_timestamp();
begin
    if coalesce(v_mine, false) then
{%- if status.claimed %}
        if old.{{ status.column }} = {{ status.claimed }} and new.{{ status.column }} = {{ status.running }} then
            new.{{ col.started }} := greatest(old.{{ col.started }}, 1);
        end if;
{%- endif %}
        -- A sign of life: a holder that writes results, progress or its lock keeps the row, up to the deadline.
        if (false
{%- if result %} or new.{{ result.column }} is distinct from old.{{ result.column }}{% endif %}
{%- if progress %} or new.{{ progress.column }} is distinct from old.{{ progress.column }}{% endif %}
{%- if holder.at %} or new.{{ holder.at.column }} is distinct from old.{{ holder.at.column }}{% endif %}
{%- if status.claimed %} or new.{{ status.column }} is distinct from old.{{ status.column }}{% endif %}) and old.{{ col.due }} - v_now < ({{ hold_new }}) / 2 then
            new.{{ col.due }} := greatest(old.{{ col.due }}, least(v_now + {{ hold_new }}, old.{{ col.deadline }}));
{%- if owner %}
            new.{{ col.open }} := {{ keep_open("old", "new." ~ col.due) }};
{%- endif %}
        end if;
    else
        -- Somebody else edits the row while it is held: what belongs to the work stays as the holder left it.
        new.{{ status.column }} := old.{{ status.column }};
{%- for column in guarded %}
        new.{{ column }} := old.{{ column }};
{%- endfor %}
    end if;
{%- if owner %}
    if new.{{ owner.column }} is distinct from old.{{ owner.column }} then
{{- stamp("old." ~ col.due) }}
    end if;
{%- endif %}
    return new;
end
{{ body }};

-- A plain failure counts an attempt and backs off; in the end the row is dead.
create or replace function gleaner.adapt_failure_{{ name }}(old {{ table }}, new {{ table }}) returns {{ table }}
language plpgsql
as {{ body }}
declare
    v_now      timestamptz := clock_timestamp();
    v_attempts integer;
begin
    v_attempts := old.{{ col.attempts }} + 1;
    new.{{ col.attempts }} := v_attempts;
    new.{{ col.lease }} := {{ lease_after_own("old") }};
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
    if {{ may_retry_old }} then
{{- stamp("v_now + gleaner.backoff(" ~ retry.first ~ ", " ~ retry.cap ~ ", v_attempts, old." ~ key.column ~ "::text)") }}
    else
        new.{{ col.due }} := null;
{%- if finished %}
        new.{{ finished.column }} := {{ in_zone("v_now", finished.type) }};
{%- endif %}
{%- if dead %}
        perform gleaner.dead_letter_{{ name }}(new, {{ dead_reason_new }});
{%- endif %}
    end if;
{{- unhold() }}
    return new;
end
{{ body }};
{%- if result %}

/*
 * Finished work is finished again, with another result. Its own holder may do so, or anyone where it never had a holder; a former
 * holder's late result must not take the place of the one that counts.
 */
create or replace function gleaner.adapt_again_{{ name }}() returns trigger
language plpgsql
security definer
set search_path = {{ search_path }}
as {{ body }}
declare
    -- The holder is known by its sign-in. Without a token only roles can be told apart, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session text := gleaner.caller_session();
    v_mine    boolean := old.{{ col.session }} = v_session and (gleaner.caller_uid() is not null or old.{{ col.agent }} is null);
begin
    if old.{{ col.session }} is not null and v_mine is not true then
        return null;
    end if;
    return new;
end
{{ body }};
{%- endif %}

/*
 * The adapter for plain updates: a status that becomes running is a claim, done a completion, failed a failure, ready a requeue. Skipped
 * for the acts' own statements. What a client read earlier and writes back into the engine's columns is ignored. An update that the
 * fence refuses changes nothing: zero rows, no error, as for a row that is not there.
 */
create or replace function gleaner.adapt_update_{{ name }}() returns trigger
language plpgsql
security definer
set search_path = {{ search_path }}
as {{ body }}
declare
    v_now     timestamptz := clock_timestamp();
    -- The holder is known by its sign-in. Without a token only roles can be told apart, and then a lease that was taken
    -- by an act (it names its agent) is never ended by a plain write.
    v_session text := gleaner.caller_session();
    v_mine    boolean := old.{{ col.session }} = v_session and (gleaner.caller_uid() is not null or old.{{ col.agent }} is null);
begin
    -- Out of reach, always.
    new.{{ col.lease }} := old.{{ col.lease }};
    new.{{ col.due }} := old.{{ col.due }};
    new.{{ col.lost }} := old.{{ col.lost }};
    new.{{ col.started }} := old.{{ col.started }};
    new.{{ col.deadline }} := old.{{ col.deadline }};
    new.{{ col.agent }} := old.{{ col.agent }};
    new.{{ col.session }} := old.{{ col.session }};
    new.{{ col.attempts }} := old.{{ col.attempts }};
{%- if owner %}
    new.{{ col.open }} := old.{{ col.open }};
{%- endif %}
{%- if notify %}
    if {% for column in notify_on %}{{ " or " if not loop.first }}new.{{ column }} is distinct from old.{{ column }}{% endfor %} then
        perform pg_notify('gleaner', {{ name_literal }});
    end if;
{%- endif %}

    if old.{{ status.column }} in ({{ status.held }}) then
        if new.{{ status.column }} in ({{ status.held }}) then
            return gleaner.adapt_edit_{{ name }}(old, new, v_mine is true);
        end if;
        if new.{{ status.column }} = {{ status.done }} then
            if v_mine is not true then
                return null;
            end if;
{{- unhold() }}
{%- if finished %}
            new.{{ finished.column }} := coalesce(nullif(new.{{ finished.column }}, old.{{ finished.column }}), {{ in_zone("v_now", finished.type) }});
{%- endif %}
            return new;
        end if;
{%- if status.cancelled != status.failed %}
        if new.{{ status.column }} = {{ status.cancelled }} then
            new.{{ col.lease }} := {{ lease_after_other("old") }};
            new.{{ col.due }} := null;
{{- unhold() }}
{%- if finished %}
            new.{{ finished.column }} := {{ in_zone("v_now", finished.type) }};
{%- endif %}
            return new;
        end if;
{%- endif %}
        -- Failed or put back by one who does not hold it: only once the lease has run out, or by an operator.
        if v_mine is not true and not (old.{{ col.due }} <= v_now) and not (gleaner.is_trusted() and new.{{ status.column }} = {{ status.ready }}) then
            return null;
        end if;
    elsif new.{{ status.column }} in ({{ status.done }}, {{ status.failed }}) and new.{{ status.column }} is distinct from old.{{ status.column }}
          and (old.{{ status.column }} in ({{ status.waiting }}{{ ", " ~ status.cancelled if status.cancelled != status.failed }}) and v_mine
               or old.{{ status.column }} in ({{ status.final }}) and new.{{ status.column }} = {{ status.failed }}) then
        -- A late end: the one who held it last comes back to a row that waits for the next agent, or was called off; or
        -- somebody who no longer holds it gives up what another has finished.
        return null;
    end if;

    if new.{{ status.column }} is not distinct from old.{{ status.column }} then
{%- if due %}
        if new.{{ due.column }} is distinct from old.{{ due.column }} and old.{{ col.due }} is not null and old.{{ status.column }} in ({{ status.waiting }}) then
{{- stamp("coalesce(" ~ in_zone("new." ~ due.column, due.type) ~ ", v_now)") }}
            return new;
        end if;
{%- endif %}
{%- if owner %}
        if new.{{ owner.column }} is distinct from old.{{ owner.column }} and old.{{ col.due }} is not null then
{{- stamp("old." ~ col.due) }}
        end if;
{%- endif %}
        return new;
    end if;

    if new.{{ status.column }} in ({{ status.held }}) then
        -- A plain claim. What is finished or dead is not claimable, whoever means to begin it now; it is put back first.
        if old.{{ status.column }} in ({{ status.final }}) or old.{{ status.column }} = {{ status.failed }} and old.{{ col.due }} is null then
            return null;
        end if;
{%- if owner %}
        if old.{{ owner.column }} is not null and not gleaner.is_trusted()
           and old.{{ owner.column }} is distinct from gleaner.own_{{ name }}(null)
           and (gleaner.open_{{ name }}(old.{{ owner.column }}, {{ waiting_since("old") }}, old.{{ col.due }}) <= v_now) is not true then
            return null;
        end if;
{%- endif %}
        new.{{ col.lease }} := greatest(old.{{ col.lease }} + 1, (extract(epoch from v_now) * 1000000)::bigint);
        new.{{ col.due }} := v_now + {{ hold_new }};
        new.{{ col.deadline }} := v_now + {{ deadline_new }};
{%- if owner %}
        new.{{ col.open }} := {{ keep_open("old", "new." ~ col.due) }};
{%- endif %}
        new.{{ col.started }} := 1;
        new.{{ col.agent }} := null;
        new.{{ col.session }} := v_session;
    elsif new.{{ status.column }} = {{ status.ready }} then
        -- A requeue, or the holder's release.
        new.{{ col.lease }} := {{ lease_after_other("old") }};
        if not (old.{{ status.column }} in ({{ status.held }}) and v_mine is true) then
            new.{{ col.attempts }} := 0;
            new.{{ col.lost }} := 0;
        end if;
{{- stamp("v_now") }}
{{- unhold() }}
{%- if finished %}
        new.{{ finished.column }} := null;
{%- endif %}
    elsif new.{{ status.column }} = {{ status.failed }} then
        new := gleaner.adapt_failure_{{ name }}(old, new);
    else
        -- Finished without a claim: a note, a decision by hand. Nobody's late result may reopen it.
        new.{{ col.lease }} := {{ lease_after_other("old") }};
        new.{{ col.due }} := null;
{{- unhold() }}
{%- if finished %}
        new.{{ finished.column }} := coalesce(nullif(new.{{ finished.column }}, old.{{ finished.column }}), {{ in_zone("v_now", finished.type) }});
{%- endif %}
    end if;
{%- if unique %}
    if new.{{ status.column }} in ({{ status.waiting }}) and new.{{ col.due }} is not null and exists (
        select from {{ table }} as q
        where {{ "q." ~ tenant.column ~ " = new." ~ tenant.column ~ " and " if tenant }}q.{{ unique.column }} = new.{{ unique.column }}
          and q.{{ status.column }} in ({{ status.waiting }}) and q.{{ col.due }} is not null
          and q.{{ key.column }} <> new.{{ key.column }}
    ) then
        -- Going back to the line where a twin waits already: superseded, as by the acts.
        new.{{ status.column }} := {{ status.cancelled }};
        new.{{ col.due }} := null;
        new.{{ col.attempts }} := old.{{ col.attempts }};
        new.{{ col.lost }} := old.{{ col.lost }};
{%- if error and not error.path %}
        new.{{ error.column }} := {{ error_value("new", "'Superseded'", "'superseded by a waiting row with the same key'", "coalesce(old." ~ col.agent ~ ", old." ~ col.session ~ ")", "old." ~ col.attempts) }};
{%- endif %}
{%- if finished %}
        new.{{ finished.column }} := {{ in_zone("v_now", finished.type) }};
{%- endif %}
    end if;
{%- endif %}
    return new;
end
{{ body }};
{%- endif %}
