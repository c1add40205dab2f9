-- People who sign in, where this server's own /auth/v1 lets them in. A Supabase project has all of this already and keeps
-- it: there nothing is created, and the platform's own service answers. Names are Supabase's where the two overlap, so that
-- users can be copied over; the schema is not exposed, and nobody but the tables' owner reads them.
do $users$
begin
    if to_regclass('auth.users') is null then
        create table auth.users (
            id                 uuid        not null default gen_random_uuid(),
            aud                text        not null default 'authenticated',
            role               text        not null default 'authenticated',
            email              text,
            encrypted_password text,
            email_confirmed_at timestamptz,
            invited_at         timestamptz,
            last_sign_in_at    timestamptz,
            raw_app_meta_data  jsonb       not null default '{"provider": "email", "providers": ["email"]}',
            raw_user_meta_data jsonb       not null default '{}',
            phone              text,
            banned_until       timestamptz,
            created_at         timestamptz not null default clock_timestamp(),
            updated_at         timestamptz not null default clock_timestamp(),
            is_anonymous       boolean     not null default false,
            constraint users_pkey primary key (id),
            constraint users_email_key unique (email),
            -- Addresses are compared as they are stored; a capital letter would be a user nobody can sign in as.
            constraint users_email_lower_case check (email = lower(email)),
            constraint users_meta_data_objects check (jsonb_typeof(raw_app_meta_data) = 'object' and jsonb_typeof(raw_user_meta_data) = 'object')
        );
        comment on table auth.users is 'People who can sign in.';
        comment on column auth.users.encrypted_password is 'argon2id in PHC form; bcrypt of imported users until they next sign in; null: no password yet.';
        comment on column auth.users.banned_until is 'Until then the user neither signs in nor refreshes.';

        create table auth.identities (
            id              uuid        not null default gen_random_uuid(),
            provider_id     text        not null,
            user_id         uuid        not null,
            identity_data   jsonb       not null,
            provider        text        not null,
            last_sign_in_at timestamptz,
            created_at      timestamptz not null default clock_timestamp(),
            updated_at      timestamptz not null default clock_timestamp(),
            email           text generated always as (lower(identity_data ->> 'email')) stored,
            constraint identities_pkey primary key (id),
            constraint identities_provider_id_provider_key unique (provider_id, provider),
            constraint identities_user_id_fkey foreign key (user_id) references auth.users (id) on delete cascade
        );
        create index identities_user_id_idx on auth.identities (user_id);
        comment on table auth.identities is 'How a user proves who it is; here always by e-mail address and password.';

        -- One sign-in on one device. Ending it ends its refresh tokens; access tokens live on until they expire.
        create table auth.sessions (
            id           uuid        not null default gen_random_uuid(),
            user_id      uuid        not null,
            created_at   timestamptz not null default clock_timestamp(),
            updated_at   timestamptz not null default clock_timestamp(),
            refreshed_at timestamptz,
            not_after    timestamptz,
            aal          text        not null default 'aal1',
            method       text        not null default 'password',
            user_agent   text,
            ip           inet,
            constraint sessions_pkey primary key (id),
            constraint sessions_user_id_fkey foreign key (user_id) references auth.users (id) on delete cascade
        );
        create index sessions_user_id_idx on auth.sessions (user_id);
        comment on table auth.sessions is 'One row per sign-in; its id is the claim session_id.';
        comment on column auth.sessions.method is 'What was proven: password, or otp for a link.';

        create table auth.refresh_tokens (
            id         bigint generated always as identity,
            token      text        not null,
            user_id    uuid        not null,
            session_id uuid        not null,
            parent     text,
            revoked    boolean     not null default false,
            reused_at  timestamptz,
            created_at timestamptz not null default clock_timestamp(),
            updated_at timestamptz not null default clock_timestamp(),
            constraint refresh_tokens_pkey primary key (id),
            constraint refresh_tokens_token_key unique (token),
            constraint refresh_tokens_session_id_fkey foreign key (session_id) references auth.sessions (id) on delete cascade
        );
        create index refresh_tokens_session_id_idx on auth.refresh_tokens (session_id);
        comment on table auth.refresh_tokens is 'Every refresh token of a session, the latest unrevoked.';
        comment on column auth.refresh_tokens.token is
            'Only the public half. What the client holds adds a signature made with the project secret: this table refreshes nothing.';
        comment on column auth.refresh_tokens.reused_at is 'When it was taken once more as the parent of the active one.';

        create table auth.one_time_tokens (
            id         uuid        not null default gen_random_uuid(),
            user_id    uuid        not null,
            token_type text        not null,
            token_hash text        not null,
            relates_to text        not null,
            created_at timestamptz not null default clock_timestamp(),
            expires_at timestamptz not null,
            constraint one_time_tokens_pkey primary key (id),
            constraint one_time_tokens_token_hash_key unique (token_hash),
            constraint one_time_tokens_type_check check (token_type in ('invite', 'recovery', 'signup')),
            constraint one_time_tokens_user_id_fkey foreign key (user_id) references auth.users (id) on delete cascade
        );
        create index one_time_tokens_user_id_idx on auth.one_time_tokens (user_id);
        comment on table auth.one_time_tokens is 'Links that were given out and not yet used.';
        comment on column auth.one_time_tokens.relates_to is 'The address the link was meant for; a changed address voids it.';

        revoke all on auth.users, auth.identities, auth.sessions, auth.refresh_tokens, auth.one_time_tokens
            from public, anon, authenticated, service_role;
    end if;
end
$users$;
