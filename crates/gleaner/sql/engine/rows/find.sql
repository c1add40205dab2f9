{#- How a claim finds rows: one select that locks them in the order of the line, by exactly one index. One function per class of work. -#}
{%- from "macros.sql" import tenant_param, tenant_is, tenant_text, in_lane, not_rejected, declare_rejected, held_before, claimable_now, waiting_since, inner -%}
{%- set lanes = kind or priority -%}
{%- set classes = priority.last if priority else 0 -%}
{%- set head_start = priority.head_start if priority else "interval '0'" -%}
{#- The setting that remembers where the last claim of this session ended, and what that claim asked for. -#}
{%- macro setting(class) -%}gleaner.cursor_{{ name }}{% if class %}_{{ class }}{% endif %}{%- endmacro -%}
{%- macro asked(class) -%}
{%- if tenant or class == "own" or kind -%}
concat_ws(' '{% if tenant %}, p_tenant{% endif %}{% if class == "own" %}, p_owner{% endif %}{% if kind %}, p_kinds{% endif %})
{%- else -%}''
{%- endif -%}
{%- endmacro -%}
{#- What is read of each row, and the same as arrays. -#}
{%- macro row(at) -%}
q.{{ key.column }} as id, {{ at }} as at, ({{ held_before("q") }})::smallint as held_before
{%- for part in parts %}, q.{{ part.column }} as part_{{ loop.index }}{% endfor %}
{%- if engine == "bulk" %}, q.{{ col.lease }} = 0 and q.{{ status.column }} = {{ status.ready }}{% if unique %} and q.{{ unique.column }} is null{% endif %} as fresh{% endif %}
{%- endmacro -%}
{%- macro arrays() -%}
coalesce(array_agg(f.id), '{}'), array_agg(f.held_before), {% for part in parts %}array_agg(f.part_{{ loop.index }}), {% endfor %}{% if engine == "bulk" %}array_agg(f.fresh), {% endif %}
{%- endmacro -%}
{%- macro into() -%}
keys, held_before, {% for part in parts %}part_{{ loop.index }}, {% endfor %}{% if engine == "bulk" %}fresh, {% endif %}
{%- endmacro -%}
{%- macro signature(class) -%}
gleaner.find_{% if class %}{{ class }}_{% endif %}{{ name }}(
    {{ tenant_param() }}p_limit integer, p_now timestamptz, p_by timestamptz, p_passed {{ key.type }}[]
{%- if owner and class != "global" %}, p_owner {{ owner.type }}{% endif %}
{%- if kind %}, p_kinds {{ kind.type }}[]{% endif %}
{%- if engine == "bulk" %}, p_batches int8multirange, p_before gleaner.bulk_range{% endif %},
    out keys {{ key.type }}[], out held_before smallint[]{% for part in parts %}, out part_{{ loop.index }} {{ part.type }}[]{% endfor %}{% if engine == "bulk" %}, out fresh boolean[]{% endif %}, out seen integer
)
{%- endmacro -%}
{#- The rows of one lane, or of the whole line where there are no lanes. -#}
{%- macro line(condition, at, kind_is, class_is, after, limit, locked) -%}
from {{ table }} as q
                where {{ tenant_is("q") }}{{ condition }}{{ standing }}{{ in_lane(kind_is, class_is) }}
                  and {{ claimable_now(at, "p_now", "p_by") }}
                  and ({{ at }}, q.{{ key.column }}) >= ({{ after }})
{%- if engine == "bulk" %}
                  -- What comes before the first bulk range in the line, and is not held by a batch lease.
                  and ({{ at }}, q.{{ key.column }}) < (coalesce(p_before.due_at + (p_before.class{% if priority %} - {{ class_is }}{% endif %}) * {{ head_start }}, 'infinity'), coalesce(p_before.first, 9223372036854775807))
                  and (q.{{ col.lease }} <> 0 or not p_batches @> q.{{ key.column }})
{%- endif %}
                  and q.{{ key.column }} <> all (p_passed)
                  and {{ not_rejected("p_now") }}
                order by {{ at }}, q.{{ key.column }}
                limit {{ limit }}
{%- if locked %}
                for no key update skip locked
{%- endif %}
{%- endmacro -%}
{%- macro cursor_of_lane(part, otherwise) -%}
coalesce((v_cursor #>> array['lanes', {% if kind %}k.kind::text || ' ' || {% endif %}c.class::text, '{{ part }}'])::{{ "timestamptz" if part == 0 else key.type }}, {{ otherwise }})
{%- endmacro -%}
{#- The kinds that have claimable rows. A loose index scan, one descent per kind, so a kind that was never declared is found too. At most
    two hundred from a lane on: more kinds than that are served in turns. -#}
{%- macro waiting_kinds(condition) -%}
with recursive waiting as (
            (select {{ lane.of }} as lane, {{ kind.of }} as kind, 1 as n from {{ table }} as q
             where {{ tenant_is("q") }}{{ condition }}{{ standing }} and {{ lane.of }} > v_page order by {{ lane.of }} limit 1)
            union all
            select next.lane, next.kind, waiting.n + 1
            from waiting
            cross join lateral (
                select {{ lane.of }} as lane, {{ kind.of }} as kind from {{ table }} as q
                where {{ tenant_is("q") }}{{ condition }}{{ standing }} and {{ lane.of }} > (waiting.lane | 15) order by {{ lane.of }} limit 1
            ) as next
            where waiting.n < 200
        )
{%- endmacro -%}
{%- macro find(class, condition, at) %}
/*
 * Finds{% if class == "own" %} the owner's own rows{% elif class == "global" %} rows without an owner{% elif class == "stale" %} rows of other owners by the time they were stamped to be open to all{% else %} rows{% endif %} that are claimable now, and locks them.
 * Cursor   where the last large or slow look of this session ended: dead index entries before it are not read again, for a moment.
 *          It never reports "empty": then the look starts over.
 * Returns  keys in the order of the line; for each 0, or what an earlier holder left: see gleaner.choose_rows.
 */
create or replace function {{ signature(class) }} {{ inner() }}
declare
    v_begun  timestamptz;
    v_cursor jsonb := gleaner.read_cursor('{{ setting(class) }}', {{ asked(class) }}, p_now);
{{- declare_rejected("p_now") }}
{%- if not lanes %}
    v_at     timestamptz;
{%- else %}
    v_lanes  jsonb;
    v_most   integer[];
{%- endif %}
{%- if kind %}
    v_kinds  {{ kind.type }}[];
    v_page   bigint := -9223372036854775808; v_turn bigint; v_turned boolean := false; v_more boolean := false;
{%- endif %}
begin
    loop
        v_begun := clock_timestamp();
{%- if kind %}
        if p_kinds is not null then v_kinds := p_kinds;
        elsif v_cursor is not null then
            v_kinds := array(select jsonb_array_elements_text(v_cursor -> 'kinds'))::{{ kind.type }}[];
        else
            {{ waiting_kinds(condition) }}
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
{%- endif %}
{%- if lanes %}
        -- How many rows of each lane the batch will hold, so that no more are locked than are taken. One row is not worth the question.
        v_most := null;
        if p_limit > 1 then
            v_most := array(
                select count(head.n)
                from {% if kind %}unnest(v_kinds) with ordinality as k (kind, n) cross join {% endif %}generate_series(0, {{ classes }}) as c (class)
                left join (
                    select {% if kind %}k.n as kind_n, {% endif %}c.class, 1 as n
                    from {% if kind %}unnest(v_kinds) with ordinality as k (kind, n) cross join {% endif %}generate_series(0, {{ classes }}) as c (class)
                    cross join lateral (
                        select {{ at }} as at, q.{{ key.column }} as id
                        {{ line(condition, at, "k.kind", "c.class", cursor_of_lane(0, "'-infinity'") ~ ", " ~ cursor_of_lane(1, key.min), "p_limit", false) | indent(8) }}
                    ) as p
                    order by p.at + c.class * {{ head_start }}, p.id
                    limit p_limit
                ) as head on {% if kind %}head.kind_n = k.n and {% endif %}head.class = c.class
                group by {% if kind %}k.n, {% endif %}c.class
                order by {% if kind %}k.n, {% endif %}c.class);
        end if;
        loop
            select {{ arrays() }}coalesce(count(*), 0),
                   (select jsonb_object_agg(last.lane, jsonb_build_array(last.at, last.id))
                    from (select distinct on (u.lane) u.lane, u.at, u.id from unnest(array_agg(f.lane), array_agg(f.at), array_agg(f.id)) as u (lane, at, id)
                          order by u.lane, u.at desc, u.id desc) as last)
            into {{ into() }}seen, v_lanes
            from (
                select p.*, {% if kind %}k.kind::text || ' ' || {% endif %}c.class::text as lane
                from {% if kind %}unnest(v_kinds) with ordinality as k (kind, n) cross join {% endif %}generate_series(0, {{ classes }}) as c (class)
                cross join lateral (
                    select {{ row(at) }}
                    {{ line(condition, at, "k.kind", "c.class", cursor_of_lane(0, "'-infinity'") ~ ", " ~ cursor_of_lane(1, key.min), "coalesce(v_most[" ~ ("(k.n - 1)::integer * " ~ (classes + 1) ~ " + " if kind else "") ~ "c.class + 1], p_limit)", true) }}
                ) as p
                order by p.at + c.class * {{ head_start }}, p.id
                limit p_limit
            ) as f;
            exit when seen > 0 or v_most is null;
            -- What was counted is locked by now. Then the other lanes are due.
            v_most := null;
        end loop;
{%- else %}
        select {{ arrays() }}count(*), max(f.at)
        into {{ into() }}seen, v_at
        from (
                select {{ row(at) }}
                {{ line(condition, at, "", "", "coalesce((v_cursor ->> 'at')::timestamptz, '-infinity'), coalesce((v_cursor ->> 'key')::" ~ key.type ~ ", " ~ key.min ~ ")", "p_limit", true) }}
        ) as f;
{%- endif %}
        exit when seen > 0 or v_cursor is null{% if kind %} and not v_more{% endif %}{% if engine == "bulk" %} or p_before.first is not null{% endif %};
        v_cursor := null;
    end loop;
{%- if engine == "bulk" %}
    if seen = 0 and p_before.first is not null then
        -- Nothing waits by itself before the bulk range. Dead entries there need not be read again.
        select jsonb_object_agg({% if kind %}k.kind::text || ' ' || {% endif %}c.class::text, jsonb_build_array(least(p_by, p_before.due_at + (p_before.class - c.class) * {{ head_start }}), {{ key.min }}))
        into v_lanes
        from {% if kind %}unnest(v_kinds) as k (kind) cross join {% endif %}generate_series(0, {{ classes }}) as c (class);
    end if;
{%- endif %}
    -- Not behind rows that this claim passed over: the next one must find them.
    if cardinality(p_passed) = 0 and (seen > 0{% if engine == "bulk" %} or p_before.first is not null{% endif %}) and (v_cursor is not null or seen >= 64 and seen = p_limit or clock_timestamp() - v_begun - seen * interval '5 microseconds' > interval '3 milliseconds') then
        perform gleaner.write_cursor('{{ setting(class) }}', {{ asked(class) }}, v_cursor, p_now, clock_timestamp() - v_begun,
            {% if lanes %}jsonb_build_object('lanes', coalesce(v_cursor -> 'lanes', '{}') || coalesce(v_lanes, '{}'){% if kind %}, 'kinds', to_jsonb(v_kinds){% endif %})
            {%- else %}jsonb_build_object('at', v_at, 'key', keys[cardinality(keys)]){% endif %});
    end if;
end
{{ body }};
{%- endmacro -%}
{%- if owner %}
{{ find("own", "q." ~ owner.column ~ " = p_owner and ", "q." ~ col.due) }}
{{ find("global", "q." ~ owner.column ~ " is null and ", "q." ~ col.due) }}
{{ find("open", "q." ~ owner.column ~ " is not null and q." ~ col.open ~ " is not null and q." ~ owner.column ~ " is distinct from p_owner and ", "q." ~ col.open) }}

/*
 * Finds rows that other owners left waiting longer than they allow, and locks them. `open_at` only orders the line: the owner's own
 * row, read now, decides. A row it refuses gets the time that the policy of today gives it, or every claim would read it again.
 */
create or replace function {{ signature("stale") }} {{ inner() }}
declare
    v_open    integer[];
    v_refused integer[];
    v_open_at timestamptz[];
begin
    select f.* into keys, held_before, {% for part in parts %}part_{{ loop.index }}, {% endfor %}seen
    from gleaner.find_open_{{ name }}({% if tenant %}p_tenant, {% endif %}p_limit, p_now, least(p_by, p_now), p_passed, p_owner{% if kind %}, p_kinds{% endif %}) as f;
    select coalesce(array_agg(p.n) filter (where p.open), '{}'), array_agg(p.n) filter (where p.open is not true), array_agg(p.open_at) filter (where p.open is not true)
    into v_open, v_refused, v_open_at
    from (
        select k.n, {{ owner.shared }} and {{ waiting_since("q") }} + {{ owner.open_after }} <= least(p_by, p_now) as open,
               case when {{ owner.shared }} then greatest({{ waiting_since("q") }} + {{ owner.open_after }}, q.{{ col.due }}) end as open_at
        from unnest(keys{% for part in parts %}, part_{{ loop.index }}{% endfor %}) with ordinality as k (id{% for part in parts %}, part_{{ loop.index }}{% endfor %}, n)
        join {{ table }} as q on {{ tenant_is("q") }}q.{{ key.column }} = any (array[k.id]){% for part in parts %} and q.{{ part.column }} = k.part_{{ loop.index }}{% endfor %}
{%- if owner.table %}
        left join {{ owner.table }} as o on o.{{ owner.key }} = q.{{ owner.column }}
{%- endif %}
        order by k.n
    ) as p;
    if v_refused is not null then
        perform gleaner.restamp_{{ name }}({% if tenant %}p_tenant, {% endif %}array(select keys[n] from unnest(v_refused) as n){% for part in parts %}, array(select part_{{ loop.index }}[n] from unnest(v_refused) as n){% endfor %}, v_open_at);
        held_before := array(select held_before[n] from unnest(v_open) as n);
{%- for part in parts %}
        part_{{ loop.index }} := array(select part_{{ loop.index }}[n] from unnest(v_open) as n);
{%- endfor %}
        keys := array(select keys[n] from unnest(v_open) as n);
    end if;
end
{{ body }};

/*
 * Writes the times from which rows are open to all, where a policy changed after they were stamped. A row that rejects the change is
 * noted, and left out of claims for a while.
 */
create or replace function gleaner.restamp_{{ name }}({{ tenant_param() }}p_ids {{ key.type }}[]{% for part in parts %}, p_part_{{ loop.index }} {{ part.type }}[]{% endfor %}, p_open_at timestamptz[]) returns void {{ inner() }}
begin
    update {{ table }} as q set {{ col.open }} = u.open_at
    from unnest(p_ids{% for part in parts %}, p_part_{{ loop.index }}{% endfor %}, p_open_at) as u (id{% for part in parts %}, part_{{ loop.index }}{% endfor %}, open_at)
    where {{ tenant_is("q") }}q.{{ key.column }} = any (array[u.id]){% for part in parts %} and q.{{ part.column }} = u.part_{{ loop.index }}{% endfor %};
exception when others then
    perform gleaner.raise_if_momentary(sqlstate, sqlerrm);
    if cardinality(p_ids) = 1 then
        perform gleaner.reject_row({{ name_literal }}, {{ tenant_text() }}, {% if parts %}(p_ids[1]{% for part in parts %}, p_part_{{ loop.index }}[1]{% endfor %})::text{% else %}p_ids[1]::text{% endif %}, sqlerrm);
        return;
    end if;
    for v_i in 1 .. cardinality(p_ids) loop
        perform gleaner.restamp_{{ name }}({% if tenant %}p_tenant, {% endif %}p_ids[v_i : v_i]{% for part in parts %}, p_part_{{ loop.index }}[v_i : v_i]{% endfor %}, p_open_at[v_i : v_i]);
    end loop;
end
{{ body }};

/*
 * The same by a look at every owner that shares: exact, whatever rows were stamped with. A threshold that was lowered is found so.
 * Costs    a descent per owner with work. The claim asks for it when it found nothing, and for a twentieth of its time at most.
 */
create or replace function {{ signature("overdue") }} {{ inner() }}
declare
    v_begun  timestamptz := clock_timestamp();
    v_fields integer;
begin
    if gleaner.read_cursor('{{ setting("overdue") }}', {{ asked("overdue") }}, p_now) is not null then
        keys := '{}';
        seen := 0;
        return;
    end if;
    with recursive owners as (
        (select q.{{ owner.column }} as owner from {{ table }} as q
         where {{ tenant_is("q") }}q.{{ owner.column }} is not null and {{ standing }} order by q.{{ owner.column }} limit 1)
        union all
        select next.owner
        from owners
        cross join lateral (
            select q.{{ owner.column }} as owner from {{ table }} as q
            where {{ tenant_is("q") }}q.{{ owner.column }} is not null and {{ standing }} and q.{{ owner.column }} > owners.owner
            order by q.{{ owner.column }} limit 1
        ) as next
    ), fields as (
{%- if kind %}
        select w.owner, w.kind, w.open_after
        from (select owners.owner, {{ owner.open_after }} as open_after
              from owners{% if owner.table %} join {{ owner.table }} as o on o.{{ owner.key }} = owners.owner{% endif %}
              where {{ owner.shared }} and owners.owner is distinct from p_owner offset 0) as shared
        cross join lateral (
            with recursive waiting as (
                (select {{ lane.of }} as lane, {{ kind.of }} as kind from {{ table }} as q
                 where {{ tenant_is("q") }}q.{{ owner.column }} = shared.owner and {{ standing }} order by {{ lane.of }} limit 1)
                union all
                select next.lane, next.kind
                from waiting
                cross join lateral (
                    select {{ lane.of }} as lane, {{ kind.of }} as kind from {{ table }} as q
                    where {{ tenant_is("q") }}q.{{ owner.column }} = shared.owner and {{ standing }} and {{ lane.of }} > (waiting.lane | 15)
                    order by {{ lane.of }} limit 1
                ) as next
            )
            select shared.owner, waiting.kind, shared.open_after from waiting
            where p_kinds is null or waiting.kind = any (p_kinds)
        ) as w
{%- else %}
        select owners.owner, {{ owner.open_after }} as open_after
        from owners{% if owner.table %} join {{ owner.table }} as o on o.{{ owner.key }} = owners.owner{% endif %}
        where {{ owner.shared }} and owners.owner is distinct from p_owner
{%- endif %}
    ), share as (
        select greatest(1, ceil(p_limit::numeric / greatest(count(*), 1)))::integer as take from fields
    )
    select {{ arrays() }}count(*), (select count(*) from fields)
    into {{ into() }}seen, v_fields
    from (
        select p.*
        from fields cross join share cross join generate_series(0, {{ classes }}) as c (class)
        cross join lateral (
            select {{ row("q." ~ col.due) }}
            from {{ table }} as q
            where {{ tenant_is("q") }}q.{{ owner.column }} = fields.owner and {{ standing }}{{ in_lane("fields.kind", "c.class") }}
              -- The first keeps it on the index; the second is the policy, for a due time may be earlier than the row.
              and q.{{ col.due }} <= least(p_by, p_now) - fields.open_after and {{ waiting_since("q") }} <= least(p_by, p_now) - fields.open_after
              and q.{{ key.column }} <> all (p_passed) and {{ not_rejected("p_now") }}
            order by q.{{ col.due }}, q.{{ key.column }}
            limit share.take
            for no key update skip locked
        ) as p
        order by p.at, p.id
        limit p_limit
    ) as f;
    if seen = 0 and v_fields > 500 then
        perform gleaner.write_cursor('{{ setting("overdue") }}', {{ asked("overdue") }}, null, p_now, clock_timestamp() - v_begun, '{}');
    end if;
end
{{ body }};
{%- else %}
{{ find("", "", "q." ~ col.due) }}
{%- endif %}
