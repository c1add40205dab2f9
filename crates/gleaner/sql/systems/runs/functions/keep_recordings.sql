-- Who added a recording is what the database says, not what the row says.
create or replace function gleaner.keep_recordings() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    new.created_by := auth.uid();
    return new;
end
$$;
comment on function gleaner.keep_recordings() is 'Notes who added a recording.';
revoke all on function gleaner.keep_recordings() from public, anon, authenticated, service_role;

create or replace trigger keep_recordings
before insert on public.recordings
for each row execute function gleaner.keep_recordings();
