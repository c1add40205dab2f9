//! What an assistant needs of a place besides the acts of a queue.

use std::fmt::Debug;

use async_trait::async_trait;
use gleaner::Result;
use gleaner::transport::Place;
use serde::Deserialize;
use serde_json::Value;

/// A row as people see it, with the same words for every queue.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Row {
    #[serde(rename = "id")]
    pub key: String,
    /// `ready`, `running`, `expired`, `scheduled`, `failed`, `dead`, `done`, `cancelled` or `other`.
    pub state: String,
    pub kind: Option<String>,
    #[serde(default)]
    pub attempts: i64,
    /// Seconds until it is due; negative since then.
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

/// A person's decision about whom an activity came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link<'a> {
    pub activity: &'a str,
    pub contact: i64,
    pub backfill: bool,
    pub remember: bool,
}

/// A follow-up to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Followup<'a> {
    pub prospect: &'a str,
    pub action: &'a str,
    /// RFC 3339.
    pub at: &'a str,
    pub payload: &'a Value,
}

/// A place, and what one can do there that is no act of a queue. Everything happens with the authority of the place's own
/// login: nothing here adds any.
#[async_trait]
pub trait Desk: Debug + Send + Sync {
    fn place(&self) -> &dyn Place;

    /// Up to `limit` rows whose time has come, the longest due first. Whether this agent may have them is asked of `explain`.
    async fn due(&self, queue: &str, kind: Option<&str>, limit: i64) -> Result<Vec<Row>>;

    /// One row; none when it is not there, or not for us to see.
    async fn show(&self, queue: &str, key: &str) -> Result<Option<Row>>;

    /// Puts work in and returns its key. Kind and payload go where the queue's declaration says.
    async fn enqueue(&self, queue: &str, kind: Option<&str>, payload: &Value) -> Result<String>;

    /// Each activity with what became of it: `done`, `already` or `gone`.
    async fn link_contact(&self, link: &Link<'_>) -> Result<Vec<(String, String)>>;

    /// The row of the follow-up.
    async fn schedule_followup(&self, followup: &Followup<'_>) -> Result<Value>;
}
