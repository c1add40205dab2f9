//! The indexes of a queue.

use super::Index;
use crate::introspect::Table;

/// What the probes look by.
pub(super) struct IndexParts {
    pub(super) tenant: Option<String>,
    pub(super) key: String,
    pub(super) lane: Option<String>,
    pub(super) owner: Option<String>,
    pub(super) due: String,
    pub(super) open: String,
    pub(super) standing: String,
    pub(super) dead: String,
    pub(super) unique: Option<(String, String)>,
    pub(super) finished: Option<String>,
}

/// One index per probe, and exactly one that can match it: a second candidate is what the planner falls for.
pub(super) fn indexes(queue: &str, table: &Table, p: &IndexParts) -> Vec<Index> {
    let list = |parts: &[Option<&str>]| parts.iter().flatten().copied().collect::<Vec<_>>().join(", ");
    let on = table.sql();
    let named = |suffix: &str| {
        let mut base = format!("gleaner_{queue}");
        base.truncate(63 - suffix.len() - 1);
        format!("{base}_{suffix}")
    };
    let (tenant, lane) = (p.tenant.as_deref(), p.lane.as_deref());
    let plain = |suffix: &str, columns: String, predicate: &str| Index {
        name: named(suffix),
        definition: format!("on {on} ({columns}) where {predicate}"),
        unique: false,
    };
    let mut out = Vec::new();
    if let Some(owner) = p.owner.as_deref() {
        out.push(plain(
            "own",
            list(&[tenant, Some(owner), lane, Some(&p.due), Some(&p.key)]),
            &format!("{} and {owner} is not null", p.standing),
        ));
        out.push(plain("global", list(&[tenant, lane, Some(&p.due), Some(&p.key)]), &format!("{} and {owner} is null", p.standing)));
        out.push(plain(
            "stale",
            list(&[tenant, lane, Some(&p.open), Some(&p.key)]),
            &format!("{} and {owner} is not null and {} is not null", p.standing, p.open),
        ));
    } else {
        out.push(plain("global", list(&[tenant, lane, Some(&p.due), Some(&p.key)]), &p.standing));
    }
    // Dead rows are few, and are counted and listed among millions of finished ones.
    out.push(plain("dead", list(&[tenant, Some(&p.key)]), &p.dead));
    if let Some((target, predicate)) = &p.unique {
        out.push(Index { name: named("unique"), definition: format!("on {on} ({target}) where {predicate}"), unique: true });
    }
    if let Some(finished) = &p.finished {
        // Finished rows lie in the order they ended in: a summary per block range is enough to find the old ones.
        out.push(Index {
            name: named("finished"),
            definition: format!("on {on} using brin ({finished}) with (autosummarize = on)"),
            unique: false,
        });
    }
    out
}
