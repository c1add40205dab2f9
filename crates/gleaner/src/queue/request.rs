//! The arguments of acts.

use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

/// A row and the lease under which it is held. Every act of a holder takes one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Held {
    /// The key, as text.
    pub key: String,
    /// The lease from the claim.
    pub lease: i64,
}

impl Held {
    /// The row `key`, held under `lease`.
    pub fn new(key: impl Into<String>, lease: i64) -> Self {
        Self { key: key.into(), lease }
    }
}

/// What to claim. Start from [`Claim::by`].
#[derive(Debug, Clone)]
pub struct Claim {
    /// Stored as the holder of the rows. Each process uses its own.
    pub agent: String,
    /// The most rows to claim.
    pub limit: i32,
    /// The owner whose rows come first.
    pub owner: Option<String>,
    /// Only these kinds; all of them when none are named.
    pub kinds: Option<Vec<String>>,
    /// Repeating a claim with the same id returns the same rows, in case the answer was lost.
    pub request: Option<Uuid>,
    /// The id was never sent before, so no rows can have been claimed with it: a server may answer from memory that there is nothing.
    pub first: bool,
    /// The work starts at once: from now on a lost lease counts.
    pub started: bool,
    /// How long the lease lasts without progress. Defaults to the declared hold.
    pub hold: Option<Duration>,
    /// Also rows that wait and become due within this time; the holder waits for the rest of it. A server in between ignores it.
    pub early: Duration,
}

impl Claim {
    /// One row for `agent`, of any kind.
    pub fn by(agent: impl Into<String>) -> Self {
        let agent = agent.into();
        Self { agent, limit: 1, owner: None, kinds: None, request: None, first: false, started: false, hold: None, early: Duration::ZERO }
    }

    /// Claims at most this many rows.
    #[must_use]
    pub fn limit(mut self, limit: i32) -> Self {
        self.limit = limit;
        self
    }

    /// Rows of this owner first.
    #[must_use]
    pub fn owner(mut self, owner: impl ToString) -> Self {
        self.owner = Some(owner.to_string());
        self
    }

    /// Only rows of these kinds.
    #[must_use]
    pub fn kinds<S: Into<String>>(mut self, kinds: impl IntoIterator<Item = S>) -> Self {
        self.kinds = Some(kinds.into_iter().map(Into::into).collect());
        self
    }

    /// The work starts at once: from now on a lost lease counts.
    #[must_use]
    pub fn started(mut self) -> Self {
        self.started = true;
        self
    }
}

/// Finished work, with its result if it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// The row.
    pub held: Held,
    /// The result, as it is stored.
    pub result: Option<Value>,
}

impl Completion {
    /// The row is done, with this result.
    pub fn new(held: Held, result: Option<Value>) -> Self {
        Self { held, result }
    }
}

/// Extends the lease, with progress to show. The default shows nothing and only extends the lease.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// What is being done, for people.
    pub stage: Option<String>,
    /// How much of it is done, from 0 to 100.
    pub percent: Option<f64>,
    /// Results so far, from which a later holder can resume.
    pub partial: Option<Value>,
    /// How long the lease is extended by: what the claim asked for. Defaults to the declared hold.
    pub hold: Option<Duration>,
}

impl Progress {
    /// What is being done now.
    pub fn stage(stage: impl Into<String>) -> Self {
        Self { stage: Some(stage.into()), ..Self::default() }
    }

    /// How much of it is done, from 0 to 100.
    #[must_use]
    pub fn percent(mut self, percent: f64) -> Self {
        self.percent = Some(percent);
        self
    }

    /// Results so far, from which a later holder can resume.
    #[must_use]
    pub fn partial(mut self, partial: Value) -> Self {
        self.partial = Some(partial);
        self
    }

    /// How long the lease is extended by.
    #[must_use]
    pub fn hold(mut self, hold: Option<Duration>) -> Self {
        self.hold = hold;
        self
    }
}

/// Why work failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What failed, for people.
    pub message: String,
    /// One word that groups similar failures, such as `Timeout`.
    pub category: String,
    /// Whether the work is retried.
    pub retryable: bool,
    /// The delay before the retry, instead of the declared back-off.
    pub retry_in: Option<Duration>,
}

impl Failure {
    /// A failure that is retried, with the category `Error`.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), category: "Error".into(), retryable: true, retry_in: None }
    }

    /// One word that groups similar failures.
    #[must_use]
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.category = category.into();
        self
    }

    /// A retry makes no sense.
    #[must_use]
    pub fn for_good(mut self) -> Self {
        self.retryable = false;
        self
    }
}

/// What to do when a waiting row has the same unique key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// Keep the waiting row.
    #[default]
    Skip,
    /// Give the waiting row the new values.
    Replace,
}
