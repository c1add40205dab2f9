-- Where Supabase's realtime publication exists, changes of public.scheduled_actions are pushed to subscribers, each row to those
-- who may read it; by our own server as by Supabase's. Without the right to publish, agents find their work by polling.
do $realtime$
begin
    if exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime' and not puballtables)
       and not exists (
           select from pg_catalog.pg_publication_tables
           where pubname = 'supabase_realtime' and schemaname = 'public' and tablename = 'scheduled_actions')
    then
        alter publication supabase_realtime add table public.scheduled_actions;
    end if;
exception when insufficient_privilege then
    raise notice 'public.scheduled_actions could not be added to the publication supabase_realtime: %', sqlerrm;
end
$realtime$;
