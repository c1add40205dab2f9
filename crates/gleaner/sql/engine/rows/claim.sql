{%- from "macros.sql" import act, enter, tenant_param, tenant_arg, tenant_is, is_paused -%}
{%- from "take.sql" import take -%}
{#- The rows found, from the places that were chosen of them. -#}
{%- macro choose(array) -%}{{ array }} := array(select {{ array }}[p] from unnest(v_chosen.places) as p);{%- endmacro -%}
{%- set one = not parts and not distributed -%}
{%- macro take_first(class) -%}
gleaner.take_first_{{ class ~ "_" if class }}{{ name }}({{ tenant_arg() }}v_by{% if class == "own" %}, p_owner{% endif %}{% if kind %}, v_kinds{% endif %}, p_agent, v_session, v_now, p_hold, p_started{% if holder.by %}, v_holder{% endif %})
{%- endmacro -%}
{#- The rows that lost too many leases. -#}
{%- set ended -%}
{{ tenant_is("q") }}q.{{ key.column }} = any (array[v_keys[p]]){% for part in parts %} and q.{{ part.column }} = any (array[v_part_{{ loop.index }}[p]]){% endfor %}
{%- endset -%}
{%- macro look(class) -%}
v_found := gleaner.find_{% if class %}{{ class }}_{% endif %}{{ name }}({{ tenant_arg() }}v_asked, v_now, v_by, v_passed
            {%- if owner and class == "own" %}, p_owner{% elif owner and class != "global" %}, case when 'own' = any (p_classes) then p_owner end{% endif %}
            {%- if kind %}, v_kinds{% endif %});
{%- endmacro -%}
{%- macro find() -%}
v_asked := case when v_plain <= 0 and v_tries % 25 > 0 then greatest(v_left, 100) else v_left end;
{%- if owner %}
case v_class
when 'own' then
    {{ look("own") }}
when 'global' then
    {{ look("global") }}
when 'stale' then
    {{ look("stale") }}
else
    {{ look("overdue") }}
end case;
{%- else %}
{{ look("") }}
{%- endif %}
v_keys := v_found.keys; v_held_before := v_found.held_before; v_seen := v_found.seen;
{%- for part in parts %}
v_part_{{ loop.index }} := v_found.part_{{ loop.index }};
{%- endfor %}
{%- if owner %}
-- Rows that the owners of today do not share, by stamps of another policy.
v_refused := v_class = 'stale' and cardinality(v_keys) < v_seen;
{%- endif %}
exit when cardinality(v_keys) = 0;
{%- endmacro -%}
/*
 * Takes up to p_limit rows for p_agent{% if owner %}: its owner's own first, then those without an owner, then what other owners left
 * waiting longer than they allow{% endif %}, in order of due time, then key{% if priority %}; urgent classes have a head start{% endif %}.
 * Changes  status to {{ status.taken }}, a new lease, due_at to the end of the hold; counts a lost lease, and ends rows that lost too many.
 * Races    skip locked: no row is handed out twice and no caller waits for another.
 * Returns  the rows as they now stand, lease included; none when nothing is due. A short answer is no proof of emptiness.
 * Agent    null: the caller is known by its sign-in alone and ends the work by plain updates.
 * Early    trusted callers also get rows that wait and come due within p_early; below zero: only what has been due for so long.
 * Repeats  with the same p_request the same rows come back, for as long as their leases stand.
 */
create or replace function gleaner.claim_{{ name }}(
    {{ tenant_param() }}p_agent text, p_limit integer default 1,
{%- if owner %} p_owner {{ owner.type }} default null, p_classes text[] default '{own,global,stale}',{% endif %}
{%- if kind %} p_kinds text[] default null,{% endif %} p_request uuid default null,
    p_started boolean default false, p_hold interval default null, p_early interval default '0'{% if holder.by %}, p_holder text default null{% endif %}
) returns setof {{ table }}
{{ act() }}
declare
    -- The database's clock, read once: now() is the start of the caller's transaction, which may be long ago.
    v_now         timestamptz := clock_timestamp();
    v_session     text := gleaner.begin_claim({{ name_literal }}, p_agent);
    v_by          timestamptz := v_now + case when p_early <= interval '0' or gleaner.is_trusted() then p_early else interval '0' end;
    v_lease       bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_left        integer := least(coalesce(p_limit, 1), 10000);
    v_asked       integer; v_seen integer; v_count integer; v_total integer := 0; v_tries integer := 0; v_alone boolean := false;
    v_key         {{ key.type }}; v_keys {{ key.type }}[]; v_held_before smallint[]; v_passed {{ key.type }}[] := '{}'; v_taken {{ key.type }}[] := '{}'; v_found record; v_chosen record;{% if distributed %} v_row {{ table }};{% endif %}
{%- for part in parts %}
    v_part_{{ loop.index }}      {{ part.type }}[];
{%- endfor %}
{%- if parts %}
    -- How many rows earlier rounds of this claim looked at: their leases are used.
    v_before      integer := 0;
{%- endif %}
    v_plain       double precision := coalesce(nullif(current_setting('gleaner.plain_{{ name }}', true), ''), '0');
{%- if kind %}
    v_kinds       {{ kind.type }}[];
{%- endif %}
{%- if owner %}
    v_class       text; v_refused boolean := false;
{%- endif %}
{%- if holder.by %}
    v_holder      {{ holder.by.type }};
{%- endif %}
begin
    {{ enter() }}
    if p_request is not null and gleaner.is_repeated({{ name_literal }}, p_request) then
        return query execute 'select * from gleaner.repeat_{{ name }}({% if tenant %}$3, {% endif %}$1, $2)' using p_request, v_session{% if tenant %}, p_tenant{% endif %}; return;
    end if;
{%- if kind %}
    if current_setting('request.jwt.claims', true) <> '' then
        p_kinds := gleaner.scoped_kinds({{ name_literal }}, p_kinds);
    end if;
    if p_kinds is not null then
        v_kinds := array(select distinct k from unnest(p_kinds) as k);
    end if;
{%- endif %}
{%- if owner %}
    p_owner := gleaner.own_{{ name }}(p_owner);
{%- endif %}
{%- if holder.by %}
    if p_holder is not null and not gleaner.is_trusted() then
        raise exception 'a signed-in caller claims in its own name' using errcode = '42501', hint = 'Leave p_holder out, or use the service key.';
    end if;
    v_holder := {% if holder.by.type == "uuid" %}coalesce(p_holder::uuid, gleaner.caller_uid()){% else %}coalesce(p_holder, p_agent){% endif %};
{%- if holder.by.type == "uuid" and owner and owner.user %}
    if v_holder is null and p_owner is not null then
        select o.{{ owner.user }} into v_holder from {{ owner.table }} as o where o.{{ owner.key }} = p_owner;
    end if;
{%- endif %}
{%- endif %}
    if abs(v_plain) < extract(epoch from v_now) then
        v_plain := gleaner.check_plain('gleaner.plain_{{ name }}', v_now, {{ plain_arguments }});
    end if;
{%- if owner %}
    foreach v_class in array '{own,global,stale,overdue}'::text[] loop
    continue when v_class = 'own' and p_owner is null;
    continue when case v_class when 'overdue' then 'stale' else v_class end <> all (p_classes) or v_class = 'overdue' and v_total > 0 and not v_refused;
{%- endif %}
{%- if one %}
    if p_limit = 1 and v_left = 1 and v_plain > 0{% if owner %} and v_class in ('own', 'global'){% endif %} and coalesce(current_setting('gleaner.cursor_{{ name }}{% if owner %}_' || v_class{% else %}'{% endif %}, true), '') = '' then
        -- One row, the usual claim. What is not found so, such as a row that had a holder, is looked for below.
        v_key := {% if owner %}case v_class when 'own' then {{ take_first("own") }} else {{ take_first("global") }} end{% else %}{{ take_first("") }}{% endif %};
        return query select q.* from {{ table }} as q where {{ tenant_is("q") }}q.{{ key.column }} = v_key;
        if found then v_left := 0; v_total := 1; v_taken := array[v_key]; end if;
    end if;
{%- endif %}
    while v_left > 0 and not v_alone and v_tries < 100 loop
        exit when {{ is_paused() }};
        {{ find() | indent(8) }}
        if 0 <> any (v_held_before) then
            v_tries := v_tries + 25;
            v_chosen := gleaner.choose_rows(v_held_before, v_left, v_total);
{%- if distributed %}
            for v_row in select q.* from unnest(v_chosen.ended) as p join {{ table }} as q on {{ ended }} loop
                perform gleaner.lose_{{ name }}(v_row);
            end loop;
{%- else %}
            perform gleaner.lose_{{ name }}(q) from unnest(v_chosen.ended) as p join {{ table }} as q on {{ ended }};
{%- endif %}
            v_passed := v_passed || array(select v_keys[p] from unnest(v_chosen.passed) as p);
            {{ choose("v_keys") }}
{%- for part in parts %}
            {{ choose("v_part_" ~ loop.index) }}
{%- endfor %}
            v_alone := v_chosen.alone; v_left := v_chosen.room;
            -- What was found and not chosen must be found again.
            if cardinality(v_keys) < v_seen then perform set_config('gleaner.cursor_{{ name }}{% if owner %}_' || case v_class when 'stale' then 'open' else v_class end{% else %}'{% endif %}, '', false); end if;
        end if;
        if v_plain > 0 then
            return query
{%- if distributed %}
            -- A shard returns rows in an order of its own.
            with taken as (
            {{ take("p_started or v_alone") | indent(12) }}
            returning q.*)
            select t.* from unnest(v_keys) with ordinality as k (id, n) join taken as t on t.{{ key.column }} = k.id order by k.n;
{%- else %}
            {{ take("p_started or v_alone") | indent(12) }}
            returning q.*;
{%- endif %}
        else
            -- By `execute`: a plan that was kept would not notice that the table got another column.
            return query execute 'select * from gleaner.take_each_{{ name }}({% if tenant %}$9, {% endif %}$1{% for part in parts %}, ${{ loop.index + 10 }}{% endfor %}, $2, $3, $4, $5, $6, $7{% if holder.by %}, $8{% endif %}{% if parts %}, $10{% endif %})'
            using v_keys, v_left, p_agent, v_session, v_now, p_hold, p_started or v_alone, {% if holder.by %}v_holder{% else %}null::text{% endif %}, {% if tenant %}p_tenant{% else %}null::text{% endif %}, {% if parts %}v_before{% else %}null::text{% endif %}{% for part in parts %}, v_part_{{ loop.index }}{% endfor %};
        end if;
        get diagnostics v_count = row_count;
        v_alone := v_alone and v_count > 0; v_tries := v_tries + (v_count < least(v_seen, v_left))::integer;
        v_total := v_total + v_count; v_left := v_left - v_count; v_taken := v_taken || v_keys;
{%- if parts %}
        v_before := v_before + v_seen;
{%- endif %}
        exit when v_seen < v_asked{% if owner %} or v_refused{% endif %};
    end loop;
{%- if owner %}
    end loop;
{%- endif %}
    if p_request is not null and v_total > 0 then perform gleaner.remember_{{ name }}({{ tenant_arg() }}p_request, v_taken, v_lease, v_session); end if;
end
{{ body }};
