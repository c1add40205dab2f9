//! Writes what is known to the database, in one statement for all devices.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gleaner::{Error, Pool, Result};
use serde_json::Value;
use tokio::time::MissedTickBehavior;
use tokio_postgres::types::Type;

use super::Nodes;

impl Nodes {
    /// Writes what has changed since the last write, and marks devices offline that have been silent for two minutes.
    /// Returns whether there was anything to do. A server that gets no requests for work writes nothing.
    pub async fn write(&self, pool: &Pool) -> Result<bool> {
        self.shared.rounds.fetch_add(1, Ordering::Relaxed);
        let Some(mut news) = self.ledger().news(Instant::now()) else { return Ok(false) };
        let rows = Value::Array(std::mem::take(&mut news.rows));
        self.shared.statements.fetch_add(1, Ordering::Relaxed);
        let written = record(pool, &rows).await;
        let mut ledger = self.ledger();
        match written {
            Ok(next) => ledger.written(next, Instant::now()),
            Err(error) => {
                ledger.not_written(news, Instant::now());
                return Err(error);
            }
        }
        Ok(true)
    }
}

async fn record(pool: &Pool, rows: &Value) -> Result<Option<Duration>> {
    let client = pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
    let answer = client.query_typed("select gleaner.record_nodes($1)", &[(rows, Type::JSONB)]).await;
    let answer = answer.map_err(Error::doing("write down which devices work"))?;
    let next: Option<f64> = answer.first().and_then(|row| row.get(0));
    Ok(next.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
}

/// Writes to the database at this interval, for as long as the server runs.
pub async fn keep_writing(nodes: Nodes, pool: Pool, every: Duration) {
    let mut minute = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
    minute.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        minute.tick().await;
        if let Err(error) = nodes.write(&pool).await {
            tracing::debug!(%error, "which devices work stays in memory");
        }
    }
}
