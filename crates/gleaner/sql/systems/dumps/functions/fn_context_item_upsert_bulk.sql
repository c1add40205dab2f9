/*
 * Stores the entities of a basket, once each: an entity already known gains the new metadata, key by key.
 * Input    p_items is [{kind, label, metadata}, …]; what is named twice in it counts once, the last metadata winning.
 * Returns  how many entities were stored or updated.
 * Races    rows are written in one order, so that two dumps of one basket do not deadlock.
 */
create or replace function public.fn_context_item_upsert_bulk(p_basket_id uuid, p_items jsonb) returns integer
language sql volatile
set search_path = pg_catalog, public, pg_temp
as $$
    with item as (
        select distinct on (item ->> 'kind', item ->> 'label')
               item ->> 'kind' as kind,
               item ->> 'label' as label,
               coalesce(nullif(item -> 'metadata', 'null'), '{}') as metadata
        from jsonb_array_elements(p_items) with ordinality as given (item, n)
        order by item ->> 'kind', item ->> 'label', n desc
    ), stored as (
        insert into public.context_items as c (basket_id, kind, label, metadata)
        select p_basket_id, item.kind, item.label, item.metadata
        from item
        order by item.kind, item.label
        on conflict on constraint context_items_basket_id_kind_label_key
        do update set metadata = c.metadata || excluded.metadata, updated_at = now()
        returning 1
    )
    select count(*)::integer from stored
$$;
comment on function public.fn_context_item_upsert_bulk(uuid, jsonb) is 'Stores the entities of a basket, once each; returns how many.';
revoke all on function public.fn_context_item_upsert_bulk(uuid, jsonb) from public, anon, authenticated;
grant execute on function public.fn_context_item_upsert_bulk(uuid, jsonb) to service_role;
