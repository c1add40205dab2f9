-- Devices that process activities, for people to see. No claim ever reads it: age is the coordination signal, and a
-- node that forgets to say goodbye costs nothing.
create table public.crm_processing_nodes (
    id                  uuid        not null default gen_random_uuid(),
    sales_id            bigint      not null,
    app_name            text        not null default 'atomic-crm',
    device_name         text        not null,
    status              text        not null default 'ready',
    current_activity_id uuid,
    processed_count     integer     not null default 0,
    last_heartbeat      timestamptz not null default now(),
    created_at          timestamptz not null default now(),
    constraint crm_processing_nodes_pkey primary key (id),
    constraint crm_processing_nodes_sales_id_app_name_device_name_key unique (sales_id, app_name, device_name),
    constraint crm_processing_nodes_status_check check (status in ('ready', 'processing', 'offline')),
    constraint crm_processing_nodes_sales_id_fkey foreign key (sales_id) references public.sales (id) on delete cascade,
    constraint crm_processing_nodes_current_activity_id_fkey
        foreign key (current_activity_id) references public.activities (id) on delete set null
);
create index crm_processing_nodes_current_activity_id_idx on public.crm_processing_nodes (current_activity_id)
    where current_activity_id is not null;
comment on table public.crm_processing_nodes is 'Agents by owner and device, for display only; silent for two minutes means offline.';
