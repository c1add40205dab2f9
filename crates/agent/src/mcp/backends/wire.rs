//! A server, Gleaner's own or a Supabase project, with the rights of the signed-in user.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use gleaner::declaration::Declaration;
use gleaner::transport::Endpoint;
use gleaner::{Error, Result};
use http::Method;
use serde_json::{Map, Value, json};

use crate::mcp::backend::{Backend, Followup, Link, Row};
use crate::wire::{Protocol, Wire};

/// A [`Backend`] backed by a server.
#[derive(Debug, Clone)]
pub struct WireBackend {
    wire: Wire,
}

impl WireBackend {
    pub fn new(wire: Wire) -> Self {
        Self { wire }
    }

    async fn declaration(&self, queue: &str) -> Result<Declaration> {
        let path = format!("/rest/v1/queue?select=declaration&name=eq.{}", encoded(queue));
        let rows = self.wire.read("gleaner", &path).await?;
        let Some(declared) = rows.get(0).map(|row| row["declaration"].clone()) else {
            return Err(Error::UnknownQueue { name: queue.into(), known: self.wire.queues().await? });
        };
        serde_json::from_value(declared).map_err(|error| Error::Other(format!("the stored declaration of {queue} is unreadable: {error}")))
    }

    /// Rows of the queue's table that row-level security lets us see.
    async fn rows(&self, declared: &Declaration, filter: &str) -> Result<Vec<Row>> {
        let (schema, table) = declared.table.split_once('.').unwrap_or(("public", &declared.table));
        let path = format!("/rest/v1/{}?select=*&{filter}", encoded(table.trim_matches('"')));
        let rows = self.wire.read(schema.trim_matches('"'), &path).await?;
        Ok(rows.as_array().into_iter().flatten().filter_map(Value::as_object).map(|row| shown(declared, row)).collect())
    }
}

#[async_trait]
impl Backend for WireBackend {
    fn endpoint(&self) -> &dyn Endpoint {
        &self.wire
    }

    async fn due(&self, queue: &str, kind: Option<&str>, limit: i64) -> Result<Vec<Row>> {
        let declared = self.declaration(queue).await?;
        let (status, due, key) = (&declared.status, engine(&declared, "due_at"), key_column(&declared));
        let words = [Some(&status.ready), Some(&status.running), Some(&status.failed), status.claimed.as_ref()];
        let words: Vec<String> = words.into_iter().flatten().map(|word| encoded(&format!("\"{word}\""))).collect();
        // The database's clock decides what is due: it evaluates `now` itself.
        let mut filter = format!("{}=in.({})&{due}=lte.now&order={due},{key}&limit={limit}", encoded(&status.column), words.join(","));
        match (&declared.kind, kind) {
            (Some(column), Some(kind)) => filter += &format!("&{}=eq.{}", encoded(column), encoded(kind)),
            (None, Some(_)) => return Err(Error::Unsupported { queue: queue.into(), what: "has no kinds".into() }),
            (_, None) => {}
        }
        self.rows(&declared, &filter).await
    }

    async fn show(&self, queue: &str, key: &str) -> Result<Option<Row>> {
        let declared = self.declaration(queue).await?;
        let filter = format!("{}=eq.{}", key_column(&declared), encoded(key));
        match self.rows(&declared, &filter).await {
            Ok(rows) => Ok(rows.into_iter().next()),
            // The value cannot be a key, such as text where keys are numbers.
            Err(Error::Remote { code: Some(code), .. }) if code.starts_with("22") => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn enqueue(&self, queue: &str, kind: Option<&str>, payload: &Value) -> Result<String> {
        let declared = self.declaration(queue).await?;
        let items = json!([super::item(queue, &declared, kind, payload)?]);
        let put = match self.wire.protocol().await? {
            // Our own server sends the notification itself.
            Protocol::Native => {
                let path = format!("/v1/queues/{}/enqueue", encoded(queue));
                self.wire.rest(Method::POST, &path, Some(&json!({"items": items}))).await?["items"][0]["key"].take()
            }
            Protocol::Rpc => self.wire.rpc("gleaner", &format!("enqueue_{queue}"), json!({"p_items": items})).await?[0]["id"].take(),
        };
        text(&put).ok_or_else(|| Error::Other("enqueue gave no answer".into()))
    }

    async fn link_contact(&self, link: &Link<'_>) -> Result<Vec<(String, String)>> {
        let arguments =
            json!({"p_activity": link.activity, "p_contact": link.contact, "p_backfill": link.backfill, "p_remember": link.remember});
        let rows = self.wire.rpc("gleaner", "link_activity", arguments).await?;
        let answer = |row: &Value| Some((text(&row["id"])?, text(&row["outcome"])?));
        Ok(rows.as_array().into_iter().flatten().filter_map(answer).collect())
    }

    async fn schedule_followup(&self, followup: &Followup<'_>) -> Result<Value> {
        let arguments = json!({
            "p_prospect_id": followup.prospect, "p_action_type": followup.action, "p_scheduled_for": followup.at, "p_payload": followup.payload,
        });
        self.wire.rpc("public", "schedule_followup", arguments).await
    }

    async fn reschedule_followup(&self, key: &str, at: &str) -> Result<Vec<(String, Option<String>)>> {
        let rows = self.wire.rpc("gleaner", "reschedule_followups", json!({"p_ids": [key], "p_due": at})).await?;
        Ok(outcomes(&rows))
    }

    async fn cancel_followup(&self, key: &str, reason: &str) -> Result<Vec<(String, Option<String>)>> {
        let rows = self.wire.rpc("public", "cancel_scheduled_actions", json!({"p_ids": [key], "p_reason": reason})).await?;
        Ok(outcomes(&rows))
    }

    async fn followups(&self, prospect: Option<&str>, limit: i64) -> Result<Vec<Value>> {
        let of = prospect.map(|prospect| format!("&prospect_id=eq.{}", encoded(prospect))).unwrap_or_default();
        let path = format!("/rest/v1/scheduled_actions?select=*&status=in.(pending,processing)&order=scheduled_for,id&limit={limit}{of}");
        Ok(self.wire.read("public", &path).await?.as_array().cloned().unwrap_or_default())
    }
}

fn outcomes(rows: &Value) -> Vec<(String, Option<String>)> {
    rows.as_array().into_iter().flatten().filter_map(|row| Some((text(&row["outcome"])?, text(&row["status"])))).collect()
}

/// A row with the same state names for every queue, as in [`gleaner::view`].
fn shown(declared: &Declaration, row: &Map<String, Value>) -> Row {
    let value = |column: &Option<String>| column.as_ref().and_then(|column| row.get(column)).cloned().unwrap_or_default();
    let column = |name: &str| row.get(name).cloned().unwrap_or_default();
    let due = column(&engine(declared, "due_at"));
    let due = due.as_str().and_then(|due| DateTime::parse_from_rfc3339(due).ok());
    let due_in = due.map(|due| (due.with_timezone(&Utc) - Utc::now()).as_seconds_f64());
    let attempts = declared.attempts.clone().unwrap_or_else(|| engine(declared, "attempts"));
    let error = declared.error.as_deref().map(|place| {
        let mut steps = place.split('.');
        let first = steps.next().map(&column).unwrap_or_default();
        steps.fold(first, |value, step| value.get(step).cloned().unwrap_or_default())
    });
    Row {
        key: text(&column(&key_column(declared))).unwrap_or_default(),
        state: state(declared, column(&declared.status.column).as_str().unwrap_or_default(), due_in),
        kind: text(&value(&declared.kind)),
        attempts: column(&attempts).as_i64().unwrap_or_default(),
        due_in,
        payload: if declared.payload.is_some() { value(&declared.payload) } else { Value::Object(row.clone()) },
        progress: value(&declared.progress),
        result: value(&declared.result),
        error: error.unwrap_or_default(),
    }
}

fn state(declared: &Declaration, word: &str, due_in: Option<f64>) -> String {
    let status = &declared.status;
    let waits = due_in.is_some_and(|wait| wait > 0.0);
    let state = match word {
        word if word == status.done => "done",
        word if word == status.failed && due_in.is_none() => "dead",
        word if word == status.failed => "failed",
        word if status.cancelled.as_deref() == Some(word) => "cancelled",
        word if word == status.running || status.claimed.as_deref() == Some(word) => {
            if waits {
                "running"
            } else {
                "expired"
            }
        }
        word if word == status.ready => {
            if waits {
                "scheduled"
            } else {
                "ready"
            }
        }
        _ => "other",
    };
    state.to_owned()
}

/// The engine's own column, under the name it has in this table.
fn engine(declared: &Declaration, name: &str) -> String {
    declared.rename.get(name).cloned().unwrap_or_else(|| name.to_owned())
}

fn key_column(declared: &Declaration) -> String {
    declared.key.clone().unwrap_or_else(|| "id".to_owned())
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Encodes the value as part of a URL.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
