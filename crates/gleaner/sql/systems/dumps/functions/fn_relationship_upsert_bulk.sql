/*
 * Stores how dumps, blocks and entities of a basket relate, once each per dump; the same connection again updates its strength
 * and description.
 * Input    p_edges is [{from_type, from_id, to_type, to_id, relationship_type, strength, description}, …]; types are dump,
 *          block and context_item, strength is from 0 to 1.
 * Returns  how many connections were stored or updated.
 */
create or replace function public.fn_relationship_upsert_bulk(p_basket_id uuid, p_edges jsonb, p_dump_id uuid default null) returns integer
language sql volatile
set search_path = pg_catalog, public, pg_temp
as $$
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
comment on function public.fn_relationship_upsert_bulk(uuid, jsonb, uuid) is 'Stores how dumps, blocks and entities relate; returns how many.';
revoke all on function public.fn_relationship_upsert_bulk(uuid, jsonb, uuid) from public, anon, authenticated;
grant execute on function public.fn_relationship_upsert_bulk(uuid, jsonb, uuid) to service_role;
