//! The acts as methods, named after the SQL functions.
//!
//! Every act exists twice: on [`Queue`], which takes a connection from its pool and retries after a deadlock, and on [`Acts`],
//! which runs on any connection or transaction of the caller, so that enqueue and complete commit together with the data they
//! belong to.
//!
//! Acts of [`Queue`] that make rows due notify waiting workers, after their commit and without blocking the caller. After acts of
//! [`Acts`], call [`Queue::notify`] unless a trigger notifies.

mod acts;
mod answer;
mod claiming;
mod combiner;
mod copy;
mod enqueueing;
mod jobs;
mod keys;
mod pooled;
mod ranges;
mod request;

use std::sync::Arc;

pub use self::acts::Acts;
pub use self::answer::{Answer, Claimed, Enqueued, Item, Outcome, Waiting};
use self::combiner::Combiner;
pub use self::jobs::Payload;
pub use self::request::{Claim, Completion, Failure, Held, OnDuplicate, Progress};
use crate::connect::Pool;
use crate::error::{Error, Result};
use crate::notify::Notifier;

/// A queue with its own connection pool.
#[derive(Debug, Clone)]
pub struct Queue {
    pool: Pool,
    acts: Arc<Acts>,
    /// Notifies workers after acts that make rows due; `None` if a trigger does.
    notifier: Option<Notifier>,
    combiner: Arc<Combiner>,
}

impl Queue {
    /// Opens the queue `name`, as the registry of the database declares it.
    ///
    /// ```
    /// # async fn example() -> gleaner::Result<()> {
    /// let pool = gleaner::pool("postgres://localhost/shop", 4)?;
    /// let queue = gleaner::Queue::open(&pool, "jobs").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open(pool: &Pool, name: &str) -> Result<Self> {
        let client = pool.get().await.map_err(Error::from)?;
        let acts = Acts::of(&**client, name).await?;
        drop(client);
        let notifier = (!acts.is_notified()).then(|| Notifier::new(pool.clone()));
        Ok(Self::with(pool.clone(), acts, notifier))
    }

    /// The same queue within one tenant, if its declaration names a tenant column: every act then applies to rows of that tenant only.
    pub async fn within(self, tenant: impl Into<String>) -> Result<Self> {
        let client = self.client().await?;
        let acts = Acts::clone(&self.acts).within(&**client, tenant).await?;
        Ok(Self::with(self.pool, acts, self.notifier))
    }

    fn with(pool: Pool, acts: Acts, notifier: Option<Notifier>) -> Self {
        let combiner = Arc::new(Combiner::new(pool.status().max_size));
        Self { pool, acts: Arc::new(acts), notifier, combiner }
    }

    /// The acts, for the caller's own connection or transaction.
    ///
    /// ```
    /// # use serde_json::json;
    /// # async fn example(queue: &gleaner::Queue, client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use gleaner::queue::OnDuplicate;
    ///
    /// let transaction = client.transaction().await?;
    /// transaction.execute("insert into orders (customer) values ('Ada')", &[]).await?;
    /// queue.acts().enqueue(&transaction, &[json!({"kind": "confirm"})], OnDuplicate::Skip).await?;
    /// transaction.commit().await?;
    /// queue.notify();
    /// # Ok(())
    /// # }
    /// ```
    pub fn acts(&self) -> &Acts {
        &self.acts
    }

    /// The pool from which the acts take their connections.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The name, as used in the names of the SQL functions.
    pub fn name(&self) -> &str {
        self.acts.name()
    }

    /// Notifies waiting workers of new work that was not written by this queue's methods. Not needed if a trigger notifies
    /// ([`Acts::is_notified`]). Returns at once; call it after the commit.
    pub fn notify(&self) {
        if let Some(notifier) = &self.notifier {
            notifier.notify(self.name());
        }
    }

    async fn client(&self) -> Result<deadpool_postgres::Object> {
        self.pool.get().await.map_err(Error::from)
    }
}
