/*
 * Adds a recording, or another version of the one with that name. The same content again is no new version.
 * Raises   GL002 for content that could not be replayed; 42501 for callers outside the team.
 * Returns  {recording_id, version_id, version, known}.
 */
create or replace function public.save_recording(p_name text, p_content jsonb) returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_recording uuid;
    v_version   record;
    v_known     boolean := true;
begin
    insert into public.recordings (name) values (btrim(p_name)) on conflict (lower(name)) do nothing;
    select r.id into strict v_recording from public.recordings as r where lower(r.name) = lower(btrim(p_name));
    select v.id, v.version, v.content into v_version
    from public.recording_versions as v where v.recording_id = v_recording order by v.version desc limit 1;
    if not found or v_version.content <> p_content then
        v_known := false;
        insert into public.recording_versions as v (recording_id, content) values (v_recording, p_content)
        returning v.id, v.version, v.content into v_version;
    end if;
    return jsonb_build_object('recording_id', v_recording, 'version_id', v_version.id, 'version', v_version.version, 'known', v_known);
end
$$;
comment on function public.save_recording(text, jsonb) is 'Adds a recording, or another version of the one with that name.';
revoke all on function public.save_recording(text, jsonb) from public, anon, authenticated;
grant execute on function public.save_recording(text, jsonb) to authenticated, service_role;
