/*
 * Notes which artefacts were deleted, so that a server deletes their files.
 * Rights   the definer's: a caller who may delete a run may not write the list.
 */
create or replace function gleaner.forget_artefacts() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into gleaner.forgotten_artefacts (artefact_id, run_id, sha256)
    select g.id, g.run_id, g.sha256 from gone as g
    on conflict on constraint forgotten_artefacts_pkey do nothing;
    return null;
end
$$;
comment on function gleaner.forget_artefacts() is 'Notes which artefacts were deleted, so that a server deletes their files.';
revoke all on function gleaner.forget_artefacts() from public, anon, authenticated, service_role;

create or replace trigger forget_artefacts
after delete on public.run_artefacts
referencing old table as gone
for each statement execute function gleaner.forget_artefacts();
