-- Types: what they are called in SQL, what arrays of them are called, and by which names a client may cast to them. A domain
-- is described by what it is made of: a value that breaks its rule is then found by nobody instead of refused.
with recursive base as (
    select oid, oid as made_of, typbasetype as next from pg_type
    union all
    select base.oid, t.oid, t.typbasetype from base join pg_type as t on t.oid = base.next
)
select own.oid::int8,
       quote_ident(tn.nspname) || '.' || quote_ident(t.typname),
       quote_ident(an.nspname) || '.' || quote_ident(at.typname),
       case
           when own.typtype in ('b', 'd', 'e', 'r', 'm') and (n.nspname = 'pg_catalog' or n.nspname = any ($1))
           then array[own.typname::text, format_type(own.oid, null)]
           else '{}'
       end
from pg_type as own
join pg_namespace as n on n.oid = own.typnamespace
join base on base.oid = own.oid and base.next = 0
join pg_type as t on t.oid = base.made_of
join pg_namespace as tn on tn.oid = t.typnamespace
left join pg_type as at on at.oid = t.typarray
left join pg_namespace as an on an.oid = at.typnamespace
-- Two types may have one name: the last one keeps it, and that is PostgreSQL's own.
order by n.nspname = 'pg_catalog', own.oid
