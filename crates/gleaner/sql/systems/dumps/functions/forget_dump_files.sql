/*
 * Notes which deleted dumps had a file.
 * Rights   the definer's: a caller who may delete a dump may not write the list.
 */
create or replace function gleaner.forget_dump_files() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into gleaner.forgotten_dump_files (dump_id, sha256)
    select g.id, g.file_sha256
    from gone as g
    where g.file_sha256 is not null
    on conflict on constraint forgotten_dump_files_pkey do nothing;
    return null;
end
$$;
comment on function gleaner.forget_dump_files() is 'Notes which deleted dumps had a file, so that a server deletes it.';
revoke all on function gleaner.forget_dump_files() from public, anon, authenticated, service_role;

create or replace trigger forget_dump_files
after delete on public.raw_dumps
referencing old table as gone
for each statement execute function gleaner.forget_dump_files();
