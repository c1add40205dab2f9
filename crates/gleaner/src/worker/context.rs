//! What a handler knows of its item, and what it can do about it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio_postgres::Transaction;

use super::control::Control;
use crate::error::Result;
use crate::queue::{Failure, Item, Outcome};
use crate::transport::Transport;

/// The way from a handler back to its item. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    pub(super) queue: Arc<dyn Transport>,
    pub(super) key: String,
    pub(super) lease: i64,
    pub(super) ended: watch::Receiver<bool>,
    pub(super) control: Control,
}

impl Context {
    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn lease(&self) -> i64 {
        self.lease
    }

    /// The queue's name.
    pub fn queue(&self) -> &str {
        self.queue.queue()
    }

    /// The way to the queue, for acts of one's own.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.queue
    }

    /// Shows life, stage and partial results. Lost means: stop, the row is somebody else's or cancelled.
    pub async fn progress(&self, stage: &str, percent: Option<f64>, partial: Option<&Value>) -> Result<Outcome> {
        self.control.progressed(self.queue(), &self.key, self.lease, stage, percent);
        let (answer, _) = self.queue.progress(&self.key, self.lease, Some(stage), percent, partial).await?;
        Ok(answer.outcome)
    }

    /// Resolves when the row was cancelled or taken away: the result will not count.
    pub async fn ended(&self) {
        if self.ended.clone().wait_for(|ended| *ended).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether the row was cancelled or taken away, as far as is known.
    pub fn is_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Completes the item in the caller's transaction: the work takes effect with its completion, or not at all.
    ///
    /// Commit, and return what this returned; the runtime then does not complete the item again. An error means that the item is
    /// no longer ours, or that this way to the queue has no transactions: return it, and the transaction is rolled back as it is
    /// dropped. Call it last: until the commit the row is locked, and the worker cannot show life for it.
    pub async fn complete_in(&self, transaction: &Transaction<'_>, result: impl Serialize) -> Result<Completed, Failure> {
        let Some(acts) = self.queue.acts() else {
            return Err(Failure::new("only a worker that speaks to the database directly can complete in a transaction"));
        };
        let result = serde_json::to_value(result)
            .map_err(|error| Failure::new(format!("the result cannot be JSON: {error}")).category("ValidationError").for_good())?;
        let done = [(self.key.as_str(), self.lease, (!result.is_null()).then_some(result))];
        let answers = acts.complete(transaction, &done).await?;
        match answers.first().map(|answer| answer.outcome) {
            Some(Outcome::Done | Outcome::Already) => Ok(Completed(())),
            _ => Err(Failure::new("the lease was lost before the transaction could complete the item").category("Lost")),
        }
    }
}

/// Says that the handler has completed the item itself. Had from [`Context::complete_in`] only.
#[must_use = "return it from the handler after the commit"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed(pub(super) ());

/// An item with a payload of type `P`, for the handler of its kind.
#[derive(Debug, Clone)]
pub struct Job<P> {
    pub payload: P,
    /// The item as it was claimed, with the payload as JSON.
    pub item: Item,
    pub context: Context,
}

impl<P> Job<P> {
    pub fn key(&self) -> &str {
        self.context.key()
    }

    pub fn lease(&self) -> i64 {
        self.context.lease()
    }

    pub fn queue(&self) -> &str {
        self.context.queue()
    }

    pub fn kind(&self) -> Option<&str> {
        self.item.kind.as_deref()
    }

    /// What earlier holders left: finished stages to resume behind.
    pub fn partial(&self) -> Option<&Value> {
        self.item.partial.as_ref()
    }

    /// See [`Context::progress`]. An error is a failure here, so that a handler can use `?`.
    pub async fn progress(&self, stage: &str, percent: Option<f64>, partial: Option<&Value>) -> Result<Outcome, Failure> {
        Ok(self.context.progress(stage, percent, partial).await?)
    }

    /// See [`Context::ended`].
    pub async fn ended(&self) {
        self.context.ended().await;
    }

    /// See [`Context::complete_in`].
    pub async fn complete_in(&self, transaction: &Transaction<'_>, result: impl Serialize) -> Result<Completed, Failure> {
        self.context.complete_in(transaction, result).await
    }
}
