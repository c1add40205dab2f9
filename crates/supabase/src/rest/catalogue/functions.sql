-- Functions of the exposed schemas, one JSON object each.
select json_build_object(
    'schema', n.nspname,
    'name', p.proname,
    'sql', format('%I.%I', n.nspname, p.proname),
    'volatile', p.provolatile = 'v',
    'many', p.proretset,
    -- Declared to return at most one row.
    'one_row', p.proretset and p.prorows = 1,
    'result', p.prorettype::int8,
    'arguments', (
        select coalesce(json_agg(json_build_object(
            'name', coalesce(input.name, ''),
            'sql', quote_ident(coalesce(input.name, '')),
            'type', input.type::int8,
            -- Defaults belong to the last arguments.
            'required', input.nth <= p.pronargs - p.pronargdefaults,
            'variadic', input.mode = 'v'
        ) order by input.nth), '[]')
        from (
            select a.type, a.name, coalesce(a.mode, 'i') as mode, row_number() over (order by a.position) as nth
            from unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargnames, p.proargmodes)
                with ordinality as a (type, name, mode, position)
            where a.type is not null and coalesce(a.mode, 'i') in ('i', 'b', 'v')
        ) as input),
    'returns', case
        when p.prorettype = 'pg_catalog.void'::regtype then json_build_object('kind', 'nothing')
        when p.proargmodes && '{t,o,b}'::"char"[] then json_build_object('kind', 'rows', 'relation', null, 'columns', (
            select coalesce(json_agg(json_build_object(
                'name', coalesce(output.name, ''),
                'sql', quote_ident(coalesce(output.name, '')),
                'type', output.type::int8,
                'default', null
            ) order by output.position), '[]')
            from unnest(p.proallargtypes, p.proargnames, p.proargmodes) with ordinality as output (type, name, mode, position)
            where output.mode in ('t', 'o', 'b')))
        when rt.typtype = 'c' then json_build_object(
            'kind', 'rows',
            'relation', (
                select json_build_object('schema', cn.nspname, 'name', c.relname)
                from pg_class as c join pg_namespace as cn on cn.oid = c.relnamespace
                where c.oid = rt.typrelid),
            'columns', (
                select coalesce(json_agg(json_build_object(
                    'name', a.attname,
                    'sql', quote_ident(a.attname),
                    'type', a.atttypid::int8,
                    'default', null
                ) order by a.attnum), '[]')
                from pg_attribute as a
                where a.attrelid = rt.typrelid and a.attnum > 0 and not a.attisdropped))
        else json_build_object('kind', 'value')
    end
)::text
from pg_proc as p
join pg_namespace as n on n.oid = p.pronamespace
join pg_type as rt on rt.oid = p.prorettype
where n.nspname = any ($1)
  and p.prokind = 'f'
  and p.prorettype not in ('pg_catalog.trigger'::regtype, 'pg_catalog.event_trigger'::regtype)
