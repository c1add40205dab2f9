-- What views are made of, as the parser left it. Of all schemas, because an exposed view may stand on one that is not.
select r.ev_class::int8, r.ev_action::text
from pg_rewrite as r
join pg_class as c on c.oid = r.ev_class
join pg_namespace as n on n.oid = c.relnamespace
where r.ev_type = '1'
  and c.relkind in ('v', 'm')
  and n.nspname not in ('pg_catalog', 'information_schema')
