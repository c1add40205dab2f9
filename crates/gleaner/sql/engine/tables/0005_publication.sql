-- Tables whose changes are pushed to subscribers are members of this publication. The name is Supabase's, so that one
-- command publishes a table there and here: alter publication supabase_realtime add table orders;
do $publication$
begin
    if not exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime') then
        create publication supabase_realtime;
    end if;
exception
    when duplicate_object or unique_violation then
        null;
    when insufficient_privilege then
        raise notice 'the publication supabase_realtime could not be created, so no changes will be pushed: %', sqlerrm;
end
$publication$;
