-- What agents make of a dump: blocks of insight, the entities in it, and how they relate.
create table public.blocks (
    id               uuid        not null default gen_random_uuid(),
    basket_id        uuid        not null,
    title            text        not null,
    content          text        not null default '',
    semantic_type    text        not null,
    confidence_score numeric,
    created_at       timestamptz not null default now(),
    constraint blocks_pkey primary key (id),
    constraint blocks_basket_id_fkey foreign key (basket_id) references public.baskets (id),
    constraint blocks_confidence_score_check check (confidence_score between 0 and 1)
);
-- A dump that is processed again after a crash finds its blocks instead of doubling them. By digest: text can be longer
-- than an index entry.
create unique index blocks_same_insight_key on public.blocks (basket_id, semantic_type, md5(title), md5(content));
comment on table public.blocks is 'Structured insights extracted from dumps.';

create table public.context_items (
    id         uuid        not null default gen_random_uuid(),
    basket_id  uuid        not null,
    kind       text        not null,
    label      text        not null,
    metadata   jsonb       not null default '{}',
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint context_items_pkey primary key (id),
    constraint context_items_basket_id_kind_label_key unique (basket_id, kind, label),
    constraint context_items_basket_id_fkey foreign key (basket_id) references public.baskets (id)
);
comment on table public.context_items is 'Entities and concepts of a basket, once each.';

create table public.substrate_relationships (
    id                uuid        not null default gen_random_uuid(),
    basket_id         uuid        not null,
    from_type         text        not null,
    from_id           uuid        not null,
    to_type           text        not null,
    to_id             uuid        not null,
    relationship_type text        not null,
    strength          numeric,
    created_at        timestamptz not null default now(),
    constraint substrate_relationships_pkey primary key (id),
    constraint substrate_relationships_once_key unique (basket_id, from_id, to_id, relationship_type),
    constraint substrate_relationships_basket_id_fkey foreign key (basket_id) references public.baskets (id),
    constraint substrate_relationships_from_type_check check (from_type in ('dump', 'block', 'context_item')),
    constraint substrate_relationships_to_type_check check (to_type in ('dump', 'block', 'context_item'))
);
create index substrate_relationships_to_id_idx on public.substrate_relationships (to_id);
comment on table public.substrate_relationships is 'How dumps, blocks and context items of a basket relate.';
