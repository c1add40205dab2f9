//! Items from a file, one JSON value per line: any number, in one transaction, by COPY where the lines allow it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use gleaner::queue::OnDuplicate;
use gleaner::{Acts, Error};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

use super::shape::Shape;
use crate::App;
use crate::output::{DIM, paint};

/// Lines sent at once, by COPY. Below the second number a call of the SQL function is no slower.
const BATCH: usize = 5000;
const WORTH_A_COPY: usize = 100;

/// Returns how many were enqueued, existed already, or were replaced.
pub(super) async fn enqueue(
    app: &App,
    client: &mut Client,
    acts: &Acts,
    shape: &Shape,
    path: &Path,
    on_duplicate: OnDuplicate,
) -> Result<BTreeMap<&'static str, u64>> {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let input: Box<dyn AsyncRead + Unpin> = if path == Path::new("-") {
        Box::new(tokio::io::stdin())
    } else {
        Box::new(tokio::fs::File::open(path).await.with_context(|| format!("open {name}"))?)
    };
    let mut lines = BufReader::new(input).lines();
    let mut counts = BTreeMap::from([("enqueued", 0), ("standing", 0), ("replaced", 0)]);
    let tx = client.transaction().await.map_err(Error::doing("begin"))?;
    let may_copy = on_duplicate == OnDuplicate::Skip && acts.declaration().tenant.is_none() && may_insert(&tx, acts.table()).await?;
    let (mut number, mut batch) = (0u64, Vec::with_capacity(BATCH));
    loop {
        let line = lines.next_line().await.with_context(|| format!("read {name}"))?;
        if let Some(line) = &line {
            number += 1;
            if line.trim().is_empty() {
                continue;
            }
            let wrong = || format!("line {number} of {name}; nothing was enqueued");
            let value = serde_json::from_str::<Value>(line).with_context(wrong)?;
            batch.push(shape.item(value).with_context(wrong)?);
        }
        if batch.len() == BATCH || line.is_none() && !batch.is_empty() {
            let wrong = || format!("up to line {number} of {name}; nothing was enqueued");
            if may_copy && batch.len() >= WORTH_A_COPY && alike(&batch, shape.unique.as_deref()) {
                *counts.entry("enqueued").or_default() += acts.enqueue_copy(&tx, &batch).await.with_context(wrong)?;
            } else {
                for one in acts.enqueue(&tx, &batch, on_duplicate).await.with_context(wrong)? {
                    let outcome = ["standing", "replaced"].into_iter().find(|word| *word == one.outcome).unwrap_or("enqueued");
                    *counts.entry(outcome).or_default() += 1;
                }
            }
            batch.clear();
            if number.is_multiple_of(20 * BATCH as u64) {
                app.out.note(paint(DIM, format!("{number} lines so far")));
            }
        }
        if line.is_none() {
            break;
        }
    }
    tx.commit().await.map_err(Error::doing("commit"))?;
    Ok(counts)
}

/// COPY writes the table with the caller's rights; the SQL function writes it with the engine's.
async fn may_insert(tx: &Transaction<'_>, table: &str) -> Result<bool> {
    let rows = tx
        .query_typed("select has_table_privilege($1, 'insert')", &[(&table, Type::TEXT)])
        .await
        .map_err(Error::doing("look whether the table may be written"))?;
    Ok(rows[0].get(0))
}

/// COPY needs lines with the same keys, and cannot check whether an item with the same unique key is waiting.
fn alike(batch: &[Value], unique: Option<&str>) -> bool {
    let keys = |item: &Value| item.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    let first = keys(&batch[0]);
    !first.is_empty() && unique.is_none_or(|u| !first.iter().any(|key| key == u)) && batch.iter().all(|item| keys(item) == first)
}
