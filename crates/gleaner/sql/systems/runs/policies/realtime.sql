-- Where Supabase's realtime publication exists, changes of these tables are pushed to subscribers, each row to those who may read
-- it; by our own server as by Supabase's. Without the right to publish, agents find their work by polling.
do $realtime$
declare
    v_table text;
begin
    foreach v_table in array array['execution_jobs', 'run_rows'] loop
        if exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime' and not puballtables)
           and not exists (
               select from pg_catalog.pg_publication_tables
               where pubname = 'supabase_realtime' and schemaname = 'public' and tablename = v_table)
        then
            execute format('alter publication supabase_realtime add table public.%I', v_table);
        end if;
    end loop;
exception when insufficient_privilege then
    raise notice 'public.% could not be added to the publication supabase_realtime: %', v_table, sqlerrm;
end
$realtime$;
