//! pgmq's loop: reads 500 messages and finishes them while the next read is running.

use anyhow::Result;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::{QUEUE, VISIBILITY_SECONDS};
use crate::drain::BATCH;
use crate::raw::Finish;

/// One connection with prepared statements that reads and finishes messages.
#[derive(Debug)]
pub(crate) struct Reader {
    client: Client,
    read: Statement,
    end: Statement,
}

impl Reader {
    pub(crate) async fn connect(url: &str, finish: Finish) -> Result<Self> {
        let client = gleaner::connect(url).await?;
        let read = client.prepare("select msg_id, message from pgmq.read($1, $2, $3)").await?;
        let end = client
            .prepare(match finish {
                Finish::Delete => "select count(*) from pgmq.delete($1, $2::bigint[])",
                Finish::Keep => "select count(*) from pgmq.archive($1, $2::bigint[])",
            })
            .await?;
        Ok(Self { client, read, end })
    }

    /// Runs until no message is left, or `goes_on` returns false for the number of finished messages; returns that number.
    pub(crate) async fn drain(&self, mut goes_on: impl FnMut(u64) -> bool) -> Result<u64> {
        let ids = |rows: Vec<Row>| rows.iter().map(|r| r.get(0)).collect::<Vec<i64>>();
        let claim: [&(dyn ToSql + Sync); 3] = [&QUEUE, &VISIBILITY_SECONDS, &BATCH];
        let mut done = 0;
        let mut held = ids(self.client.query(&self.read, &claim).await?);
        while !held.is_empty() {
            let finished: [&(dyn ToSql + Sync); 2] = [&QUEUE, &held];
            let ending = self.client.query_one(&self.end, &finished);
            // The last batch read is finished too, so that no message stays invisible.
            if !goes_on(done + held.len() as u64) {
                return Ok(done + ending.await?.get::<_, i64>(0) as u64);
            }
            // As in our own loop: the next read is running while this batch is finished.
            let (ended, next) = tokio::try_join!(ending, self.client.query(&self.read, &claim))?;
            done += ended.get::<_, i64>(0) as u64;
            held = ids(next);
        }
        Ok(done)
    }
}
