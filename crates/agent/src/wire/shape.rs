//! The columns of a queue's table, from its declaration. For servers that return rows and not items.

use ::http::Method;
use gleaner::declaration::Declaration;
use gleaner::queue::{Item, Outcome};
use gleaner::{Error, Result};
use serde_json::{Map, Value};

use super::clock::Clock;
use super::http::{Call, Http};

/// The columns a worker needs to know.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub queue: String,
    pub schema: String,
    pub table: String,
    pub key: String,
    pub status: String,
    /// The status of rows that wait.
    pub ready: String,
    /// The statuses that a held row may have.
    pub held: Vec<String>,
    pub lease: String,
    due: String,
    deadline: String,
    attempts: String,
    pub kind: Option<String>,
    pub owner: Option<String>,
    payload: Option<String>,
    result: Option<String>,
}

impl Shape {
    /// Reads the declaration from the registry of that database.
    pub(super) async fn of(http: &Http, queue: &str) -> Result<Self> {
        let known = list(http).await?;
        if !known.iter().any(|name| name == queue) {
            return Err(Error::UnknownQueue { name: queue.into(), known });
        }
        let path = format!("/rest/v1/queue?select=declaration&name=eq.{queue}");
        let rows = registry(http, &path).await?;
        let declared = rows.get(0).map(|row| row["declaration"].clone()).unwrap_or_default();
        let declared: Declaration = serde_json::from_value(declared).map_err(|error| {
            Error::Other(format!("the stored declaration of {queue} is unreadable: {error}; is this agent as new as the schema?"))
        })?;
        Ok(Self::from(queue, declared))
    }

    fn from(queue: &str, declared: Declaration) -> Self {
        let own = |name: &str| declared.rename.get(name).cloned().unwrap_or_else(|| name.to_owned());
        let (schema, table) = declared.table.split_once('.').unwrap_or(("public", &declared.table));
        let status = &declared.status;
        Self {
            queue: queue.to_owned(),
            schema: schema.trim_matches('"').to_owned(),
            table: table.trim_matches('"').to_owned(),
            // Attached by an older version, which left this to the table.
            key: declared.key.clone().unwrap_or_else(|| "id".to_owned()),
            status: status.column.clone(),
            ready: status.ready.clone(),
            held: [Some(status.running.clone()), status.claimed.clone()].into_iter().flatten().collect(),
            lease: own("lease"),
            due: own("due_at"),
            deadline: own("deadline_at"),
            attempts: declared.attempts.clone().unwrap_or_else(|| own("attempts")),
            kind: declared.kind.clone(),
            owner: declared.owner.as_ref().map(|owner| owner.column.clone()),
            payload: declared.payload.clone(),
            result: declared.result.clone(),
        }
    }

    /// A claimed row as an item. None for a row without a key or lease.
    pub(super) fn item(&self, row: &Map<String, Value>, clock: &Clock) -> Option<Item> {
        let value = |column: &Option<String>| column.as_ref().and_then(|column| row.get(column)).filter(|value| !value.is_null());
        let time = |column: &str| clock.until(row.get(column).and_then(Value::as_str));
        Some(Item {
            key: text(row.get(&self.key)?),
            lease: row.get(&self.lease)?.as_i64()?,
            kind: value(&self.kind).map(text),
            owner: value(&self.owner).map(text),
            attempts: row.get(&self.attempts).and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok()).unwrap_or(0),
            payload: match &self.payload {
                Some(column) => row.get(column).cloned().unwrap_or_default(),
                None => Value::Object(row.clone()),
            },
            partial: value(&self.result).cloned(),
            lease_for: time(&self.due),
            deadline_in: time(&self.deadline),
        })
    }
}

/// The names of the queues that we may see.
pub(super) async fn list(http: &Http) -> Result<Vec<String>> {
    let rows = registry(http, "/rest/v1/queue?select=name&order=name").await?;
    Ok(rows.as_array().into_iter().flatten().filter_map(|row| row["name"].as_str().map(str::to_owned)).collect())
}

async fn registry(http: &Http, path: &str) -> Result<Value> {
    let call = Call { profile: Some("gleaner"), ..Call::new(Method::GET, path, "read the registry of queues") };
    Ok(http.call(&call).await?.body)
}

/// A key or a status as text, whatever its type in the table.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The outcome of an act, by its name in the response.
pub(super) fn outcome(word: &str) -> Outcome {
    [Outcome::Done, Outcome::Already, Outcome::Lost].into_iter().find(|outcome| outcome.as_str() == word).unwrap_or(Outcome::Gone)
}
