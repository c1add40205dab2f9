/*
 * A run that names a recording of ours is for agents with a browser: it gets the version to replay, its kind and its site. Other
 * rows are left alone, for runners of your own.
 * Raises   GL002 for a version of another recording, a label that is none, or more than 10 MB of data.
 */
create or replace function gleaner.prepare_run() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_version record;
    v_label   text := new.config ->> 'label';
begin
    new.submitted_by := auth.uid();
    new.begun_lease := null;
    if new.recording_version_id is null and new.recording_id is null then
        return new;
    end if;
    select v.id, v.recording_id, v.site into v_version
    from public.recording_versions as v
    where case when new.recording_version_id is not null then v.id = new.recording_version_id
          else v.recording_id = case when new.recording_id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then new.recording_id::uuid end end
    order by v.version desc limit 1;
    if not found then
        return new;
    elsif new.recording_id is not null and new.recording_id is distinct from v_version.recording_id::text then
        raise exception 'version % is not of recording %', new.recording_version_id, new.recording_id using errcode = 'GL002', hint = 'Leave one of them out.';
    elsif v_label !~ '^[a-z0-9][a-z0-9_.-]{0,39}$' then
        raise exception 'the label % is none', quote_literal(v_label) using errcode = 'GL002', hint = 'A label has up to 40 lower-case letters, digits, dots, dashes.';
    elsif octet_length(new.csv_data) > 10000000 then
        raise exception 'the data of a run has at most 10 MB' using errcode = 'GL002', hint = 'Queue it as several runs.';
    end if;
    new.recording_id := v_version.recording_id;
    new.recording_version_id := v_version.id;
    new.site := v_version.site;
    new.kind := 'browser' || coalesce(':' || v_label, '');
    return new;
end
$$;
comment on function gleaner.prepare_run() is 'Gives a run of a recording its version, kind and site.';
revoke all on function gleaner.prepare_run() from public, anon, authenticated, service_role;

-- Before the engine's own trigger, by its name: the engine reads the kind.
create or replace trigger prepare_run
before insert on public.execution_jobs
for each row execute function gleaner.prepare_run();
