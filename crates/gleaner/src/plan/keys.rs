//! Checks the table, its key and its partitioning.

use super::check::Check;
use super::columns::COLUMNS;
use super::shape::{ColumnRef, Key};
use crate::declaration::Declaration;

/// Checks that the queue's name can be part of a function name, and that its table is a table.
pub(super) fn check_subject(check: &mut Check<'_>, d: &Declaration) {
    let (name, table) = (d.name(), check.table);
    let plain = name.len() <= 40
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    if !plain {
        check.mistake(
            format!("name = {name:?}"),
            "use a short name of lower-case letters, digits and underscores: it becomes part of function names",
        );
    }
    match table.kind {
        'r' | 'p' => {}
        other => check.mistake(
            format!(
                "table = {:?} is a {}",
                d.table,
                match other {
                    'v' => "view",
                    'm' => "materialised view",
                    'f' => "foreign table",
                    _ => "relation of another kind",
                }
            ),
            "attach the table it reads from",
        ),
    }
}

/// The column that is first in every key.
pub(super) fn tenant(check: &mut Check<'_>, d: &Declaration) -> Option<ColumnRef> {
    let tenant = d.tenant.as_deref()?;
    let column = check.column("tenant", tenant, &[])?;
    Some(ColumnRef::new(tenant, &column.data_type))
}

/// The primary key's columns other than key and tenant.
pub(super) fn parts(check: &Check<'_>, key: &str, tenant: Option<&str>) -> Vec<ColumnRef> {
    let table = check.table;
    let others = table.primary_key.iter().filter(|c| *c != key && Some(c.as_str()) != tenant);
    others.map(|c| ColumnRef::new(c, &table.columns[c].data_type)).collect()
}

/// The key column.
pub(super) fn key(check: &mut Check<'_>, d: &Declaration) -> Option<Key> {
    let table = check.table;
    // PostgreSQL requires the partition column in the primary key. If the rest of the primary key is one column, and comes first,
    // that is the key.
    let rest_of_key: Vec<&String> = table
        .primary_key
        .iter()
        .enumerate()
        .filter(|(i, c)| {
            Some(c.as_str()) != d.tenant.as_deref() && (*i == 0 || !table.partition_key.contains(c) || Some(*c) == d.key.as_ref())
        })
        .map(|(_, c)| c)
        .collect();
    let key = match (&d.key, rest_of_key.as_slice()) {
        (_, []) => {
            check.mistake(
                format!("{} has no primary key", table.sql()),
                "add one: without it rows cannot be identified, nor published to subscribers",
            );
            None
        }
        (Some(key), [only]) if key == *only => Some(key.clone()),
        (Some(key), [_]) => {
            check.mistake(format!("key = {key:?} is not the primary key"), format!("leave `key` out: {} is used", rest_of_key[0]));
            None
        }
        (None, [only]) => Some((*only).clone()),
        (_, several) => {
            let names: Vec<&str> = several.iter().map(|c| c.as_str()).collect();
            check.mistake(
                format!("the primary key has {} columns ({})", several.len(), names.join(", ")),
                if table.partition_key.contains(several[0]) {
                    "begin it with the column that tells rows apart, and let the partition column follow"
                } else {
                    "declare all but one of them as `tenant` (one column), or attach a table with a single key column"
                },
            );
            None
        }
    };
    let key_column = key.as_deref().and_then(|k| {
        check.column("key", k, &["bigint", "integer", "smallint", "uuid", "text", "character varying"]).map(|c| (k.to_owned(), c))
    });
    key_column.map(|(column, info)| {
        // Without its length: functions take and return the type without one.
        let key_type =
            if info.data_type.starts_with("character varying") { "character varying".to_owned() } else { info.data_type.clone() };
        let min = match key_type.as_str() {
            "uuid" => "'00000000-0000-0000-0000-000000000000'::uuid".to_owned(),
            "text" | "character varying" => format!("''::{key_type}"),
            "smallint" => "(-32768)::smallint".to_owned(),
            "integer" => "(-2147483648)::integer".to_owned(),
            _ => "(-9223372036854775808)::bigint".to_owned(),
        };
        Key { base: ColumnRef::new(&column, &key_type), min }
    })
}

/// Partitioning is refused if acts would move rows between partitions, or if a unique key would have to span them.
pub(super) fn check_partitions(check: &mut Check<'_>, d: &Declaration) {
    let (table, status) = (check.table, &d.status);
    for column in &table.partition_key {
        let changed = [&d.result, &d.progress, &d.error, &d.finished, &d.attempts]
            .into_iter()
            .flatten()
            .chain(d.holder.iter().flat_map(|h| h.by.iter().chain(&h.at)))
            .chain(d.owner.iter().map(|o| &o.column))
            .chain([&status.column]);
        if changed.into_iter().any(|c| c == column) || COLUMNS.iter().any(|c| c.1 == column) {
            check.mistake(
                format!("{} is partitioned by {column:?}, which acts change", table.sql()),
                "partition by a column that stays, such as the creation time: moving rows between partitions fails concurrent acts",
            );
        }
    }

    if let Some(column) =
        table.partition_key.iter().find(|c| d.unique.is_some() && d.unique.as_ref() != Some(c) && d.tenant.as_ref() != Some(c))
    {
        check.mistake(
            format!("unique: {} is partitioned by {column:?}, and PostgreSQL keeps no unique key across partitions", table.sql()),
            "leave `unique` out",
        );
    }
}
