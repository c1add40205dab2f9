//! What a handler knows about its item, and what it can do with it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use tokio_postgres::Transaction;

use super::held::Row;
use crate::error::Result;
use crate::queue::{Completion, Failure, Held, Item, Outcome, Progress};
use crate::transport::Transport;

/// A handler's access to its item. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    pub(super) queue: Arc<dyn Transport>,
    pub(super) row: Arc<Row>,
}

impl Context {
    /// The item's key, as text.
    pub fn key(&self) -> &str {
        &self.row.held.key
    }

    /// The lease under which the item is held.
    pub fn lease(&self) -> i64 {
        self.row.held.lease
    }

    /// The item's key and lease, for calling acts directly.
    pub fn held(&self) -> &Held {
        &self.row.held
    }

    /// The queue's name.
    pub fn queue(&self) -> &str {
        self.queue.queue()
    }

    /// The connection to the queue, for calling acts directly.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.queue
    }

    /// Renews the lease, and stores a stage and partial results. [`Outcome::Lost`] means: stop, the row was cancelled or another
    /// agent holds it.
    pub async fn progress(&self, stage: &str, percent: Option<f64>, partial: Option<&Value>) -> Result<Outcome> {
        self.row.reports(stage, percent);
        let progress = Progress { stage: Some(stage.to_owned()), percent, partial: partial.cloned(), hold: None };
        let (answer, _) = self.queue.progress(&self.row.held, &progress).await?;
        Ok(answer.outcome)
    }

    /// Resolves when the row was cancelled or taken away: the result will not be stored.
    pub async fn ended(&self) {
        self.row.ended().await;
    }

    /// Whether the row was cancelled or taken away, as far as the worker knows.
    pub fn is_ended(&self) -> bool {
        self.row.is_ended()
    }

    /// Completes the item in the caller's transaction: the work takes effect with its completion, or not at all.
    ///
    /// Commit, and return the value that this returns; the runtime then does not complete the item again. An error means that the
    /// lease is lost, or that this transport has no transactions. Return the error, and the transaction is rolled back when it is
    /// dropped. Call this last: until the commit the row is locked, and the worker cannot extend its lease.
    pub async fn complete_in(&self, transaction: &Transaction<'_>, result: impl Serialize) -> Result<Completed, Failure> {
        let Some(acts) = self.queue.acts() else {
            return Err(Failure::new("only a worker that is connected to the database directly can complete in a transaction"));
        };
        let result = serde_json::to_value(result)
            .map_err(|error| Failure::new(format!("the result cannot be JSON: {error}")).category("ValidationError").for_good())?;
        let done = [Completion::new(self.row.held.clone(), (!result.is_null()).then_some(result))];
        let answers = acts.complete(transaction, &done).await?;
        match answers.first().map(|answer| answer.outcome) {
            Some(Outcome::Done | Outcome::Already) => Ok(Completed(())),
            _ => Err(Failure::new("the lease was lost before the transaction could complete the item").category("Lost")),
        }
    }
}

/// Proof that the handler has completed the item itself. Only [`Context::complete_in`] creates it.
#[must_use = "return it from the handler after the commit"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed(pub(super) ());

/// An item with a payload of type `P`, for the handler of its kind.
#[derive(Debug, Clone)]
pub struct Job<P> {
    /// The payload.
    pub payload: P,
    /// The item as it was claimed, with the payload as JSON.
    pub item: Item,
    /// Access to the item, for acts.
    pub context: Context,
}

impl<P> Job<P> {
    /// The item's key, as text.
    pub fn key(&self) -> &str {
        self.context.key()
    }

    /// The lease under which the item is held.
    pub fn lease(&self) -> i64 {
        self.context.lease()
    }

    /// The queue's name.
    pub fn queue(&self) -> &str {
        self.context.queue()
    }

    /// The item's kind, where the queue has kinds.
    pub fn kind(&self) -> Option<&str> {
        self.item.kind.as_deref()
    }

    /// What earlier holders left: finished stages after which to resume.
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
