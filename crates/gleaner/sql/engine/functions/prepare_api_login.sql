/*
 * Makes the login with which a server runs the statements of API requests. It may take on the roles of callers, and has no rights
 * of its own beyond starting a request: what goes wrong before the role is taken on runs with no rights.
 *
 * p_name      the login. Roles belong to the whole database server, so each database has its own.
 * p_verifier  its password, hashed.
 * Changes     roles and grants. gleaner_api holds the grants, so that no dump names a login.
 * Raises      42501 where the caller may not create roles.
 */
create or replace function gleaner.prepare_api_login(p_name text, p_verifier text) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_role text;
begin
    perform pg_advisory_xact_lock(hashtextextended('gleaner api login', 0));
    -- Another database of the same server may make the role at this moment: existing is success.
    begin
        if not exists (select from pg_roles as r where r.rolname = 'gleaner_api') then
            create role gleaner_api nologin noinherit;
        end if;
    exception when duplicate_object or unique_violation then
        null;
    end;
    foreach v_role in array array['anon', 'authenticated', 'service_role'] loop
        begin
            if not pg_has_role('gleaner_api', v_role, 'member') then
                execute format('grant %I to gleaner_api', v_role);
            end if;
        exception when unique_violation then
            null;
        end;
    end loop;
    if not exists (select from pg_roles as r where r.rolname = p_name) then
        execute format('create role %I login inherit', p_name);
    end if;
    execute format('alter role %I password %L', p_name, p_verifier);
    if not pg_has_role(p_name, 'gleaner_api', 'usage') then
        execute format('grant gleaner_api to %I', p_name);
    end if;
    grant usage on schema gleaner to gleaner_api;
    grant execute on function gleaner.refuse_banned(uuid) to gleaner_api;
    grant execute on function gleaner.run_request(uuid, text[], text, text[], integer) to gleaner_api;
end
$$;
comment on function gleaner.prepare_api_login(text, text) is 'Makes the login with which a server runs the statements of API requests.';
revoke all on function gleaner.prepare_api_login(text, text) from public, anon, authenticated, service_role;
