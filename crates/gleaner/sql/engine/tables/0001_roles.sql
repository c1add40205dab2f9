-- The roles of the wire contract and the role the acts run as.
-- A Supabase project has the first three already; there we only add our own. Roles belong to the whole
-- server, so another database of it may have made them a moment ago: existing is success.
do $roles$
declare
    v_role    record;
    v_missing text[] := '{}';
    v_advice  text := '';
begin
    for v_role in
        select *
        from (values
            ('anon',           'nologin noinherit',            'nologin noinherit'),
            ('authenticated',  'nologin noinherit',            'nologin noinherit'),
            ('service_role',   'nologin noinherit bypassrls',  'nologin noinherit'),
            -- Inherits on purpose: it is made a member of each attached table's owner, so that the table's own
            -- triggers, fired by an act, find the rights they were written for.
            ('gleaner_engine', 'nologin inherit bypassrls',    'nologin inherit')
        ) as wanted (name, attributes, modest)
    loop
        continue when exists (select from pg_catalog.pg_roles where rolname = v_role.name);
        begin
            begin
                execute format('create role %I %s', v_role.name, v_role.attributes);
            exception when insufficient_privilege then
                -- bypassrls takes more than createrole; policies stand in for it.
                execute format('create role %I %s', v_role.name, v_role.modest);
            end;
        exception
            when duplicate_object or unique_violation then
                null;
            when insufficient_privilege then
                v_missing := v_missing || v_role.name;
                v_advice := v_advice || format(' create role %I %s;', v_role.name, v_role.attributes)
                    || case v_role.name when 'gleaner_engine' then format(' grant gleaner_engine to %I;', current_user) else '' end;
        end;
    end loop;
    if v_missing <> '{}' then
        raise exception '% may not create roles, and these are missing: %', current_user, array_to_string(v_missing, ', ')
            using errcode = 'GL010', hint = 'Have an administrator run:' || v_advice;
    end if;
end
$roles$;

-- Whoever migrates must be able to hand functions over to the engine's role.
do $membership$
begin
    if not pg_has_role(current_user, 'gleaner_engine', 'usage')
       and not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
        execute format('grant gleaner_engine to %I', current_user);
    end if;
exception when insufficient_privilege then
    raise exception '% is not a member of gleaner_engine', current_user
        using errcode = 'GL010', hint = format('Have an administrator run: grant gleaner_engine to %I;', current_user);
end
$membership$;

grant usage, create on schema gleaner to gleaner_engine;
grant usage on schema gleaner to authenticated, service_role;
