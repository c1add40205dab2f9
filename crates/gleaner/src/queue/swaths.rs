//! What is put in together lies together: runs of items that are alike, under keys that follow each other.

use serde_json::Value;
use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

use super::acts::Acts;
use crate::error::Result;
use crate::plan::Plan;

/// How many rows a swath has at most. Claims that come at once take from different ones, so it is not the whole batch.
const LENGTH: usize = 1000;

/// By what a queue tells which items lie together.
#[derive(Debug, Clone)]
pub(super) struct Swaths {
    key: String,
    lease: String,
    /// Fewer rows than this are in no sheaf, and so in no swath.
    least: usize,
    /// Columns that may differ from row to row, and must not within a swath.
    alike: Vec<String>,
    /// Columns that nobody may write whose rows are to lie in one: times, leases and counts are the queue's own to set there, and a unique
    /// key is free again while its row is worked.
    apart: Vec<String>,
}

impl Swaths {
    /// None where the queue has none: without sheaves, or where the adapter stamps every row that is put in.
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        let d = &plan.declaration;
        if d.adapt_inserts {
            return None;
        }
        let least = usize::try_from(d.sheaf?).ok()?;
        let lease = plan.context["col_names"]["lease"].as_str()?.to_owned();
        let apart =
            plan.columns.iter().map(|c| &c.name).chain([&plan.key, &d.status.column]).chain(&d.due).chain(&d.unique).cloned().collect();
        let alike = d.kind.iter().chain(d.priority.as_ref().map(|p| &p.column)).cloned().collect();
        Some(Self { key: plan.key.clone(), lease, least, alike, apart })
    }
}

/// The keys of a batch, in its order: pieces that follow each other, and whether they are to lie in a swath.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Laid(Vec<(i64, i64, bool)>);

impl Laid {
    /// Cuts the numbered `pieces` where a run ends. What is too short for a sheaf stands alone.
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

    /// Every key of the batch, and whether its row lies in a swath.
    pub(super) fn keys(&self) -> impl Iterator<Item = (i64, bool)> {
        self.0.iter().flat_map(|&(first, last, lies)| (first..=last).map(move |key| (key, lies)))
    }
}

impl Acts {
    /// Keys for a batch that may lie in swaths; none where it may not, and then rows are numbered and found one by one.
    pub(super) async fn number(&self, client: &Transaction<'_>, items: &[Value], names: &[&String]) -> Result<Option<Laid>> {
        let Some(swaths) = self.swaths.as_ref().filter(|s| items.len() >= s.least) else { return Ok(None) };
        if names.iter().any(|n| swaths.apart.contains(n)) {
            return Ok(None);
        }
        let allowed = format!(
            "select coalesce(has_function_privilege(to_regprocedure('gleaner.number_{0}(integer)'), 'execute')
                    and has_function_privilege(to_regprocedure('gleaner.lay_{0}(bigint[], bigint[])'), 'execute')
                    and has_column_privilege($1, $2, 'insert') and has_column_privilege($1, $3, 'insert'), false)",
            self.name
        );
        let columns = [(&self.table as _, Type::TEXT), (&swaths.key as _, Type::TEXT), (&swaths.lease as _, Type::TEXT)];
        let rows = self.query(client, "enqueue by copy", &allowed, &columns).await?;
        if !rows.first().is_some_and(|row| row.get(0)) {
            return Ok(None);
        }
        let count = i32::try_from(items.len()).unwrap_or(i32::MAX);
        let sql = format!("select first, last from gleaner.number_{}($1)", self.name);
        // Looked through while the database draws the keys.
        let runs = async {
            let alike = |a: &Value, b: &Value| swaths.alike.iter().all(|column| a.get(column) == b.get(column));
            items.chunk_by(alike).map(<[_]>::len).collect::<Vec<_>>()
        };
        let params = [(&count as _, Type::INT4)];
        let (rows, runs) = futures_util::future::join(self.query(client, "enqueue by copy", &sql, &params), runs).await;
        let pieces: Vec<(i64, i64)> = rows?.iter().map(|row| (row.get(0), row.get(1))).collect();
        if pieces.is_empty() {
            return Ok(None);
        }
        Ok(Some(Laid::cut(&pieces, &runs, swaths.least)))
    }

    /// Lays what was just put in.
    pub(super) async fn lay(&self, client: &Transaction<'_>, laid: &Laid) -> Result<()> {
        let (first, last): (Vec<i64>, Vec<i64>) = laid.0.iter().filter(|(.., lies)| *lies).map(|(first, last, _)| (*first, *last)).unzip();
        let sql = format!("select gleaner.lay_{}($1, $2)", self.name);
        self.query(client, "enqueue by copy", &sql, &[(&first, Type::INT8_ARRAY), (&last, Type::INT8_ARRAY)]).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_one_key_and_only_long_runs_lie() {
        let laid = Laid::cut(&[(1, 2500), (3000, 3009)], &[2005, 3, 502], 64);
        assert_eq!(
            laid.0,
            [(1, 1000, true), (1001, 2000, true), (2001, 2005, false), (2006, 2008, false), (2009, 2500, true), (3000, 3009, false)]
        );
        assert_eq!(laid.keys().count(), 2510);
    }
}
