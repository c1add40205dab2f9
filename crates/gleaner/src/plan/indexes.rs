//! The indexes of a queue.

use super::Index;
use super::shape::Shape;
use crate::declaration::Declaration;
use crate::introspect::Table;

/// One index per probe, and exactly one that can match it: with a second candidate the planner may choose the wrong one.
pub(super) fn indexes(table: &Table, d: &Declaration, shape: &Shape, standing: &str) -> Vec<Index> {
    let list = |parts: &[Option<&str>]| parts.iter().flatten().copied().collect::<Vec<_>>().join(", ");
    let on = table.sql();
    let named = |suffix: &str| {
        let mut base = format!("gleaner_{}", shape.name);
        base.truncate(63 - suffix.len() - 1);
        format!("{base}_{suffix}")
    };
    let tenant = shape.tenant.as_ref().map(|t| t.column.as_str());
    let lane = shape.lane.as_ref().map(|l| l.bare.as_str());
    let (due, key) = (Some(shape.col.due.as_str()), Some(shape.key.column.as_str()));
    let plain = |suffix: &str, columns: String, predicate: &str| Index {
        name: named(suffix),
        definition: format!("on {on} ({columns}) where {predicate}"),
        unique: false,
    };
    let mut out = Vec::new();
    if let (Some(owner), Some(open)) = (&shape.owner, shape.col.open.as_deref()) {
        let owner = owner.column.as_str();
        out.push(plain("own", list(&[tenant, Some(owner), lane, due, key]), &format!("{standing} and {owner} is not null")));
        out.push(plain("global", list(&[tenant, lane, due, key]), &format!("{standing} and {owner} is null")));
        out.push(plain(
            "stale",
            list(&[tenant, lane, Some(open), key]),
            &format!("{standing} and {owner} is not null and {open} is not null"),
        ));
    } else {
        out.push(plain("global", list(&[tenant, lane, due, key]), standing));
    }
    // Dead rows are few, and must be counted and listed among millions of finished ones.
    let dead = format!("{} is null and {} = {}", shape.col.due, shape.status.column, shape.status.failed);
    out.push(plain("dead", list(&[tenant, key]), &dead));
    if let Some(unique) = &shape.unique {
        let definition = format!("on {on} ({}) where {}", unique.target, unique.predicate);
        out.push(Index { name: named("unique"), definition, unique: true });
    }
    // Bulk queues do not need this index: their prune walks the key.
    if let Some(finished) = shape.finished.as_ref().filter(|_| d.retain.is_some() && d.bulk.is_none()) {
        // Finished rows are stored in the order they ended: a summary per block range is enough to find the old ones.
        out.push(Index {
            name: named("finished"),
            definition: format!("on {on} using brin ({}) with (autosummarize = on)", finished.column),
            unique: false,
        });
    }
    out
}
