-- Makes the blocks of a dump those of the list [{title, content, semantic_type, confidence}, …]. Blocks that stay keep their id.
create or replace function gleaner.store_blocks(p_basket_id uuid, p_dump_id uuid, p_blocks jsonb) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
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
comment on function gleaner.store_blocks(uuid, uuid, jsonb) is 'Makes the blocks of a dump those of the list.';
revoke all on function gleaner.store_blocks(uuid, uuid, jsonb) from public, anon, authenticated, service_role;
