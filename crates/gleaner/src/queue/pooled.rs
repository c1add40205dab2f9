//! The acts of a queue, on connections of its pool.

use std::time::Duration;

use serde_json::Value;

use super::Queue;
use super::answer::{Answer, Claimed, Enqueued, Waiting};
use super::request::{Claim, Completion, Failure, Held, OnDuplicate, Progress};
use crate::error::{Error, Result};

/// Calls an act on a pooled connection, and retries after a deadlock or a serialization failure.
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
    /// Counts the rows that a claim like this one could take now. It reads no more than ten thousand rows; [`Waiting::capped`]
    /// says that there may be more.
    ///
    /// ```
    /// # use gleaner::Claim;
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// let waiting = queue.waiting(&Claim::by("me").kinds(["letter"])).await?;
    /// println!("{} letters to write", waiting.count);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn waiting(&self, claim: &Claim) -> Result<Waiting> {
        pooled!(self, acts, client => acts.waiting(&**client, claim))
    }

    /// Enqueues items and notifies waiting workers. An item is an object whose keys are columns of the table; columns that it
    /// leaves out get their default. If a waiting row has the same unique key, that row is kept
    /// ([`Acts::enqueue`](super::Acts::enqueue) can replace it). Returns one answer per item, in their order. For typed payloads
    /// see [`Self::enqueue_job`].
    ///
    /// Calls of one program that come at the same time share a statement and its commit; each still gets its own answer or error.
    /// Calls with a unique key are not combined: they may have to wait for another transaction.
    ///
    /// ```
    /// # use serde_json::json;
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// let enqueued = queue.enqueue(&[json!({"kind": "letter", "payload": {"to": "Ada"}, "priority": 1})]).await?;
    /// println!("{} {}", enqueued[0].key, enqueued[0].outcome);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enqueue(&self, items: &[Value]) -> Result<Vec<Enqueued>> {
        self.combiner.enqueue(self, items).await
    }

    pub(super) async fn enqueue_alone(&self, items: &[Value]) -> Result<Vec<Enqueued>> {
        self.notifying(pooled!(self, acts, client => acts.enqueue(&**client, items, OnDuplicate::Skip)))
    }

    pub(super) async fn enqueue_combined(&self, items: &[Value]) -> Result<Vec<Enqueued>> {
        self.notifying(pooled!(self, acts, client => acts.enqueue_combined(&**client, items)))
    }

    /// Enqueues thousands of items with COPY, in one transaction. All items must have the keys of the first, and unique keys must
    /// not collide. Returns how many were enqueued.
    ///
    /// ```
    /// # use serde_json::json;
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// let items: Vec<_> = (0..10_000).map(|n| json!({"kind": "count", "payload": {"n": n}})).collect();
    /// assert_eq!(queue.enqueue_copy(&items).await?, 10_000);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enqueue_copy(&self, items: &[Value]) -> Result<u64> {
        let mut client = self.client().await?;
        let tx = tokio_postgres::Client::transaction(&mut client).await.map_err(Error::doing("begin"))?;
        let count = self.acts.enqueue_copy(&tx, items).await?;
        tx.commit().await.map_err(Error::doing("commit"))?;
        self.notify();
        Ok(count)
    }

    /// Claims up to [`Claim::limit`] rows under a lease: first those of the claim's owner, then those without an owner, then
    /// those that other owners left waiting too long. The lease lasts for the declared hold, and [`Self::progress`] extends it.
    /// An empty answer says how long it is until a row is due.
    ///
    /// ```
    /// # use gleaner::Claim;
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// let claimed = queue.claim(&Claim::by("me").limit(10).kinds(["letter"]).started()).await?;
    /// for item in &claimed.items {
    ///     println!("{}: {}", item.key, item.payload);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn claim(&self, claim: &Claim) -> Result<Claimed> {
        pooled!(self, acts, client => acts.claim(&**client, claim))
    }

    /// Which of these rows are certainly no longer held: cancelled, finished or claimed by another agent. Takes no lock and
    /// extends no lease.
    ///
    /// ```
    /// # async fn example(queue: &gleaner::Queue, held: &[gleaner::Held]) -> gleaner::Result<()> {
    /// for lost in queue.ended(held).await? {
    ///     println!("stop working on {}", lost.key);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ended(&self, held: &[Held]) -> Result<Vec<Held>> {
        pooled!(self, acts, client => acts.ended(&**client, held))
    }

    /// Records that work on claimed rows has started. Only needed if the claim did not say so ([`Claim::started`]): a lease that
    /// is lost before the start is not counted.
    ///
    /// ```
    /// # async fn example(queue: &gleaner::Queue, held: &[gleaner::Held]) -> gleaner::Result<()> {
    /// let answers = queue.start(held).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start(&self, held: &[Held]) -> Result<Vec<Answer>> {
        pooled!(self, acts, client => acts.start(&**client, held))
    }

    /// Extends the lease, and stores a stage, a percentage and partial results. Returns the answer and how long the lease lasts
    /// from now. On any outcome other than [`Outcome::Done`](super::Outcome::Done) stop working: the row was cancelled or another
    /// agent holds it.
    ///
    /// ```
    /// # use gleaner::{Outcome, Progress};
    /// # async fn example(queue: &gleaner::Queue, held: &gleaner::Held) -> gleaner::Result<()> {
    /// let (answer, lasts) = queue.progress(held, &Progress::stage("writing").percent(40.0)).await?;
    /// if answer.outcome != Outcome::Done {
    ///     println!("stop working on {}", answer.key);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn progress(&self, held: &Held, progress: &Progress) -> Result<(Answer, Duration)> {
        pooled!(self, acts, client => acts.progress(&**client, held, progress))
    }

    /// Marks rows as done and stores their results. If the lease was lost, nothing changes, and the answer says so. A completion
    /// may be repeated. Answers are grouped by outcome, not in the order of the rows.
    ///
    /// ```
    /// # use gleaner::{Completion, Outcome}; use serde_json::json;
    /// # async fn example(queue: &gleaner::Queue, item: &gleaner::Item) -> gleaner::Result<()> {
    /// let answers = queue.complete(&[Completion::new(item.held(), Some(json!({"text": "Dear Ada"})))]).await?;
    /// assert_eq!(answers[0].outcome, Outcome::Done);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn complete(&self, done: &[Completion]) -> Result<Vec<Answer>> {
        pooled!(self, acts, client => acts.complete(&**client, done))
    }

    /// Records that the work failed. The row is retried after the declared back-off, or is dead when its attempts are used up or
    /// the failure is [for good](Failure::for_good).
    ///
    /// ```
    /// # use gleaner::Failure;
    /// # async fn example(queue: &gleaner::Queue, item: &gleaner::Item) -> gleaner::Result<()> {
    /// queue.fail(&item.held(), &Failure::new("no such address").category("DataError").for_good()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fail(&self, held: &Held, failure: &Failure) -> Result<Answer> {
        self.notifying(pooled!(self, acts, client => acts.fail(&**client, held, failure)))
    }

    /// Gives rows back, due at once, without counting an attempt. A worker does this with unfinished rows when it stops.
    ///
    /// ```
    /// # async fn example(queue: &gleaner::Queue, held: &[gleaner::Held]) -> gleaner::Result<()> {
    /// queue.release(held).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release(&self, held: &[Held]) -> Result<Vec<Answer>> {
        self.notifying(pooled!(self, acts, client => acts.release(&**client, held)))
    }

    /// Postpones a row without counting an attempt.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # async fn example(queue: &gleaner::Queue, item: &gleaner::Item) -> gleaner::Result<()> {
    /// queue.snooze(&item.held(), Duration::from_secs(600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn snooze(&self, held: &Held, by: Duration) -> Result<Answer> {
        self.notifying(pooled!(self, acts, client => acts.snooze(&**client, held, by)))
    }

    /// Cancels rows, including running ones. Their holders learn of it from the answer to their next act.
    ///
    /// ```
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// for answer in queue.cancel(&["1", "2"], Some("ordered twice")).await? {
    ///     println!("{}: {}", answer.key, answer.outcome.as_str());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel(&self, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>> {
        pooled!(self, acts, client => acts.cancel(&**client, keys, reason))
    }

    /// Cancels every unfinished row whose columns have these values.
    ///
    /// ```
    /// # use serde_json::json;
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// queue.cancel_matching(&json!({"kind": "letter"}), Some("the post is closed")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel_matching(&self, matching: &Value, reason: Option<&str>) -> Result<Vec<Answer>> {
        pooled!(self, acts, client => acts.cancel_matching(&**client, matching, reason))
    }

    /// Makes rows due now and resets their counters, including dead, finished and cancelled rows. A running row is taken from its holder.
    ///
    /// ```
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// queue.requeue(&["1"]).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue(&self, keys: &[&str]) -> Result<Vec<Answer>> {
        self.notifying(pooled!(self, acts, client => acts.requeue(&**client, keys)))
    }

    /// Makes rows dead: they are not retried until they are requeued.
    ///
    /// ```
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// queue.bury(&["1"], Some("the customer is gone")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bury(&self, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>> {
        pooled!(self, acts, client => acts.bury(&**client, keys, reason))
    }

    /// Gives rows to another owner, or to none. An error where the queue declares no owners.
    ///
    /// ```
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// queue.assign(&["1"], Some("7")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn assign(&self, keys: &[&str], owner: Option<&str>) -> Result<Vec<Answer>> {
        self.notifying(pooled!(self, acts, client => acts.assign(&**client, keys, owner)))
    }

    /// Sets rows with an expired lease back to the ready status. Only for people who look at the table: claims find such rows
    /// without it. Returns how many.
    ///
    /// ```
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// println!("{} leases had run out", queue.recover().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn recover(&self) -> Result<i32> {
        pooled!(self, acts, client => acts.recover(&**client))
    }

    /// Up to `limit` tenants that have claimable rows, the one that has waited longest first. An error where the queue declares no tenant
    /// column.
    ///
    /// ```
    /// # use gleaner::Claim;
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// for tenant in queue.due_tenants(10).await? {
    ///     let claimed = queue.clone().within(tenant).await?.claim(&Claim::by("me")).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn due_tenants(&self, limit: i32) -> Result<Vec<String>> {
        pooled!(self, acts, client => acts.due_tenants(&**client, limit))
    }

    /// Why an agent of `owner` can or cannot claim a row, and when it can. `None` when there is no such row.
    ///
    /// ```
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// if let Some(reasons) = queue.explain("1", None).await? {
    ///     println!("{reasons}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn explain(&self, key: &str, owner: Option<&str>) -> Result<Option<Value>> {
        pooled!(self, acts, client => acts.explain(&**client, key, owner))
    }

    /// Deletes finished rows that ended longer ago than `older_than`, or than the declared retention. Returns how many.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # async fn example(queue: &gleaner::Queue) -> gleaner::Result<()> {
    /// let deleted = queue.prune(Some(Duration::from_secs(7 * 24 * 3600))).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn prune(&self, older_than: Option<Duration>) -> Result<u64> {
        pooled!(self, acts, client => acts.prune(&**client, older_than))
    }

    /// Notifies after an act that made rows ready. An act that failed changed nothing.
    fn notifying<T>(&self, done: Result<T>) -> Result<T> {
        if done.is_ok() {
            self.notify();
        }
        done
    }
}
