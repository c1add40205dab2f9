/*
 * Puts the triggers on a published table that note its changes, or takes them off. A table per call, and so per transaction: it
 * waits for one lock at a time, and delays other sessions by a second at most.
 * Once this has committed every change is seen: making a trigger waits for all who write to the table.
 */
create or replace function gleaner.capture_changes(p_table regclass, p_on boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
as $$
declare
    v_wanted text;
    v_old    text;
    v_new    text;
    v_make   record;
begin
    for v_make in
        select t.tgname from pg_trigger as t
        where t.tgrelid = p_table and t.tgfoid = 'gleaner.note_change()'::regprocedure and t.tgparentid = 0
    loop
        execute format('drop trigger %I on %s', v_make.tgname, p_table);
    end loop;
    select l.wanted into v_wanted from gleaner.list_captures() as l where l.relation = p_table;
    if not p_on or v_wanted is null then
        return;
    end if;
    select string_agg(format('old.%I', a.attname), ', ' order by a.attnum), string_agg(format('new.%I', a.attname), ', ' order by a.attnum)
    into v_old, v_new
    from pg_attribute as a
    where a.attrelid = p_table and a.attnum = any (string_to_array(substr(v_wanted, strpos(v_wanted, ' ') + 1), ' ')::int2[]);
    for v_make in
        select *
        from (values
            ('I', '00_gleaner_insert', 'insert', ''),
            ('U', '00_gleaner_update', 'update', format('when (row(%s) is not distinct from row(%s))', v_old, v_new)),
            -- The only updates of which more than the new row must be reported.
            ('U', '00_gleaner_rekey',  'update', format('when (row(%s) is distinct from row(%s))', v_old, v_new)),
            ('D', '00_gleaner_delete', 'delete', '')
        ) as made (kind, name, event, condition)
        where strpos(split_part(v_wanted, ' ', 1), made.kind) > 0
    loop
        execute format('create trigger %I after %s on %s for each row %s execute function gleaner.note_change(%L)',
            v_make.name, v_make.event, p_table, v_make.condition, v_wanted);
        -- Also for sessions that have turned ordinary triggers off: the log would show their changes too.
        execute format('alter table %s enable always trigger %I', p_table, v_make.name);
    end loop;
end
$$;
comment on function gleaner.capture_changes(regclass, boolean) is 'Puts the triggers on a published table that note its changes, or takes them off.';
revoke all on function gleaner.capture_changes(regclass, boolean) from public, anon, authenticated, service_role;
