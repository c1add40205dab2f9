//! A table as the catalogue describes it, including defaults, constraints and indexes, in a form that can be compared and executed.

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use crate::error::{Error, Result};

#[derive(Debug)]
pub(super) struct Shape {
    /// As in `pg_class.relkind`.
    pub(super) kind: String,
    pub(super) owner: String,
    /// Whether the role that migrates may change it.
    pub(super) ours_to_change: bool,
    pub(super) columns: Vec<Column>,
    pub(super) primary_key: Vec<String>,
    pub(super) constraints: Vec<Constraint>,
    pub(super) indexes: Vec<Index>,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) data_type: String,
    pub(super) is_enum: bool,
    pub(super) not_null: bool,
    pub(super) default: Option<String>,
    pub(super) identity: bool,
    pub(super) generated: bool,
}

/// A check or a foreign key.
#[derive(Debug)]
pub(super) struct Constraint {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) definition: String,
    pub(super) columns: Vec<String>,
    /// A check's condition.
    pub(super) condition: Option<String>,
    /// The table and columns a foreign key points to.
    pub(super) target: Option<String>,
    pub(super) target_columns: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) unique: bool,
    /// The definition from `USING` on.
    pub(super) definition: String,
    pub(super) keys: Vec<String>,
    pub(super) predicate: Option<String>,
}

impl Shape {
    pub(super) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// The relation of that name, if it exists. Names of schema `scratch` are written as if they were in public.
    pub(super) async fn read(client: &impl GenericClient, schema: &str, name: &str) -> Result<Option<Self>> {
        let relation = format!("{}.{}", crate::introspect::quote(schema), crate::introspect::quote(name));
        let here = |text: String| text.replace(&format!("{}.", super::SCRATCH), "public.");
        let doing = || Error::doing(format!("read the shape of {relation}"));
        let rows = client
            .query_typed(
                "select c.relkind::text, pg_get_userbyid(c.relowner)::text, pg_has_role(current_user, c.relowner, 'usage'),
                        array(select a.attname::text from pg_index i cross join lateral unnest(i.indkey) with ordinality k(n, o)
                              join pg_attribute a on a.attrelid = c.oid and a.attnum = k.n
                              where i.indrelid = c.oid and i.indisprimary order by k.o)
                 from pg_class c where c.oid = to_regclass($1)",
                &[(&relation, Type::TEXT)],
            )
            .await
            .map_err(doing())?;
        let Some(row) = rows.first() else { return Ok(None) };
        let columns = client
            .query_typed(
                "select a.attname::text, format_type(a.atttypid, a.atttypmod), t.typtype = 'e', a.attnotnull,
                        pg_get_expr(d.adbin, d.adrelid), a.attidentity <> '', a.attgenerated <> ''
                 from pg_attribute a join pg_type t on t.oid = a.atttypid
                 left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
                 where a.attrelid = to_regclass($1) and a.attnum > 0 and not a.attisdropped order by a.attnum",
                &[(&relation, Type::TEXT)],
            )
            .await
            .map_err(doing())?;
        let constraints = client
            .query_typed(
                "select c.conname::text, c.contype::text, pg_get_constraintdef(c.oid),
                        array(select a.attname::text from unnest(c.conkey) with ordinality k(n, o)
                              join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.n order by k.o),
                        case when c.contype = 'c' then pg_get_expr(c.conbin, c.conrelid) end,
                        case when c.contype = 'f' then c.confrelid::regclass::text end,
                        array(select a.attname::text from unnest(c.confkey) with ordinality k(n, o)
                              join pg_attribute a on a.attrelid = c.confrelid and a.attnum = k.n order by k.o)
                 from pg_constraint c where c.conrelid = to_regclass($1) and c.contype in ('c', 'f') order by c.conname",
                &[(&relation, Type::TEXT)],
            )
            .await
            .map_err(doing())?;
        let indexes = client
            .query_typed(
                "select x.relname::text, i.indisunique, regexp_replace(pg_get_indexdef(i.indexrelid), '^.*? USING ', 'USING '),
                        array(select pg_get_indexdef(i.indexrelid, n, true) from generate_series(1, i.indnkeyatts::integer) n order by n),
                        pg_get_expr(i.indpred, i.indrelid)
                 from pg_index i join pg_class x on x.oid = i.indexrelid
                 where i.indrelid = to_regclass($1) and not i.indisprimary and i.indisvalid order by x.relname",
                &[(&relation, Type::TEXT)],
            )
            .await
            .map_err(doing())?;
        Ok(Some(Self {
            kind: row.get(0),
            owner: row.get(1),
            ours_to_change: row.get(2),
            primary_key: row.get(3),
            columns: columns
                .iter()
                .map(|c| Column {
                    name: c.get(0),
                    data_type: here(c.get(1)),
                    is_enum: c.get(2),
                    not_null: c.get(3),
                    default: c.get::<_, Option<String>>(4).map(here),
                    identity: c.get(5),
                    generated: c.get(6),
                })
                .collect(),
            constraints: constraints
                .iter()
                .map(|c| Constraint {
                    name: c.get(0),
                    kind: c.get(1),
                    definition: here(c.get(2)),
                    columns: c.get(3),
                    condition: c.get::<_, Option<String>>(4).map(here),
                    target: c.get::<_, Option<String>>(5).map(here),
                    target_columns: c.get(6),
                })
                .collect(),
            indexes: indexes
                .iter()
                .map(|i| Index {
                    name: i.get(0),
                    unique: i.get(1),
                    definition: here(i.get(2)),
                    keys: i.get(3),
                    predicate: i.get::<_, Option<String>>(4).map(here),
                })
                .collect(),
        }))
    }
}
