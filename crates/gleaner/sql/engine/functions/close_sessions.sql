/*
 * Signs out: p_scope 'local' ends the session p_session, 'others' every other of the user, 'global' all.
 * Returns  false when p_session was over already; then nothing changes.
 */
create or replace function gleaner.close_sessions(p_user uuid, p_session uuid, p_scope text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (select from auth.sessions as s where s.id = p_session and s.user_id = p_user) then
        return false;
    end if;
    delete from auth.sessions as s
    where s.user_id = p_user
      and case p_scope when 'local' then s.id = p_session when 'others' then s.id <> p_session else true end;
    return true;
end
$$;
comment on function gleaner.close_sessions(uuid, uuid, text) is 'Signs out here, elsewhere or everywhere; false when the session was over.';
revoke all on function gleaner.close_sessions(uuid, uuid, text) from public, anon, authenticated;
