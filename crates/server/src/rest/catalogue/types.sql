-- Types a client may cast a column to, by the catalogue's name and by SQL's. A name of the user's own wins over none of
-- PostgreSQL's: those come last and the last one stays.
select named.name, format('%I.%I', n.nspname, t.typname)
from pg_type as t
join pg_namespace as n on n.oid = t.typnamespace
cross join lateral (values (t.typname::text), (format_type(t.oid, null))) as named (name)
where (n.nspname = 'pg_catalog' or n.nspname = any ($1))
  and t.typtype in ('b', 'd', 'e', 'r', 'm')
order by n.nspname = 'pg_catalog', t.oid
