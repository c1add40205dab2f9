//! Whether claims may hold many rows by one record.

use super::check::Check;
use super::columns::Columns;
use super::shape::{Bulk, BulkColumn};
use crate::declaration::{Declaration, PerKind};
use crate::introspect::{literal, quote};

/// The least number of rows, and the columns of a row in their order.
pub(super) fn bulk(check: &mut Check<'_>, d: &Declaration, key_type: &str, engine: &Columns) -> Option<Bulk> {
    let from = d.bulk?;
    let table = check.table;
    if from < 2 {
        check.mistake(format!("bulk = {from}"), "write from how many rows on a claim holds them together, such as 64");
    }
    if key_type != "bigint" {
        check.mistake(format!("bulk needs a key of type bigint, and this one is {key_type}"), "leave `bulk` out");
    }
    // A claim may write nothing on the row for others to see except the lease.
    let stands_in_the_way = [
        ("owner", d.owner.is_some()),
        ("tenant", d.tenant.is_some()),
        ("holder", d.holder.is_some()),
        ("status.claimed", d.status.claimed.is_some()),
        ("hold per kind", matches!(d.hold, Some(PerKind::ByKind(_)))),
        ("deadline per kind", matches!(d.deadline, Some(PerKind::ByKind(_)))),
        ("a partitioned table", table.kind == 'p'),
    ];
    for (what, _) in stands_in_the_way.iter().filter(|(_, declared)| *declared) {
        check.mistake(format!("bulk does not go with {what}: one record holds all rows of a claim alike"), "leave one of the two out");
    }
    let role_of = |name: &str| {
        let role = engine.roles().find(|(_, column)| *column == name).map(|(role, _)| role);
        if name == d.status.column { Some("status") } else { role }
    };
    let mut found: Vec<_> = table.columns.iter().collect();
    found.sort_by_key(|(_, column)| column.position);
    let missing = engine.own.iter().filter(|c| !table.columns.contains_key(&c.name)).map(|c| (c.name.as_str(), c.definition));
    let all: Vec<(&str, &str)> = found.iter().map(|(name, column)| (name.as_str(), column.data_type.as_str())).chain(missing).collect();
    let names: Vec<String> = all.iter().map(|(name, _)| literal(name)).collect();
    let columns = all
        .iter()
        .map(|(name, data_type)| BulkColumn { column: quote(name), data_type: (*data_type).to_owned(), role: role_of(name) })
        .collect();
    Some(Bulk { from, names: names.join(", "), columns })
}
