/*
 * Makes the connections found in a dump those of the list [{from_type, from, to_type, to, relationship_type, strength,
 * description}, …]. An end names a block of the dump by its title or an entity that the dump mentions by its label. A connection
 * with an end that is neither is left out.
 */
create or replace function gleaner.store_relationships(p_basket_id uuid, p_dump_id uuid, p_edges jsonb) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
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
comment on function gleaner.store_relationships(uuid, uuid, jsonb) is 'Makes the connections found in a dump those of the list.';
revoke all on function gleaner.store_relationships(uuid, uuid, jsonb) from public, anon, authenticated, service_role;
