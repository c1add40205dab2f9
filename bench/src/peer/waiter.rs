//! A consumer of pgmq that waits for messages, by pgmq's own poll inside the server.

use std::time::Instant;

use anyhow::Result;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::{QUEUE, VISIBILITY_SECONDS};

/// A tenth of pgmq's default: what its users set for low latency.
pub(crate) const POLL_MILLISECONDS: i32 = 10;

/// Sends the number in each message to `picked` as it comes, until stopped.
pub(crate) async fn wait(url: &str, picked: &mpsc::UnboundedSender<(u64, Instant)>, stopped: watch::Receiver<bool>) -> Result<()> {
    let client = gleaner::connect(url).await?;
    let read = client.prepare("select msg_id, message from pgmq.read_with_poll($1, $2, 100, 1, $3)").await?;
    let delete = client.prepare("select count(*) from pgmq.delete($1, $2::bigint[])").await?;
    while !*stopped.borrow() {
        let rows = client.query(&read, &[&QUEUE, &VISIBILITY_SECONDS, &POLL_MILLISECONDS]).await?;
        let at = Instant::now();
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        for row in &rows {
            // The receiver is dropped when it has everything.
            let _ = picked.send((row.get::<_, Value>(1)["n"].as_u64().unwrap_or_default(), at));
        }
        if !ids.is_empty() {
            client.query_one(&delete, &[&QUEUE, &ids]).await?;
        }
    }
    Ok(())
}
