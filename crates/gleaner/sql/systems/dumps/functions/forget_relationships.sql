-- Deletes connections from and to deleted blocks, entities and dumps: their ends can be of three tables, so no foreign key does.
create or replace function gleaner.forget_relationships() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from public.substrate_relationships as r where r.from_id in (select g.id from gone as g);
    delete from public.substrate_relationships as r where r.to_id in (select g.id from gone as g);
    return null;
end
$$;
comment on function gleaner.forget_relationships() is 'Deletes connections from and to what was deleted.';
revoke all on function gleaner.forget_relationships() from public, anon, authenticated, service_role;

create or replace trigger forget_relationships
after delete on public.blocks
referencing old table as gone
for each statement execute function gleaner.forget_relationships();
create or replace trigger forget_relationships
after delete on public.context_items
referencing old table as gone
for each statement execute function gleaner.forget_relationships();
create or replace trigger forget_relationships
after delete on public.raw_dumps
referencing old table as gone
for each statement execute function gleaner.forget_relationships();
