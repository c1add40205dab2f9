//! The acts as methods, with the verbs of the SQL functions.
//!
//! Every act exists twice: on [`Queue`], which takes a connection from its pool and tries again after a deadlock, and as a
//! function of [`Acts`], which runs on any connection or transaction of the caller's, so that enqueue and complete commit
//! with the data they belong to.

mod acts;
mod claiming;
mod copy;
mod keys;
mod swaths;
mod words;

use std::time::Duration;

use serde_json::Value;

pub use self::acts::Acts;
pub use self::words::{Answer, Claim, Claimed, Enqueued, Failure, Item, OnDuplicate, Outcome, Waiting};
use crate::connect::Pool;
use crate::error::{Error, Result};

/// A queue with a pool of its own to act through.
#[derive(Debug, Clone)]
pub struct Queue {
    pool: Pool,
    acts: Acts,
}

/// Calls an act on a pooled connection, and again when a deadlock or a lost serialization race says so.
macro_rules! pooled {
    ($self:ident, $acts:ident, $client:ident => $call:expr) => {{
        let $acts = &$self.acts;
        let mut tries = 0;
        loop {
            let $client = $self.client().await?;
            match $call.await {
                Err(error) if tries < 5 && error.code().is_some_and(|c| matches!(c.code(), "40P01" | "40001")) => tries += 1,
                other => break other,
            }
        }
    }};
}

impl Queue {
    pub async fn open(pool: &Pool, name: &str) -> Result<Self> {
        let client = pool.get().await.map_err(Error::from)?;
        let acts = Acts::of(&**client, name).await?;
        drop(client);
        Ok(Self { pool: pool.clone(), acts })
    }

    /// The same queue within one tenant, where its declaration names a tenant column.
    pub async fn within(self, tenant: impl Into<String>) -> Result<Self> {
        let client = self.client().await?;
        let acts = self.acts.within(&**client, tenant).await?;
        Ok(Self { pool: self.pool, acts })
    }

    /// The acts, for a connection or transaction of the caller's.
    pub fn acts(&self) -> &Acts {
        &self.acts
    }

    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    pub fn name(&self) -> &str {
        self.acts.name()
    }

    async fn client(&self) -> Result<deadpool_postgres::Object> {
        self.pool.get().await.map_err(Error::from)
    }

    /// How many rows a claim like this one could take now; see [`Acts::waiting`].
    pub async fn waiting(&self, claim: &Claim) -> Result<Waiting> {
        pooled!(self, acts, client => acts.waiting(&**client, claim))
    }

    pub async fn enqueue(&self, items: &[Value]) -> Result<Vec<Enqueued>> {
        pooled!(self, acts, client => acts.enqueue(&**client, items, OnDuplicate::Skip))
    }

    pub async fn enqueue_copy(&self, items: &[Value]) -> Result<u64> {
        let mut client = self.client().await?;
        let tx = tokio_postgres::Client::transaction(&mut client).await.map_err(Error::doing("begin"))?;
        let count = self.acts.enqueue_copy(&tx, items).await?;
        tx.commit().await.map_err(Error::doing("commit"))?;
        Ok(count)
    }

    pub async fn claim(&self, claim: &Claim) -> Result<Claimed> {
        pooled!(self, acts, client => acts.claim(&**client, claim))
    }

    pub async fn ended(&self, held: &[(&str, i64)]) -> Result<Vec<(String, i64)>> {
        pooled!(self, acts, client => acts.ended(&**client, held))
    }

    pub async fn start(&self, held: &[(&str, i64)]) -> Result<Vec<Answer>> {
        pooled!(self, acts, client => acts.start(&**client, held))
    }

    pub async fn progress(
        &self,
        key: &str,
        lease: i64,
        stage: Option<&str>,
        percent: Option<f64>,
        partial: Option<&Value>,
    ) -> Result<(Answer, Duration)> {
        pooled!(self, acts, client => acts.progress(&**client, key, lease, stage, percent, partial))
    }

    pub async fn complete(&self, done: &[(&str, i64, Option<Value>)]) -> Result<Vec<Answer>> {
        pooled!(self, acts, client => acts.complete(&**client, done))
    }

    pub async fn fail(&self, key: &str, lease: i64, failure: &Failure) -> Result<Answer> {
        pooled!(self, acts, client => acts.fail(&**client, key, lease, failure))
    }

    pub async fn release(&self, held: &[(&str, i64)]) -> Result<Vec<Answer>> {
        pooled!(self, acts, client => acts.release(&**client, held))
    }

    pub async fn snooze(&self, key: &str, lease: i64, by: Duration) -> Result<Answer> {
        pooled!(self, acts, client => acts.snooze(&**client, key, lease, by))
    }

    pub async fn cancel(&self, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>> {
        pooled!(self, acts, client => acts.cancel(&**client, keys, reason))
    }

    pub async fn cancel_matching(&self, matching: &Value, reason: Option<&str>) -> Result<Vec<Answer>> {
        pooled!(self, acts, client => acts.cancel_matching(&**client, matching, reason))
    }

    pub async fn requeue(&self, keys: &[&str]) -> Result<Vec<Answer>> {
        pooled!(self, acts, client => acts.requeue(&**client, keys))
    }

    pub async fn bury(&self, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>> {
        pooled!(self, acts, client => acts.bury(&**client, keys, reason))
    }

    pub async fn assign(&self, keys: &[&str], owner: Option<&str>) -> Result<Vec<Answer>> {
        pooled!(self, acts, client => acts.assign(&**client, keys, owner))
    }

    pub async fn recover(&self) -> Result<i32> {
        pooled!(self, acts, client => acts.recover(&**client))
    }

    pub async fn explain(&self, key: &str, owner: Option<&str>) -> Result<Option<Value>> {
        pooled!(self, acts, client => acts.explain(&**client, key, owner))
    }

    pub async fn prune(&self, older_than: Option<Duration>) -> Result<u64> {
        pooled!(self, acts, client => acts.prune(&**client, older_than))
    }
}
