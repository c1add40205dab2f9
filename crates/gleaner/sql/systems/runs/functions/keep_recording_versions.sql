/*
 * Versions of recordings are checked, numbered, and then never changed.
 * Raises   GL002 for a recording that could not be replayed, and for every update.
 * Races    versions of one recording are numbered one at a time, under the recording's lock.
 * Rights   the definer's: a caller who may add a version may not lock the recording.
 */
create or replace function gleaner.keep_recording_versions() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_problem text;
    v_opened  text;
begin
    if tg_op = 'UPDATE' then
        raise exception 'version % of a recording cannot be changed', old.version
            using errcode = 'GL002', hint = 'Add another version: select public.save_recording(name, content)';
    end if;
    v_problem := gleaner.recording_problem(new.content);
    if v_problem is not null then
        raise exception '%', v_problem
            using errcode = 'GL002', hint = 'The steps and their fields are in docs/reference/systems/runs.md.';
    end if;
    perform from public.recordings as r where r.id = new.recording_id for no key update;
    select coalesce(max(v.version), 0) + 1 into new.version from public.recording_versions as v where v.recording_id = new.recording_id;
    new.created_by := auth.uid();
    new.format := case when exists (select from jsonb_array_elements(new.content -> 'steps') as s where s ? 'do') then 'steps' else 'recorder' end;
    select s.value ->> 'url' into v_opened
    from jsonb_array_elements(new.content -> 'steps') with ordinality as s (value, n)
    where coalesce(s.value ->> 'do', s.value ->> 'type') in ('open', 'navigate') order by s.n limit 1;
    new.site := gleaner.site_of(v_opened);
    return new;
end
$$;
comment on function gleaner.keep_recording_versions() is 'Checks and numbers versions of recordings, and refuses to change them.';
revoke all on function gleaner.keep_recording_versions() from public, anon, authenticated, service_role;

create or replace trigger keep_recording_versions
before insert or update on public.recording_versions
for each row execute function gleaner.keep_recording_versions();
