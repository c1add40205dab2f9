/*
 * Items for a table, in runs that have the same columns, so that one statement inserts each run. Mostly that is all of them.
 * p_unwritten: columns that are left out of the statement, because the act sets them or because only the engine may.
 * Returns  per run, in the order of the items: the items, the names of their columns, and these as two lists that end in a comma: for
 *          `insert into`, and as columns of a row `r`.
 * Raises   GL002 for an item that is no object, and for p_on_duplicate; 42703 for a column that the table does not have.
 */
create or replace function gleaner.group_items(
    p_table regclass, p_items jsonb, p_on_duplicate text, p_unwritten text[], out items jsonb, out names text[], out columns text, out taken text
) returns setof record
language plpgsql stable
as $$
declare
    v_items jsonb := case jsonb_typeof(p_items) when 'array' then p_items else jsonb_build_array(p_items) end;
    v_wrong jsonb;
    v_same  boolean;
begin
    if p_on_duplicate not in ('skip', 'replace') then
        raise exception 'p_on_duplicate is skip or replace, not %', p_on_duplicate using errcode = 'GL002';
    end if;
    select i.item into v_wrong from jsonb_array_elements(v_items) as i (item) where jsonb_typeof(i.item) <> 'object' limit 1;
    if found then
        raise exception 'an item must be an object whose keys are columns of %, this one is %', p_table, v_wrong using errcode = 'GL002';
    end if;
    names := array(select k from jsonb_object_keys(v_items -> 0) as k);
    v_same := not exists (select from jsonb_array_elements(v_items) as i (item) where not i.item ?& names or i.item - names <> '{}');
    for items, names in
        select v_items, group_items.names where v_same and jsonb_array_length(v_items) > 0
        union all
        (select jsonb_agg(r.item order by r.n), r.names
         from (select i.*, sum(i.begins) over (order by i.n) as run
               from (select i.*, (i.names is distinct from lag(i.names) over (order by i.n))::integer as begins
                     from (select i.item, i.n, array(select k from jsonb_object_keys(i.item) as k order by k) as names
                           from jsonb_array_elements(v_items) with ordinality as i (item, n) where not v_same) as i) as i) as r
         group by r.run, r.names
         order by r.run)
    loop
        perform gleaner.check_columns(p_table, names);
        select coalesce(string_agg(format('%I, ', n), ''), ''), coalesce(string_agg(format('r.%I, ', n), ''), '') into columns, taken
        from unnest(names) as n where n <> all (p_unwritten);
        return next;
    end loop;
end
$$;
comment on function gleaner.group_items(regclass, jsonb, text, text[]) is 'Items for a table, in runs that have the same columns.';
revoke all on function gleaner.group_items(regclass, jsonb, text, text[]) from public, anon, authenticated, service_role;
grant execute on function gleaner.group_items(regclass, jsonb, text, text[]) to gleaner_engine;
