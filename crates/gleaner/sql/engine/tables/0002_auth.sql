-- What policies and plain writers need of Supabase's auth schema: who is calling.
-- On a Supabase project all of it exists and stays as it is.
do $auth$
begin
    if to_regnamespace('auth') is null then
        create schema auth;
        grant usage on schema auth to anon, authenticated, service_role, gleaner_engine;
    end if;
    if to_regprocedure('auth.jwt()') is null then
        create function auth.jwt() returns jsonb language sql stable as
            $$ select nullif(current_setting('request.jwt.claims', true), '')::jsonb $$;
        comment on function auth.jwt() is 'Claims of the caller''s token; null without one.';
    end if;
    if to_regprocedure('auth.uid()') is null then
        create function auth.uid() returns uuid language sql stable as
            $$ select (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid $$;
        comment on function auth.uid() is 'The signed-in user; null for project keys and direct logins.';
    end if;
    if to_regprocedure('auth.role()') is null then
        create function auth.role() returns text language sql stable as
            $$ select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role' $$;
        comment on function auth.role() is 'The role named in the caller''s token.';
    end if;
end
$auth$;
