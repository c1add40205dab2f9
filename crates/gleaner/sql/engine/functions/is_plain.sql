/*
 * Whether nothing on the table can reject a change of p_columns: no other trigger that fires on updates, no check or
 * foreign key over one of them, no other unique or exclusion index. A check of the status alone does not count: it
 * rejects every row or none. Nor does a unique index that neither holds nor asks one of them: entries that stay as they are
 * collide with nothing. People change their tables, so claims ask again (gleaner.check_plain): where it
 * holds, a claim returns rows as they change; where not, it looks at each rejection.
 */
create or replace function gleaner.is_plain(p_table regclass, p_columns text[], p_status text) returns boolean
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Partitions have triggers and checks of their own.
    return (select c.relkind = 'r' from pg_class as c where c.oid = p_table)
       and not exists (
               select from pg_trigger as t
               where t.tgrelid = p_table and not t.tgisinternal and t.tgtype & 16 <> 0
                 -- A trigger of columns that are not written does not fire.
                 and (cardinality(t.tgattr::int2[]) = 0 or t.tgattr::int2[] && array(
                     select a.attnum from pg_attribute as a where a.attrelid = p_table and a.attname = any (p_columns)))
                 and t.tgname not like 'zz\_gleaner\_%' and t.tgname not like '00\_gleaner\_%')
       and not exists (
               select from pg_constraint as c
               where c.conrelid = p_table
                 and c.contype in ('c', 'f', 'x', 't')
                 -- Ours: what the acts write keeps them.
                 and c.conname not like 'gleaner\_%'
                 and not (c.contype = 'c' and c.convalidated and c.conkey = array(
                     select a.attnum from pg_attribute as a where a.attrelid = p_table and a.attname = p_status))
                 and (not c.convalidated or c.conkey is null or c.conkey && array(
                     select a.attnum from pg_attribute as a where a.attrelid = p_table and a.attname = any (p_columns))))
       and not exists (
               select from pg_index as i
               join pg_class as c on c.oid = i.indexrelid
               where i.indrelid = p_table and (i.indisunique or i.indisexclusion) and not i.indisprimary
                 and c.relname not like 'gleaner\_%\_unique'
                 and exists (
                     select from pg_attribute as a
                     where a.attrelid = p_table and a.attname = any (p_columns)
                       and (a.attnum = any (i.indkey)
                            -- Columns inside an expression or a condition are what the index depends on; a whole row is not noted.
                            or (i.indexprs is not null or i.indpred is not null)
                               and (concat(pg_get_expr(i.indexprs, p_table), pg_get_expr(i.indpred, p_table)) like '%.*%'
                                    or exists (
                                        select from pg_depend as d
                                        where d.classid = 'pg_class'::regclass and d.objid = i.indexrelid
                                          and d.refclassid = 'pg_class'::regclass and d.refobjid = p_table
                                          and d.refobjsubid = a.attnum)))));
end
$$;
revoke all on function gleaner.is_plain(regclass, text[], text) from public, anon, authenticated;
grant execute on function gleaner.is_plain(regclass, text[], text) to gleaner_engine;
