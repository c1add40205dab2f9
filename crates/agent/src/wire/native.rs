//! The acts over the routes of our own server.

use std::time::Duration;

use ::http::Method;
use gleaner::queue::{Answer, Claim, Claimed, Completion, Failure, Held, Item, Progress, Waiting};
use gleaner::{Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Protocol;
use super::http::{Call, Http};
use super::shape::outcome;

/// Checks whether the server is ours.
pub(super) async fn probe(http: &Http) -> Result<Protocol> {
    match http.call(&Call::new(Method::GET, "/v1/queues", "find the queues")).await {
        Ok(reply) if reply.body.is_array() => Ok(Protocol::Native),
        // This server answers every path, but not with a list of queues.
        Ok(_) => Ok(Protocol::Rpc),
        Err(Error::Remote { status: Some(404 | 405 | 300..=399), .. }) => Ok(Protocol::Rpc),
        Err(error) => Err(error),
    }
}

/// A queue in the server's list.
#[derive(Debug, Clone)]
pub(super) struct QueueEntry {
    pub name: String,
    /// Whether claims may name an owner, and kinds.
    pub owners: bool,
    pub kinds: bool,
}

pub(super) async fn list(http: &Http) -> Result<Vec<QueueEntry>> {
    let reply = http.call(&Call::new(Method::GET, "/v1/queues", "list the queues")).await?;
    let queues = reply.body.as_array().into_iter().flatten().filter_map(|queue| {
        // An older server does not send this field.
        let is = |name: &str| queue[name].as_bool().unwrap_or(true);
        Some(QueueEntry { name: queue["name"].as_str()?.to_owned(), owners: is("owners"), kinds: is("kinds") })
    });
    Ok(queues.collect())
}

#[derive(Deserialize)]
struct ClaimResponse {
    items: Vec<Row>,
    next_due_seconds: Option<f64>,
}

#[derive(Deserialize)]
struct Row {
    key: String,
    lease: i64,
    kind: Option<String>,
    owner: Option<String>,
    attempts: i32,
    payload: Value,
    partial: Option<Value>,
    lease_seconds: f64,
    deadline_seconds: f64,
}

#[derive(Deserialize)]
struct ActResponse {
    key: String,
    outcome: String,
    status: Option<String>,
    #[serde(default)]
    lease_seconds: f64,
}

#[derive(Deserialize)]
struct Many<T> {
    items: Vec<T>,
}

impl ActResponse {
    fn answer(self) -> Answer {
        Answer { key: self.key, outcome: outcome(&self.outcome), status: self.status }
    }
}

/// The routes of one queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Routes<'a> {
    pub http: &'a Http,
    pub queue: &'a str,
}

impl Routes<'_> {
    async fn post(&self, act: &str, body: &Value, repeat: bool) -> Result<Value> {
        let path = format!("/v1/queues/{}/{act}", self.queue);
        let call =
            Call { body: Some(body), also: &[409, 410], repeat, ..Call::new(Method::POST, &path, format!("{act} in {}", self.queue)) };
        Ok(self.http.call(&call).await?.body)
    }

    fn read<T: serde::de::DeserializeOwned>(&self, act: &str, body: Value) -> Result<T> {
        serde_json::from_value(body).map_err(|error| Error::Other(format!("{act} in {}: the answer cannot be read: {error}", self.queue)))
    }

    pub(super) async fn claim(&self, claim: &Claim, request: Uuid, first: bool) -> Result<Claimed> {
        let mut body = json!({"agent": claim.agent, "limit": claim.limit, "request": request, "first": first, "started": claim.started});
        if let Some(owner) = &claim.owner {
            body["owner"] = json!(owner);
        }
        if let Some(kinds) = &claim.kinds {
            body["kinds"] = json!(kinds);
        }
        if let Some(hold) = claim.hold {
            body["hold_seconds"] = json!(hold.as_secs_f64());
        }
        let given: ClaimResponse = self.read("claim", self.post("claim", &body, false).await?)?;
        let items = given.items.into_iter().map(|row| Item {
            key: row.key,
            lease: row.lease,
            kind: row.kind,
            owner: row.owner,
            attempts: row.attempts,
            payload: row.payload,
            partial: row.partial,
            lease_for: seconds(row.lease_seconds),
            deadline_in: seconds(row.deadline_seconds),
        });
        Ok(Claimed { items: items.collect(), next_due_in: given.next_due_seconds.map(seconds) })
    }

    /// None if the server has not counted lately, or is too old to have this route.
    pub(super) async fn waiting(&self, claim: &Claim) -> Result<Option<Waiting>> {
        #[derive(Deserialize)]
        struct Counted {
            count: Option<u64>,
            capped: bool,
        }
        let body = json!({"owner": claim.owner, "kinds": claim.kinds});
        let counted: Counted = match self.post("waiting", &body, true).await {
            Err(Error::Remote { status: Some(404 | 405), .. }) => return Ok(None),
            answer => self.read("waiting", answer?)?,
        };
        Ok(counted.count.map(|count| Waiting { count, capped: counted.capped }))
    }

    /// `start` and `release`.
    pub(super) async fn held(&self, act: &str, held: &[Held]) -> Result<Vec<Answer>> {
        self.many(act, &json!({"items": rows(held)})).await
    }

    pub(super) async fn complete(&self, done: &[Completion]) -> Result<Vec<Answer>> {
        let items: Vec<_> =
            done.iter().map(|done| json!({"key": done.held.key, "lease": done.held.lease, "result": done.result})).collect();
        self.many("complete", &json!({"items": items})).await
    }

    pub(super) async fn cancel(&self, keys: &[&str], reason: Option<&str>) -> Result<Vec<Answer>> {
        self.many("cancel", &json!({"keys": keys, "reason": reason})).await
    }

    async fn many(&self, act: &str, body: &Value) -> Result<Vec<Answer>> {
        let response: Many<ActResponse> = self.read(act, self.post(act, body, true).await?)?;
        Ok(response.items.into_iter().map(ActResponse::answer).collect())
    }

    pub(super) async fn progress(&self, held: &Held, progress: &Progress) -> Result<(Answer, Duration)> {
        let Progress { stage, percent, partial, hold } = progress;
        let mut body = json!({"key": held.key, "lease": held.lease, "stage": stage, "percent": percent, "partial": partial});
        // Sent only when the caller sets it: an older server does not know the field.
        if let Some(hold) = hold {
            body["hold_seconds"] = json!(hold.as_secs_f64());
        }
        let response: ActResponse = self.read("progress", self.post("progress", &body, true).await?)?;
        let left = seconds(response.lease_seconds);
        Ok((response.answer(), left))
    }

    pub(super) async fn fail(&self, held: &Held, failure: &Failure) -> Result<Answer> {
        let body = json!({
            "key": held.key, "lease": held.lease, "message": failure.message, "category": failure.category, "retryable": failure.retryable,
            "retry_in_seconds": failure.retry_in.map(|wait| wait.as_secs_f64()),
        });
        Ok(self.read::<ActResponse>("fail", self.post("fail", &body, true).await?)?.answer())
    }

    pub(super) async fn snooze(&self, held: &Held, by: Duration) -> Result<Answer> {
        let body = json!({"key": held.key, "lease": held.lease, "seconds": by.as_secs_f64()});
        Ok(self.read::<ActResponse>("snooze", self.post("snooze", &body, true).await?)?.answer())
    }

    pub(super) async fn explain(&self, key: &str, owner: Option<&str>) -> Result<Option<Value>> {
        let written = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20");
        let mut path = format!("/v1/queues/{}/items/{}/explain", self.queue, written(key));
        if let Some(owner) = owner {
            path += &format!("?owner={}", written(owner));
        }
        match self.http.call(&Call::new(Method::GET, &path, format!("explain in {}", self.queue))).await {
            Ok(reply) => Ok(Some(reply.body)),
            Err(Error::Remote { status: Some(404), .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn ended(&self, held: &[Held]) -> Result<Vec<Held>> {
        #[derive(Deserialize)]
        struct Over {
            key: String,
            lease: i64,
        }
        let over: Many<Over> = self.read("ended", self.post("ended", &json!({"items": rows(held)}), true).await?)?;
        Ok(over.items.into_iter().map(|one| Held::new(one.key, one.lease)).collect())
    }
}

fn rows(held: &[Held]) -> Vec<Value> {
    held.iter().map(|held| json!({"key": held.key, "lease": held.lease})).collect()
}

fn seconds(given: f64) -> Duration {
    Duration::try_from_secs_f64(given.max(0.0)).unwrap_or(Duration::MAX)
}
