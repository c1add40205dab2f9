-- Tables and views of the exposed schemas, one JSON object each.
select json_build_object(
    'schema', n.nspname,
    'name', c.relname,
    'sql', format('%I.%I', n.nspname, c.relname),
    'oid', c.oid::int8,
    'row_type', c.reltype::int8,
    'view', c.relkind in ('v', 'm'),
    'columns', (
        select coalesce(json_agg(json_build_object(
            'name', a.attname,
            'sql', quote_ident(a.attname),
            'number', a.attnum,
            'type', a.atttypid::int8,
            'default', case
                when a.attgenerated <> '' then null
                when a.attidentity <> '' then format('pg_catalog.nextval(%L::pg_catalog.regclass)',
                    pg_get_serial_sequence(format('%I.%I', n.nspname, c.relname), a.attname))
                else (select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef as d where d.adrelid = c.oid and d.adnum = a.attnum)
            end
        ) order by a.attnum), '[]')
        from pg_attribute as a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped),
    'primary_key', (
        select coalesce(json_agg(a.attname order by k.position), '[]')
        from pg_index as i
        cross join unnest(i.indkey::int2[]) with ordinality as k (attnum, position)
        join pg_attribute as a on a.attrelid = c.oid and a.attnum = k.attnum
        where i.indrelid = c.oid and i.indisprimary and k.position <= i.indnkeyatts)
)::text
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = any ($1)
  and c.relkind in ('r', 'p', 'v', 'm', 'f')
  -- Rows of a partition are read and written through its parent.
  and not c.relispartition
