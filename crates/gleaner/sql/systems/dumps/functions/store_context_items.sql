-- Makes the entities that a dump mentions those of the list [{kind, label, metadata}, …].
create or replace function gleaner.store_context_items(p_basket_id uuid, p_dump_id uuid, p_items jsonb) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_items jsonb;
begin
    select coalesce(jsonb_agg(given.item || jsonb_build_object('label', left(given.item ->> 'label', 300))), '[]') into v_items
    from jsonb_array_elements(p_items) as given (item)
    where btrim(given.item ->> 'kind') <> '' and btrim(given.item ->> 'label') <> '';
    perform public.fn_context_item_upsert_bulk(p_basket_id, v_items, p_dump_id);
    -- The trigger forget_context_items deletes those that no dump mentions any more.
    delete from public.context_item_sources as s
    where s.dump_id = p_dump_id
      and s.context_item_id <> all (array(select known.id from gleaner.match_context_items(p_basket_id, v_items) as known));
end
$$;
comment on function gleaner.store_context_items(uuid, uuid, jsonb) is 'Makes the entities that a dump mentions those of the list.';
revoke all on function gleaner.store_context_items(uuid, uuid, jsonb) from public, anon, authenticated, service_role;
