//! Bulk ranges: runs of similar items that are enqueued together, with consecutive keys.

use serde_json::Value;
use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

use super::acts::Acts;
use crate::error::Result;
use crate::plan::Plan;

/// The most rows of a bulk range. Concurrent claims take from different ranges, so a range is not the whole batch.
const LENGTH: usize = 1000;

/// Decides which items of a batch share a bulk range.
#[derive(Debug, Clone)]
pub(super) struct BulkRanges {
    key: String,
    lease: String,
    /// Fewer rows than this get no batch lease, and so no bulk range.
    least: usize,
    /// Columns that may differ between rows, but not within a bulk range.
    alike: Vec<String>,
    /// Columns that a row in a bulk range may not set: there the queue itself sets times, leases and counters, and a unique key
    /// becomes free again while its row is worked on.
    apart: Vec<String>,
}

impl BulkRanges {
    /// `None` if the queue has no bulk ranges: without batch leases, or if the adapter trigger changes every inserted row.
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        let d = &plan.declaration;
        if d.adapt_inserts {
            return None;
        }
        let least = usize::try_from(d.bulk?).ok()?;
        let lease = plan.shape.col_names.lease.clone();
        let apart =
            plan.columns.iter().map(|c| &c.name).chain([&plan.key, &d.status.column]).chain(&d.due).chain(&d.unique).cloned().collect();
        let alike = d.kind.iter().chain(d.priority.as_ref().map(|p| &p.column)).cloned().collect();
        Some(Self { key: plan.key.clone(), lease, least, alike, apart })
    }
}

/// The keys of a batch, in its order: consecutive pieces, and whether each is in a bulk range.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reserved(Vec<(i64, i64, bool)>);

impl Reserved {
    /// Cuts the numbered `pieces` where a run ends. Rows of a run too short for a batch lease stay single.
    fn cut(pieces: &[(i64, i64)], runs: &[usize], least: usize) -> Self {
        let mut cuts = Vec::new();
        let mut runs = runs.iter().copied();
        let mut run = runs.next().unwrap_or_default();
        for &(mut first, last) in pieces {
            while first <= last && run > 0 {
                let length = i64::try_from(run.min(LENGTH)).unwrap_or(1).min(last - first + 1);
                cuts.push((first, first + length - 1, length >= i64::try_from(least).unwrap_or(i64::MAX)));
                first += length;
                run -= usize::try_from(length).unwrap_or_default();
                if run == 0 {
                    run = runs.next().unwrap_or_default();
                }
            }
        }
        Self(cuts)
    }

    /// Every key of the batch, and whether its row is in a bulk range.
    pub(super) fn keys(&self) -> impl Iterator<Item = (i64, bool)> {
        self.0.iter().flat_map(|&(first, last, in_range)| (first..=last).map(move |key| (key, in_range)))
    }
}

impl Acts {
    /// Reserves keys for a batch that may go into bulk ranges. `None` if it may not: then rows get their keys and are claimed one by one.
    pub(super) async fn reserve_keys(&self, client: &Transaction<'_>, items: &[Value], names: &[&String]) -> Result<Option<Reserved>> {
        let Some(ranges) = self.ranges.as_ref().filter(|s| items.len() >= s.least) else { return Ok(None) };
        if names.iter().any(|n| ranges.apart.contains(n)) {
            return Ok(None);
        }
        let allowed = format!(
            "select coalesce(has_function_privilege(to_regprocedure('gleaner.reserve_keys_{0}(integer)'), 'execute')
                    and has_function_privilege(to_regprocedure('gleaner.register_range_{0}(bigint[], bigint[])'), 'execute')
                    and has_column_privilege($1, $2, 'insert') and has_column_privilege($1, $3, 'insert'), false)",
            self.name
        );
        let columns = [(&self.table as _, Type::TEXT), (&ranges.key as _, Type::TEXT), (&ranges.lease as _, Type::TEXT)];
        let rows = self.query(client, "enqueue by copy", &allowed, &columns).await?;
        if !rows.first().is_some_and(|row| row.get(0)) {
            return Ok(None);
        }
        let count = i32::try_from(items.len()).unwrap_or(i32::MAX);
        let sql = format!("select first, last from gleaner.reserve_keys_{}($1)", self.name);
        // Compares the items while the database reserves the keys.
        let runs = async {
            let alike = |a: &Value, b: &Value| ranges.alike.iter().all(|column| a.get(column) == b.get(column));
            items.chunk_by(alike).map(<[_]>::len).collect::<Vec<_>>()
        };
        let params = [(&count as _, Type::INT4)];
        let (rows, runs) = futures_util::future::join(self.query(client, "enqueue by copy", &sql, &params), runs).await;
        let pieces: Vec<(i64, i64)> = rows?.iter().map(|row| (row.get(0), row.get(1))).collect();
        if pieces.is_empty() {
            return Ok(None);
        }
        Ok(Some(Reserved::cut(&pieces, &runs, ranges.least)))
    }

    /// Registers the bulk ranges of what was just enqueued.
    pub(super) async fn register_ranges(&self, client: &Transaction<'_>, reserved: &Reserved) -> Result<()> {
        let (first, last): (Vec<i64>, Vec<i64>) =
            reserved.0.iter().filter(|(.., in_range)| *in_range).map(|(first, last, _)| (*first, *last)).unzip();
        let sql = format!("select gleaner.register_range_{}($1, $2)", self.name);
        self.query(client, "enqueue by copy", &sql, &[(&first, Type::INT8_ARRAY), (&last, Type::INT8_ARRAY)]).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_one_key_and_only_long_runs_make_ranges() {
        let reserved = Reserved::cut(&[(1, 2500), (3000, 3009)], &[2005, 3, 502], 64);
        assert_eq!(
            reserved.0,
            [(1, 1000, true), (1001, 2000, true), (2001, 2005, false), (2006, 2008, false), (2009, 2500, true), (3000, 3009, false)]
        );
        assert_eq!(reserved.keys().count(), 2510);
    }
}
