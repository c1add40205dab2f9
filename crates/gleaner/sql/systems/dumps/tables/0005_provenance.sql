-- Which dump each insight, entity and connection came from, so that deleting a dump deletes what was made of it.

alter table public.agent_processing_queue drop constraint agent_processing_queue_dump_id_fkey;
alter table public.agent_processing_queue add constraint agent_processing_queue_dump_id_fkey
    foreign key (dump_id) references public.raw_dumps (id) on delete cascade;

-- Two dumps that say the same have a block each: deleting one must not take the other's.
alter table public.blocks
    add column dump_id uuid,
    add constraint blocks_dump_id_fkey foreign key (dump_id) references public.raw_dumps (id) on delete cascade;
drop index public.blocks_same_insight_key;
create unique index blocks_same_insight_key on public.blocks (basket_id, dump_id, semantic_type, md5(title), md5(content)) nulls not distinct;
create index blocks_dump_id_idx on public.blocks (dump_id);
comment on column public.blocks.dump_id is 'The dump it was extracted from. Null if the worker that stored it did not say.';

-- "Ada  Lovelace" and "ada lovelace" are one entity.
create unique index context_items_same_entity_key on public.context_items
    (basket_id, kind, md5(lower(btrim(regexp_replace(label, '\s+', ' ', 'g')))));

-- An entity belongs to its basket and can come from many dumps. What each of them said of it is kept here, so that nothing of
-- a deleted dump stays behind in an entity that others share.
create table public.context_item_sources (
    context_item_id uuid        not null,
    dump_id         uuid,
    metadata        jsonb       not null default '{}',
    created_at      timestamptz not null default now(),
    constraint context_item_sources_once_key unique nulls not distinct (context_item_id, dump_id),
    constraint context_item_sources_context_item_id_fkey foreign key (context_item_id) references public.context_items (id) on delete cascade,
    constraint context_item_sources_dump_id_fkey foreign key (dump_id) references public.raw_dumps (id) on delete cascade
);
create index context_item_sources_dump_id_idx on public.context_item_sources (dump_id);
comment on table public.context_item_sources is 'Which dumps mention an entity, and what each says of it.';
comment on column public.context_item_sources.dump_id is 'Null if the worker that stored the entity did not say where it came from.';

alter table public.substrate_relationships
    add column dump_id     uuid,
    add column description text,
    add constraint substrate_relationships_dump_id_fkey foreign key (dump_id) references public.raw_dumps (id) on delete cascade,
    add constraint substrate_relationships_strength_check check (strength between 0 and 1),
    drop constraint substrate_relationships_once_key;
alter table public.substrate_relationships add constraint substrate_relationships_once_key
    unique nulls not distinct (basket_id, dump_id, from_id, to_id, relationship_type);
create index substrate_relationships_from_id_idx on public.substrate_relationships (from_id);
create index substrate_relationships_dump_id_idx on public.substrate_relationships (dump_id);
comment on column public.substrate_relationships.dump_id is 'The dump it was found in. Null if the worker that stored it did not say.';
