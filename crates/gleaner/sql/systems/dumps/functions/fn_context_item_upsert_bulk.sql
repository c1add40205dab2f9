/*
 * Stores the entities of a basket, once each: an entity already known gains the new metadata, key by key. Labels that differ
 * only in case and spaces are one entity; the first spelling stays.
 * Input    p_items is [{kind, label, metadata}, …]; what is named twice in it counts once, the last metadata winning.
 *          p_dump_id is the dump that mentions them: when no dump mentions an entity any more, it is deleted.
 * Returns  how many entities were stored or updated.
 * Races    rows are written in one order, so that two dumps of one basket do not deadlock.
 */
drop function if exists public.fn_context_item_upsert_bulk(uuid, jsonb);
create or replace function public.fn_context_item_upsert_bulk(p_basket_id uuid, p_items jsonb, p_dump_id uuid default null) returns integer
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_ids uuid[];
begin
    with item as (
        select distinct on (given.item ->> 'kind', gleaner.same_label(given.item ->> 'label'))
               given.item ->> 'kind' as kind, given.item ->> 'label' as label, gleaner.same_label(given.item ->> 'label') as same
        from jsonb_array_elements(p_items) with ordinality as given (item, n)
        order by given.item ->> 'kind', gleaner.same_label(given.item ->> 'label'), given.n
    )
    insert into public.context_items (basket_id, kind, label)
    select p_basket_id, item.kind, item.label
    from item
    order by item.kind, item.same
    on conflict do nothing;

    -- An entity that was written without a source keeps what it had.
    insert into public.context_item_sources (context_item_id, dump_id, metadata)
    select c.id, null, c.metadata
    from public.context_items as c
    where c.id = any (array(select known.id from gleaner.match_context_items(p_basket_id, p_items) as known))
      and c.metadata <> '{}'
      and not exists (select from public.context_item_sources as s where s.context_item_id = c.id)
    on conflict on constraint context_item_sources_once_key do nothing;

    with stored as (
        insert into public.context_item_sources as s (context_item_id, dump_id, metadata)
        select known.id, p_dump_id, known.metadata
        from gleaner.match_context_items(p_basket_id, p_items) as known
        order by known.id
        on conflict on constraint context_item_sources_once_key
        do update set metadata = s.metadata || excluded.metadata
        returning s.context_item_id
    )
    select array_agg(stored.context_item_id) into v_ids from stored;
    perform gleaner.refresh_context_items(v_ids);
    return coalesce(cardinality(v_ids), 0);
end
$$;
comment on function public.fn_context_item_upsert_bulk(uuid, jsonb, uuid) is 'Stores the entities of a basket, once each; returns how many.';
revoke all on function public.fn_context_item_upsert_bulk(uuid, jsonb, uuid) from public, anon, authenticated;
grant execute on function public.fn_context_item_upsert_bulk(uuid, jsonb, uuid) to service_role;
