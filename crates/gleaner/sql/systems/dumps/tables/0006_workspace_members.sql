-- Who belongs to a workspace: members see its baskets, dumps and what was made of them; owners also invite and remove.
create table public.workspace_members (
    workspace_id uuid        not null,
    user_id      uuid        not null,
    role         text        not null default 'member',
    created_at   timestamptz not null default now(),
    constraint workspace_members_pkey primary key (workspace_id, user_id),
    constraint workspace_members_workspace_id_fkey foreign key (workspace_id) references public.workspaces (id) on delete cascade,
    constraint workspace_members_role_check check (role in ('owner', 'member'))
);
-- Serves gleaner.my_workspaces, which every policy asks.
create index workspace_members_user_id_idx on public.workspace_members (user_id);
comment on table public.workspace_members is 'Who belongs to a workspace.';

create table public.workspace_invitations (
    id           uuid        not null default gen_random_uuid(),
    workspace_id uuid        not null,
    email        text        not null,
    role         text        not null default 'member',
    token_hash   bytea       not null,
    invited_by   uuid,
    created_at   timestamptz not null default now(),
    expires_at   timestamptz not null default now() + interval '7 days',
    accepted_at  timestamptz,
    accepted_by  uuid,
    constraint workspace_invitations_pkey primary key (id),
    constraint workspace_invitations_token_hash_key unique (token_hash),
    constraint workspace_invitations_workspace_id_fkey foreign key (workspace_id) references public.workspaces (id) on delete cascade,
    constraint workspace_invitations_role_check check (role in ('owner', 'member'))
);
create index workspace_invitations_workspace_id_idx on public.workspace_invitations (workspace_id);
comment on table public.workspace_invitations is 'Invitations to a workspace. The token itself is shown once and not stored.';
