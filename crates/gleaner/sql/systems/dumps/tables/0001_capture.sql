-- What people drop in: a workspace has baskets, a basket has dumps.
create table public.workspaces (
    id         uuid        not null default gen_random_uuid(),
    name       text        not null,
    created_at timestamptz not null default now(),
    constraint workspaces_pkey primary key (id)
);
comment on table public.workspaces is 'Teams whose dumps are kept apart.';

create table public.baskets (
    id           uuid        not null default gen_random_uuid(),
    workspace_id uuid        not null,
    name         text        not null default '',
    created_at   timestamptz not null default now(),
    constraint baskets_pkey primary key (id),
    constraint baskets_workspace_id_fkey foreign key (workspace_id) references public.workspaces (id)
);
create index baskets_workspace_id_idx on public.baskets (workspace_id);
comment on table public.baskets is 'Collections within a workspace.';

create table public.raw_dumps (
    id         uuid        not null default gen_random_uuid(),
    basket_id  uuid        not null,
    body_md    text        not null default '',
    created_at timestamptz not null default now(),
    constraint raw_dumps_pkey primary key (id),
    constraint raw_dumps_basket_id_fkey foreign key (basket_id) references public.baskets (id)
);
create index raw_dumps_basket_id_idx on public.raw_dumps (basket_id);
comment on table public.raw_dumps is 'Captured text, kept as it came; each one is queued for processing as it arrives.';
