-- Tables and views of the exposed schemas, one JSON object each.
select json_build_object(
    'schema', n.nspname,
    'name', c.relname,
    'sql', format('%I.%I', n.nspname, c.relname),
    'columns', (
        select coalesce(json_agg(json_build_object(
            'name', a.attname,
            'sql', quote_ident(a.attname),
            -- A domain by what it is made of: a value that breaks its rule is then found by nobody instead of refused.
            'type', json_build_object(
                'sql', format('%I.%I', tn.nspname, t.typname),
                'array', (
                    select format('%I.%I', an.nspname, at.typname)
                    from pg_type as at join pg_namespace as an on an.oid = at.typnamespace
                    where at.oid = t.typarray)),
            'default', case
                when a.attgenerated <> '' then null
                when a.attidentity <> '' then format('pg_catalog.nextval(%L::pg_catalog.regclass)',
                    pg_get_serial_sequence(format('%I.%I', n.nspname, c.relname), a.attname))
                else (select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef as d where d.adrelid = c.oid and d.adnum = a.attnum)
            end
        ) order by a.attnum), '[]')
        from pg_attribute as a
        join pg_type as own on own.oid = a.atttypid
        join pg_type as t on t.oid = coalesce(nullif(own.typbasetype, 0), own.oid)
        join pg_namespace as tn on tn.oid = t.typnamespace
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped),
    'primary_key', (
        select coalesce(json_agg(a.attname order by k.position), '[]')
        from pg_index as i
        cross join unnest(i.indkey::int2[]) with ordinality as k (attnum, position)
        join pg_attribute as a on a.attrelid = c.oid and a.attnum = k.attnum
        where i.indrelid = c.oid and i.indisprimary and k.position <= i.indnkeyatts),
    'unique', (
        select coalesce(json_agg((
            select json_agg(a.attname)
            from unnest(i.indkey::int2[]) with ordinality as k (attnum, position)
            join pg_attribute as a on a.attrelid = c.oid and a.attnum = k.attnum
            where k.position <= i.indnkeyatts)), '[]')
        from pg_index as i
        where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null),
    'foreign_keys', (
        select coalesce(json_agg(json_build_object(
            'name', f.conname,
            'columns', (
                select json_agg(a.attname order by k.position)
                from unnest(f.conkey) with ordinality as k (attnum, position)
                join pg_attribute as a on a.attrelid = f.conrelid and a.attnum = k.attnum),
            'schema', rn.nspname,
            'relation', r.relname,
            'referenced', (
                select json_agg(a.attname order by k.position)
                from unnest(f.confkey) with ordinality as k (attnum, position)
                join pg_attribute as a on a.attrelid = f.confrelid and a.attnum = k.attnum)
        ) order by f.conname), '[]')
        from pg_constraint as f
        join pg_class as r on r.oid = f.confrelid
        join pg_namespace as rn on rn.oid = r.relnamespace
        where f.conrelid = c.oid and f.contype = 'f')
)::text
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = any ($1)
  and c.relkind in ('r', 'p', 'v', 'm', 'f')
