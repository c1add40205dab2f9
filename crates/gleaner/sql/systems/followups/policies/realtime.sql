-- Where Supabase's realtime publication exists, changes of follow-ups and their schedules are pushed to subscribers, each row to those
-- who may read it; by our own server as by Supabase's. Without the right to publish, agents find their work by polling.
do $realtime$
declare
    v_table text;
begin
    if exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime' and not puballtables) then
        for v_table in
            select t.name from (values ('scheduled_actions'), ('followup_schedules')) as t (name)
            where not exists (
                select from pg_catalog.pg_publication_tables
                where pubname = 'supabase_realtime' and schemaname = 'public' and tablename = t.name)
        loop
            execute format('alter publication supabase_realtime add table public.%I', v_table);
        end loop;
    end if;
exception when insufficient_privilege then
    raise notice 'public.% could not be added to the publication supabase_realtime: %', v_table, sqlerrm;
end
$realtime$;
