{%- from "macros.sql" import inner -%}
{%- from "hold.sql" import held_row -%}
{#- Batch leases give rows out in the shape the table had when this was rendered; a table that grew since is claimed row by row. -#}
/*
 * Whether the table still has the columns that batch leases give out.
 */
create or replace function gleaner.in_shape_{{ name }}() returns boolean {{ inner() }}
begin
    return array[{{ bulk.names }}] = array(
        select a.attname::text from pg_attribute as a
        where a.attrelid = {{ table_literal }}::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum);
end
{{ body }};

/*
 * The rows of a repeated request that its caller still holds, in the order they were given out. Another caller who knows the request is
 * given none of them.
 */
create or replace function gleaner.repeat_{{ name }}(p_request uuid, v_session text) returns setof {{ table }} {{ inner() }}
declare
    v_trusted boolean := gleaner.is_trusted();
    v_keys    text[];
    v_leases  bigint[];
begin
    select r.keys, r.leases into v_keys, v_leases from gleaner.request as r where r.queue = {{ name_literal }} and r.id = p_request;
    if gleaner.in_shape_{{ name }}() then
        return query
        select {{ held_row("-b.id", "b.due_at", "b.deadline_at", "b.begun @> q." ~ key.column, "b.agent", "b.session", true) }}
        from unnest(v_keys, v_leases) with ordinality as k (id, lease, n)
        join {{ table }} as q on q.{{ key.column }} = any (array[k.id::{{ key.type }}])
        left join gleaner.batch_lease as b on b.id = -k.lease and b.queue = {{ name_literal }} and b.keys @> q.{{ key.column }}
            and q.{{ col.lease }} = b.mark and q.{{ status.column }} = {{ status.ready }} and (v_trusted or b.session = v_session)
        where b.id is not null or q.{{ col.lease }} = k.lease and q.{{ status.column }} in ({{ status.held }}) and (v_trusted or q.{{ col.session }} = v_session)
        order by k.n;
        return;
    end if;
    return query
    select q.*
    from unnest(v_keys, v_leases) as k (id, lease)
    join {{ table }} as q on q.{{ key.column }} = any (array[k.id::{{ key.type }}])
    where q.{{ col.lease }} = k.lease and q.{{ status.column }} in ({{ status.held }}) and (v_trusted or q.{{ col.session }} = v_session);
end
{{ body }};

-- Keeps which rows a claim with a request id was given, with their leases: a batch's, or their own.
create or replace function gleaner.remember_{{ name }}(p_request uuid, p_keys {{ key.type }}[], p_session text, p_now timestamptz) returns void {{ inner() }}
declare
    v_keys   text[];
    v_leases bigint[];
begin
    select array_agg(h.id::text order by h.n), array_agg(h.lease order by h.n)
    into v_keys, v_leases
    from (
        select k.id, k.n, coalesce(-b.id, q.{{ col.lease }}) as lease
        from unnest(p_keys) with ordinality as k (id, n)
        join {{ table }} as q on q.{{ key.column }} = any (array[k.id])
        left join gleaner.batch_lease as b on b.queue = {{ name_literal }} and b.xid = pg_current_xact_id() and b.keys @> k.id and q.{{ col.lease }} = b.mark
    ) as h;
    update gleaner.request as r set keys = v_keys, leases = v_leases where r.queue = {{ name_literal }} and r.id = p_request;
end
{{ body }};
