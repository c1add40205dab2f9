-- Foreign keys, one JSON object each; also those of schemas that are not exposed, for views show their columns.
select json_build_object(
    'name', f.conname,
    'table', f.conrelid::int8,
    'columns', f.conkey,
    'referenced_table', f.confrelid::int8,
    'referenced_columns', f.confkey,
    -- At most one row there belongs to a row here.
    'unique', exists (
        select from pg_index as i
        where i.indrelid = f.conrelid and i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null
          and (i.indkey::int2[])[0:i.indnkeyatts - 1] <@ f.conkey),
    -- What makes a table a junction: its rows are told apart by what they join.
    'in_primary_key', exists (
        select from pg_index as i
        where i.indrelid = f.conrelid and i.indisprimary and f.conkey <@ (i.indkey::int2[])[0:i.indnkeyatts - 1])
)::text
from pg_constraint as f
join pg_namespace as n on n.oid = f.connamespace
where f.contype = 'f'
  -- Those of partitions repeat their parent's.
  and f.conparentid = 0
  and n.nspname not in ('pg_catalog', 'information_schema')
order by f.conname, f.oid
