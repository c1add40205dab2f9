//! Where rows are copied that will not be retried.

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::check::Check;
use super::shape::Dead;
use crate::declaration::Declaration;
use crate::error::{Error, Result};
use crate::introspect::{Table, quote};

/// The column that refers to the table gets the key, a reason column gets the reason, and columns with equal names are copied.
pub(super) fn dead(
    check: &mut Check<'_>,
    d: &Declaration,
    key: Option<&str>,
    tables: Option<&(&str, Option<Table>)>,
    reference: Option<String>,
) -> Option<Dead> {
    let ((dead_name, found), table) = (tables?, check.table);
    let Some(found) = found else {
        check.mistake(format!("dead = {dead_name:?}: there is no such table"), "create it first, or leave `dead` out");
        return None;
    };
    let reference = reference.or_else(|| found.columns.keys().find(|c| c.starts_with("original_")).cloned());
    let Some(reference) = reference else {
        check.mistake(
            format!("dead = {dead_name:?}: no column refers to {}", table.sql()),
            "add one: a foreign key, or a column named original_…_id",
        );
        return None;
    };
    let mut names = vec![quote(&reference)];
    let mut values = vec![format!("p_row.{}", quote(key.unwrap_or("id")))];
    for (column, info) in &found.columns {
        // The tenant is first in the keys of its tables. The other columns of a primary key belong to the dead letter itself.
        let own_key = found.primary_key.contains(column) && d.tenant.as_ref() != Some(column);
        if *column == reference || own_key || Some(column.as_str()) == key || column.starts_with("created") {
            continue;
        }
        if column == "reason" || column.ends_with("_reason") {
            names.push(quote(column));
            values.push("p_reason".into());
        } else if table.columns.get(column).is_some_and(|c| c.data_type == info.data_type) {
            names.push(quote(column));
            values.push(format!("p_row.{}", quote(column)));
        }
    }
    let pk_needs_value = found.primary_key.iter().any(|c| d.tenant.as_ref() != Some(c) && !found.columns[c].has_default);
    if pk_needs_value && found.primary_key.len() == 1 && found.columns[&found.primary_key[0]].data_type == "uuid" {
        names.push(quote(&found.primary_key[0]));
        values.push("gen_random_uuid()".into());
    } else if pk_needs_value {
        check.mistake(format!("dead = {dead_name:?}: its key has no default"), "give it one, such as gen_random_uuid()");
    }
    Some(Dead { table: found.sql(), columns: names.join(", "), values: values.join(", ") })
}

/// The column of `dead` with a foreign key to `table`.
pub(super) async fn reference_to(client: &impl GenericClient, dead: &Table, table: &Table) -> Result<Option<String>> {
    let rows = client
        .query_typed(
            "select a.attname::text from pg_constraint c join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
             where c.contype = 'f' and c.conrelid = to_regclass($1) and c.confrelid = to_regclass($2) and cardinality(c.conkey) = 1",
            &[(&dead.sql(), Type::TEXT), (&table.sql(), Type::TEXT)],
        )
        .await
        .map_err(Error::doing("look for the dead letter table's foreign key"))?;
    Ok(rows.first().map(|r| r.get(0)))
}
