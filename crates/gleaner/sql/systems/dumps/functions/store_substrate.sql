/*
 * Stores what a checkpoint of the queue found, in the transaction of that checkpoint: the keys blocks, context_items and
 * relationships of the result become rows, each with the dump it came from. A worker that has lost its lease changes no row of
 * the queue, and so stores nothing here.
 *
 * A list that did not change is not written again; one that changed replaces what the dump had before. Entries without a title,
 * label or end are left out. `from` and `to` of a relationship name a block by its title or an entity by its label.
 *
 * Also writes into the row: the counts, the sentence for people, and progress 100 when it is completed.
 */
create or replace function gleaner.store_substrate() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
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
comment on function gleaner.store_substrate() is 'Stores what a checkpoint of the queue dumps found, in its transaction.';
revoke all on function gleaner.store_substrate() from public, anon, authenticated, service_role;

-- Behind the engine's own trigger, by its name: a plain write that the engine refuses stores nothing.
create or replace trigger zzz_store_substrate
before update on public.agent_processing_queue
for each row
when (new.result is distinct from old.result or new.processing_state = 'completed' and old.processing_state <> 'completed')
execute function gleaner.store_substrate();
