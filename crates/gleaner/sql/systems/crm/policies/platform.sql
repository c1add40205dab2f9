-- What a platform's default grants leave on the two tables that may be a CRM's own, beside the rights their policies guard.
do $platform$
declare
    v_table    regclass;
    v_sequence text;
begin
    foreach v_table in array '{public.sales,public.contacts}'::regclass[] loop
        -- A role that can set the sequence can keep others from inserting. An identity column needs no right to it; the default of
        -- an older serial column does.
        v_sequence := pg_get_serial_sequence(v_table::text, 'id');
        if v_sequence is not null then
            execute format('revoke all on sequence %s from public, anon', v_sequence);
            if (select a.attidentity <> '' from pg_catalog.pg_attribute as a where a.attrelid = v_table and a.attname = 'id') then
                execute format('revoke all on sequence %s from authenticated', v_sequence);
            end if;
        end if;
        -- Maintenance locks the whole table. PostgreSQL has the right since version 17.
        if current_setting('server_version_num')::integer >= 170000 then
            execute format('revoke maintain on %s from authenticated', v_table);
        end if;
    end loop;
end
$platform$;
