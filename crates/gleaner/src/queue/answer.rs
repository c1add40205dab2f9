//! The answers of acts.

use std::time::Duration;

use serde_json::Value;

use super::request::Held;

/// What an act did to one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was changed.
    Done,
    /// It had been changed before, by the same lease or with the same outcome.
    Already,
    /// The lease ended, or another agent holds the row. Drop the result.
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

    /// The string that the SQL functions use.
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
    /// The row's key, as text.
    pub key: String,
    /// What the act did to it.
    pub outcome: Outcome,
    /// The row's status now; `None` when the row does not exist.
    pub status: Option<String>,
}

impl Answer {
    /// Whether the caller does not hold the row: its result does not count.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.outcome, Outcome::Lost | Outcome::Gone)
    }
}

/// What happened to an enqueued item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enqueued {
    /// The row's key, as text.
    pub key: String,
    /// `enqueued`, `standing` (a waiting row has the same unique key) or `replaced`.
    pub outcome: String,
}

/// A claimed row.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The key, as text.
    pub key: String,
    /// The lease under which it is held.
    pub lease: i64,
    /// Its kind, where the queue has kinds.
    pub kind: Option<String>,
    /// Its owner as text; `None` if it belongs to everyone.
    pub owner: Option<String>,
    /// Failures so far.
    pub attempts: i32,
    /// The declared payload column, or the whole row.
    pub payload: Value,
    /// What earlier holders left in the result column: finished stages after which to resume.
    pub partial: Option<Value>,
    /// How long the lease lasts without progress, by the database's clock.
    pub lease_for: Duration,
    /// How long progress can extend it at most.
    pub deadline_in: Duration,
}

impl Item {
    /// Its key and lease, for the acts of a holder.
    pub fn held(&self) -> Held {
        Held::new(&self.key, self.lease)
    }
}

/// The result of a claim.
#[derive(Debug, Clone, Default)]
pub struct Claimed {
    /// The claimed rows, the most urgent first.
    pub items: Vec<Item>,
    /// If nothing was claimed: how long until a row is due. `None` when no row waits.
    pub next_due_in: Option<Duration>,
}

/// How many rows a claim could take now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// How many rows were counted.
    pub count: u64,
    /// Counting stopped at the limit: there may be more.
    pub capped: bool,
}
