/*
 * Notes which deleted activities had files: attachments, and recordings or pictures a server may have fetched and kept.
 * Rights   the definer's: a caller who may delete an activity may not write the list.
 * Cost     one statement for each statement that deletes, however many rows it deletes.
 */
create or replace function gleaner.forget_files()
returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into gleaner.forgotten_files (activity_id)
    select g.id
    from gone as g
    where g.raw_data ->> 'source_type' = 'url'
       or coalesce(g.metadata -> 'attachments', '[]') <> '[]'
       or coalesce(g.metadata -> 'media_urls', '[]') <> '[]'
       or coalesce(g.metadata -> 'media', '[]') <> '[]'
    on conflict (activity_id) do nothing;
    return null;
end
$$;
comment on function gleaner.forget_files() is 'Notes which deleted activities had files, so that a server deletes those too.';
revoke all on function gleaner.forget_files() from public, anon, authenticated, service_role;

create or replace trigger forget_files
after delete on public.activities
referencing old table as gone
for each statement execute function gleaner.forget_files();
