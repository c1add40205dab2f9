/*
 * When a dump is deleted, so are the entities that no other dump mentions; the others lose what the dump said of them.
 * Rights   the definer's: a caller who may delete a dump need not be able to write entities.
 * Races    waits for others who are adding a source, and then looks again: an entity that was just mentioned stays.
 */
create or replace function gleaner.forget_context_items() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_ids uuid[] := array(select distinct g.context_item_id from gone as g);
begin
    perform from public.context_items as c where c.id = any (v_ids) order by c.id for update;
    delete from public.context_items as c
    where c.id = any (v_ids)
      and not exists (select from public.context_item_sources as s where s.context_item_id = c.id);
    perform gleaner.refresh_context_items(v_ids);
    return null;
end
$$;
comment on function gleaner.forget_context_items() is 'Deletes entities that no dump mentions any more.';
revoke all on function gleaner.forget_context_items() from public, anon, authenticated, service_role;

create or replace trigger forget_context_items
after delete on public.context_item_sources
referencing old table as gone
for each statement execute function gleaner.forget_context_items();
