/*
 * Makes the metadata of entities what all their sources say, the newest winning.
 * Races    rows are locked in one order, and in a mode that lets others add sources meanwhile.
 */
create or replace function gleaner.refresh_context_items(p_ids uuid[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from public.context_items as c where c.id = any (p_ids) order by c.id for no key update;
    update public.context_items as c
    set metadata = said.metadata, updated_at = now()
    from (
        select i.id, coalesce((
            select jsonb_object_agg(fact.key, fact.value order by s.created_at, s.dump_id nulls first)
            from public.context_item_sources as s
            cross join lateral jsonb_each(s.metadata) as fact
            where s.context_item_id = i.id), '{}') as metadata
        from unnest(p_ids) as i (id)
    ) as said
    where c.id = said.id
      and c.metadata is distinct from said.metadata;
end
$$;
comment on function gleaner.refresh_context_items(uuid[]) is 'Makes the metadata of entities what their sources say.';
revoke all on function gleaner.refresh_context_items(uuid[]) from public, anon, authenticated;
grant execute on function gleaner.refresh_context_items(uuid[]) to service_role;
