//! What an assistant needs from a place besides the acts of a queue.

use std::fmt::Debug;

use async_trait::async_trait;
use gleaner::Result;
use gleaner::transport::Endpoint;
use serde::Deserialize;
use serde_json::Value;

/// A row as shown to people, with the same state names for every queue.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Row {
    #[serde(rename = "id")]
    pub key: String,
    /// `ready`, `running`, `expired`, `scheduled`, `failed`, `dead`, `done`, `cancelled` or `other`.
    pub state: String,
    pub kind: Option<String>,
    #[serde(default)]
    pub attempts: i64,
    /// Seconds until the row is due. Negative once it is overdue.
    pub due_in: Option<f64>,
    #[serde(default)]
    pub payload: Value,
    #[serde(default)]
    pub progress: Value,
    #[serde(default)]
    pub result: Value,
    #[serde(default)]
    pub error: Value,
}

/// A person's decision about which contact an activity came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link<'a> {
    pub activity: &'a str,
    pub contact: i64,
    pub backfill: bool,
    pub remember: bool,
}

/// A follow-up to schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Followup<'a> {
    pub prospect: &'a str,
    pub action: &'a str,
    /// RFC 3339.
    pub at: &'a str,
    pub payload: &'a Value,
}

/// A place, and the operations there that are not acts of a queue. Every operation runs with the rights of the place's own
/// login; nothing here adds rights.
#[async_trait]
pub trait Backend: Debug + Send + Sync {
    fn endpoint(&self) -> &dyn Endpoint;

    /// Up to `limit` rows that are due, the longest due first. `explain` says whether this agent may claim them.
    async fn due(&self, queue: &str, kind: Option<&str>, limit: i64) -> Result<Vec<Row>>;

    /// One row. None if it does not exist or we may not see it.
    async fn show(&self, queue: &str, key: &str) -> Result<Option<Row>>;

    /// Enqueues an item and returns its key. Kind and payload go into the columns that the queue's declaration names.
    async fn enqueue(&self, queue: &str, kind: Option<&str>, payload: &Value) -> Result<String>;

    /// Each activity with its outcome: `done`, `already` or `gone`.
    async fn link_contact(&self, link: &Link<'_>) -> Result<Vec<(String, String)>>;

    /// The row of the follow-up.
    async fn schedule_followup(&self, followup: &Followup<'_>) -> Result<Value>;

    /// Outcome and status.
    async fn reschedule_followup(&self, key: &str, at: &str) -> Result<Vec<(String, Option<String>)>>;

    /// Outcome and status.
    async fn cancel_followup(&self, key: &str, reason: &str) -> Result<Vec<(String, Option<String>)>>;

    /// Follow-ups that wait or are being sent, the next first.
    async fn followups(&self, prospect: Option<&str>, limit: i64) -> Result<Vec<Value>>;
}
