//! What acts are asked and what they answer.

use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

/// What an act did to one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was changed.
    Done,
    /// It had been changed before, by the same lease or to the same end.
    Already,
    /// The lease passed to somebody else, or ended. Drop the result; the row is no longer ours.
    Lost,
    /// There is no such row.
    Gone,
}

impl Outcome {
    pub(super) fn parse(word: &str) -> Self {
        match word {
            "done" => Self::Done,
            "already" => Self::Already,
            "lost" => Self::Lost,
            _ => Self::Gone,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Already => "already",
            Self::Lost => "lost",
            Self::Gone => "gone",
        }
    }
}

/// The answer for one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub key: String,
    pub outcome: Outcome,
    /// The row's status word now; none when the row is gone.
    pub status: Option<String>,
}

/// What became of an enqueued item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enqueued {
    pub key: String,
    /// `enqueued`, `standing` (a waiting row has the same unique key) or `replaced`.
    pub outcome: String,
}

/// What to do when a waiting row has the same unique key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// The row that waits stands.
    #[default]
    Skip,
    /// It takes the new values.
    Replace,
}

/// A claimed row.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The key, as text.
    pub key: String,
    pub lease: i64,
    pub kind: Option<String>,
    pub owner: Option<String>,
    /// Failures so far.
    pub attempts: i32,
    /// The declared payload column, or the whole row.
    pub payload: Value,
    /// What earlier holders left in the result column: finished stages to resume behind.
    pub partial: Option<Value>,
    /// How long the lease lasts without progress, by the database's clock.
    pub lease_for: Duration,
    /// How long progress can extend it at most.
    pub deadline_in: Duration,
}

/// What to claim. Start from [`Claim::by`].
#[derive(Debug, Clone)]
pub struct Claim {
    pub agent: String,
    pub limit: i32,
    pub owner: Option<String>,
    /// Only these kinds; all of them when none are named.
    pub kinds: Option<Vec<String>>,
    /// Repeating a claim with the same id returns the same rows: for when the answer was lost.
    pub request: Option<Uuid>,
    /// That id was never sent before, so that nothing can have been given for it: a server may answer from memory that there is nothing.
    pub first: bool,
    /// The work begins at once: from now on a lost lease counts.
    pub started: bool,
    pub hold: Option<Duration>,
}

impl Claim {
    pub fn by(agent: impl Into<String>) -> Self {
        Self { agent: agent.into(), limit: 1, owner: None, kinds: None, request: None, first: false, started: false, hold: None }
    }

    #[must_use]
    pub fn limit(mut self, limit: i32) -> Self {
        self.limit = limit;
        self
    }

    #[must_use]
    pub fn owner(mut self, owner: impl ToString) -> Self {
        self.owner = Some(owner.to_string());
        self
    }

    #[must_use]
    pub fn kinds<S: Into<String>>(mut self, kinds: impl IntoIterator<Item = S>) -> Self {
        self.kinds = Some(kinds.into_iter().map(Into::into).collect());
        self
    }

    #[must_use]
    pub fn started(mut self) -> Self {
        self.started = true;
        self
    }
}

/// What a claim brought.
#[derive(Debug, Clone, Default)]
pub struct Claimed {
    pub items: Vec<Item>,
    /// When nothing was claimed: how long until something is due. None when nothing waits at all.
    pub next_due_in: Option<Duration>,
}

/// How much a claim could find now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    pub count: u64,
    /// Not all was counted: there may be more.
    pub capped: bool,
}

/// Why work failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    pub category: String,
    pub retryable: bool,
    /// Instead of the declared back-off.
    pub retry_in: Option<Duration>,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), category: "Error".into(), retryable: true, retry_in: None }
    }

    #[must_use]
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.category = category.into();
        self
    }

    /// Trying again makes no sense.
    #[must_use]
    pub fn for_good(mut self) -> Self {
        self.retryable = false;
        self
    }
}
