/*
 * Queues a dump for processing in the transaction that captures it: no dump without its row, no row without its dump.
 * Security definer: a caller who may capture need not be able to write the queue.
 */
create or replace function public.queue_agent_processing() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    insert into public.agent_processing_queue (dump_id, basket_id, workspace_id)
    select new.id, new.basket_id, b.workspace_id
    from public.baskets as b
    where b.id = new.basket_id;
    return new;
end
$$;
comment on function public.queue_agent_processing() is 'Queues a new dump for processing.';
revoke all on function public.queue_agent_processing() from public, anon, authenticated;

create or replace trigger after_dump_insert
after insert on public.raw_dumps
for each row execute function public.queue_agent_processing();
