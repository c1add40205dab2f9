//! What the catalogue says about a table. Declarations are checked against it.

use std::collections::BTreeMap;

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use crate::error::{Error, Result};

/// A table as it exists.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its schema, unquoted.
    pub schema: String,
    /// Its name, unquoted.
    pub name: String,
    /// `r` table, `p` partitioned, `v` view, `f` foreign, `m` materialised view.
    pub kind: char,
    /// The role that owns it.
    pub owner: String,
    /// Whether row-level security is on.
    pub row_security: bool,
    /// Whether row-level security applies to the owner too.
    pub forced_row_security: bool,
    /// By name.
    pub columns: BTreeMap<String, Column>,
    /// Columns of the primary key, in order.
    pub primary_key: Vec<String>,
    /// Columns of the partition key, in order; none unless partitioned.
    pub partition_key: Vec<String>,
    /// How many rows it has, by the planner's estimate.
    pub rows: f64,
    /// How many bytes a row has, by the planner's estimate.
    pub width: f64,
    /// How many indexes it has.
    pub indexes: i64,
    /// How Citus stores it; `None` for a table on this server only.
    pub distribution: Option<Distribution>,
}

/// A table whose rows are stored on the workers of a Citus cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// The column that decides which worker stores a row. `None`: the table is not split.
    pub column: Option<String>,
    /// Every worker has all rows.
    pub reference: bool,
    /// Nodes connect to each other as the role that runs the statement, so the acts' owner must be able to log in.
    pub owner_logs_in: bool,
    /// Tables and functions can only be changed on the coordinator.
    pub on_coordinator: bool,
}

impl Distribution {
    async fn find(client: &impl GenericClient, oid: u32) -> Result<Option<Self>> {
        let known = client
            .query_typed("select to_regclass('pg_catalog.pg_dist_partition') is not null", &[])
            .await
            .map_err(Error::doing("look for Citus"))?;
        if !known[0].get::<_, bool>(0) {
            return Ok(None);
        }
        let rows = client
            .query_typed(
                "select column_to_column_name(p.logicalrelid, p.partkey), p.repmodel = 't', r.rolcanlogin,
                        (select g.groupid = 0 from pg_catalog.pg_dist_local_group as g)
                 from pg_catalog.pg_dist_partition as p
                 join pg_class as c on c.oid = p.logicalrelid join pg_roles as r on r.oid = c.relowner
                 -- Neither column nor group: a table of the coordinator that Citus merely knows.
                 where p.logicalrelid = $1 and (p.partkey is not null or p.colocationid > 0)",
                &[(&oid, Type::OID)],
            )
            .await
            .map_err(Error::doing("look how the table is distributed"))?;
        Ok(rows.first().map(|r| Self { column: r.get(0), reference: r.get(1), owner_logs_in: r.get(2), on_coordinator: r.get(3) }))
    }
}

/// A column as it exists.
#[derive(Debug, Clone)]
pub struct Column {
    /// As `format_type` spells it. A type that is not built into PostgreSQL always has its schema, whatever the search path.
    pub data_type: String,
    /// Whether it rejects null.
    pub not_null: bool,
    /// Whether it has a default.
    pub has_default: bool,
    /// Computed from other columns, so that no statement may write it.
    pub generated: bool,
    /// The labels, when the type is an enum.
    pub labels: Vec<String>,
    /// Its position in the row.
    pub position: i16,
}

/// Something that reads or follows the table and may be affected by the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bystander {
    /// What it is: a view, a publication, …
    pub kind: &'static str,
    /// Its name.
    pub name: String,
}

impl Table {
    /// Quoted and schema-qualified.
    pub fn sql(&self) -> String {
        format!("{}.{}", quote(&self.schema), quote(&self.name))
    }

    /// The table behind a name such as `public.activities`; `None` when there is none.
    pub async fn find(client: &impl GenericClient, name: &str) -> Result<Option<Self>> {
        let row = client
            .query_typed(
                "select n.nspname, c.relname, c.relkind::text, pg_get_userbyid(c.relowner)::text, c.relrowsecurity, c.relforcerowsecurity,
                        c.reltuples::float8, c.oid,
                        array(select a.attname::text from pg_index i cross join lateral unnest(i.indkey) with ordinality k(n, o)
                              join pg_attribute a on a.attrelid = c.oid and a.attnum = k.n
                              where i.indrelid = c.oid and i.indisprimary order by k.o),
                        array(select a.attname::text from pg_partitioned_table p cross join lateral unnest(p.partattrs::int2[]) k(n)
                              join pg_attribute a on a.attrelid = c.oid and a.attnum = k.n where p.partrelid = c.oid),
                        coalesce((select sum(s.avg_width) from pg_stats s where s.schemaname = n.nspname and s.tablename = c.relname), 0)::float8,
                        (select count(*) from pg_index i where i.indrelid = c.oid)
                 from pg_class c join pg_namespace n on n.oid = c.relnamespace
                 where c.oid = to_regclass($1)",
                &[(&name, Type::TEXT)],
            )
            .await;
        let row = match row {
            // An invalid name (`a.b.c`, an unclosed quote) names no table.
            Err(e) if e.code().is_some_and(|c| matches!(c.code(), "42601" | "42602" | "0A000")) => return Ok(None),
            other => other.map_err(Error::doing("look the table up"))?,
        };
        let Some(row) = row.first() else { return Ok(None) };
        let oid: u32 = row.get(7);
        let columns = client
            .query_typed(
                "select a.attname::text,
                        case when n.nspname = 'pg_catalog' then format_type(a.atttypid, a.atttypmod) else format('%I.%I', n.nspname, t.typname) end,
                        a.attnotnull, a.atthasdef or a.attidentity <> '' or a.attgenerated <> '',
                        array(select e.enumlabel::text from pg_enum e where e.enumtypid = a.atttypid order by e.enumsortorder),
                        a.attnum, a.attgenerated <> ''
                 from pg_attribute a join pg_type t on t.oid = a.atttypid join pg_namespace n on n.oid = t.typnamespace
                 where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped",
                &[(&oid, Type::OID)],
            )
            .await
            .map_err(Error::doing("read the table's columns"))?
            .iter()
            .map(|c| {
                (
                    c.get(0),
                    Column {
                        data_type: c.get(1),
                        not_null: c.get(2),
                        has_default: c.get(3),
                        generated: c.get(6),
                        labels: c.get(4),
                        position: c.get(5),
                    },
                )
            })
            .collect();
        Ok(Some(Self {
            schema: row.get(0),
            name: row.get(1),
            kind: row.get::<_, String>(2).chars().next().unwrap_or('r'),
            owner: row.get(3),
            row_security: row.get(4),
            forced_row_security: row.get(5),
            rows: row.get(6),
            primary_key: row.get(8),
            partition_key: row.get(9),
            width: row.get(10),
            indexes: row.get(11),
            distribution: Distribution::find(client, oid).await?,
            columns,
        }))
    }

    /// Triggers, views and functions that fire on the table or refer to it. They are reported to the author, because every act runs them.
    pub async fn bystanders(&self, client: &impl GenericClient) -> Result<Vec<Bystander>> {
        let rows = client
            .query_typed(
                "select 'trigger', t.tgname::text from pg_trigger t
                 where t.tgrelid = to_regclass($1) and not t.tgisinternal and t.tgname not like 'zz\\_gleaner\\_%'
                   and t.tgname not like '00\\_gleaner\\_%'
                 union all
                 select distinct 'view', format('%I.%I', n.nspname, v.relname)
                 from pg_depend d join pg_rewrite r on r.oid = d.objid join pg_class v on v.oid = r.ev_class join pg_namespace n on n.oid = v.relnamespace
                 where d.refobjid = to_regclass($1) and d.classid = 'pg_rewrite'::regclass and v.oid <> to_regclass($1)
                 union all
                 select 'function', p.oid::regprocedure::text
                 from pg_proc p join pg_namespace n on n.oid = p.pronamespace
                 where n.nspname not in ('pg_catalog', 'information_schema', 'gleaner')
                   and p.prosrc ~* ('\\y' || regexp_replace($2, '([.*+?^${}()|\\[\\]\\\\])', '\\\\\\1', 'g') || '\\y')
                 order by 1, 2",
                &[(&self.sql(), Type::TEXT), (&self.name, Type::TEXT)],
            )
            .await
            .map_err(Error::doing("look for what reads the table"))?;
        Ok(rows
            .iter()
            .map(|r| Bystander {
                kind: match r.get::<_, String>(0).as_str() {
                    "trigger" => "trigger",
                    "view" => "view",
                    _ => "function",
                },
                name: r.get(1),
            })
            .collect())
    }
}

/// An identifier as PostgreSQL expects it: quoted only if needed.
pub fn quote(name: &str) -> String {
    let plain = name.bytes().enumerate().all(|(i, b)| b.is_ascii_lowercase() || b == b'_' || (i > 0 && b.is_ascii_digit()));
    if plain && !name.is_empty() && !RESERVED.contains(&name) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A string literal.
pub fn literal(text: &str) -> String {
    if text.contains('\\') {
        format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// Words that cannot be used unquoted as a column or table name.
const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "between",
    "bigint",
    "binary",
    "bit",
    "boolean",
    "both",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "coalesce",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "dec",
    "decimal",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "greatest",
    "group",
    "grouping",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "inout",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "least",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "national",
    "natural",
    "nchar",
    "none",
    "normalize",
    "not",
    "notnull",
    "null",
    "nullif",
    "numeric",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "out",
    "outer",
    "overlaps",
    "overlay",
    "placing",
    "position",
    "precision",
    "primary",
    "real",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "session_user",
    "setof",
    "similar",
    "smallint",
    "some",
    "substring",
    "symmetric",
    "system_user",
    "table",
    "tablesample",
    "then",
    "time",
    "timestamp",
    "to",
    "trailing",
    "treat",
    "trim",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "varchar",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
    "xmlattributes",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_quoted_where_needed() {
        assert_eq!(quote("due_at"), "due_at");
        assert_eq!(quote("Order"), "\"Order\"");
        assert_eq!(quote("user"), "\"user\"");
        assert_eq!(quote("a\"b"), "\"a\"\"b\"");
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\b"), "E'a\\\\b'");
    }
}
