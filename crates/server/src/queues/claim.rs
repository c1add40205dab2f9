//! A claim, and one that waits for work.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use gleaner::queue::{Claimed, Item};
use gleaner::{Acts, Claim};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::Queues;
use super::failure::refuse;
use super::key::Key;
use super::worked;
use crate::access::Caller;
use crate::api::Body;
use crate::nodes::Named;
use crate::wire_error::WireError;

/// Longer than that no claim waits: proxies cut idle requests off.
const LONGEST_WAIT: Duration = Duration::from_secs(50);
/// Between two looks of one claim, at first, and at most while a row is due and still not to be had.
const LOOK_AGAIN: Duration = Duration::from_millis(15);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Rows in one answer: it is put together in memory, and so is that of everybody else.
const MOST_ROWS: i32 = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// New at each start of the agent's process.
    agent: String,
    #[serde(default = "one")]
    limit: i32,
    owner: Option<Text>,
    kinds: Option<Vec<String>>,
    tenant: Option<Text>,
    request: Option<Uuid>,
    /// The request was never sent before, so that nothing can have been given for it.
    #[serde(default)]
    first: bool,
    #[serde(default)]
    started: bool,
    hold_seconds: Option<f64>,
    #[serde(default)]
    wait_seconds: f64,
    /// How people know the agent's machine, and the application it works for.
    device: Option<String>,
    app: Option<String>,
}

fn one() -> i32 {
    1
}

/// A key of somebody's table, which may be a number to its programs.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Text {
    Text(String),
    Number(i64),
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

pub async fn claim(
    State(queues): State<Queues>,
    caller: Caller,
    Path(queue): Path<String>,
    headers: HeaderMap,
    Body(asked): Body<Asked>,
) -> Result<Json<Value>, WireError> {
    let hold = asked.hold_seconds.map(seconds).transpose()?;
    let until = Instant::now() + seconds(asked.wait_seconds)?.min(LONGEST_WAIT);
    if !(1..=MOST_ROWS).contains(&asked.limit) {
        return Err(WireError::bad(format!("limit is from 1 to {MOST_ROWS}")));
    }
    let mut acts = queues.acts(&queue).await.map_err(|error| refuse(&caller, &error))?;
    if let Some(tenant) = &asked.tenant {
        let client = queues.shared.pool.get().await.map_err(|error| refuse(&caller, &gleaner::Error::Connect(error.to_string())))?;
        let within = Acts::clone(&acts).within(&**client, tenant.to_string()).await;
        acts = within.map_err(|error| refuse(&caller, &error))?.into();
    }
    let named = Named::new(asked.app.as_deref(), asked.device.as_deref(), &headers);
    let node = worked::by(&caller, acts.declaration(), named, asked.owner.as_ref());
    let mut claim = Claim::by(asked.agent).limit(asked.limit);
    claim.owner = asked.owner.map(|owner| owner.to_string());
    claim.kinds = asked.kinds;
    claim.request = asked.request;
    claim.started = asked.started;
    claim.hold = hold;
    let key = Key::new(&queue, &caller, &claim, asked.tenant.map(|tenant| tenant.to_string()).as_deref());
    // Whoever repeats a request gets the rows it was given before, whatever has been found empty since.
    let mut repeats = claim.request.is_some() && !asked.first;
    let (ears, gate) = (&queues.shared.ears, &queues.shared.gate);
    let mut pause = LOOK_AGAIN;
    loop {
        if let Some(node) = &node {
            queues.nodes().heard(node);
        }
        let heard = ears.rings(&queue);
        let look = gate.look(&queue, heard);
        let empty = match gate.known(&key, look).filter(|_| !std::mem::take(&mut repeats)) {
            Some(empty) => empty,
            None => {
                let claimed = queues.shared.combiner.claim(key, &caller, &acts, claim.clone()).await;
                let claimed = claimed.map_err(|error| refuse(&caller, &error))?;
                if !claimed.items.is_empty() {
                    if let Some(node) = &node {
                        worked::gave(queues.nodes(), node, &queue, acts.declaration(), &claimed.items);
                    }
                    return Ok(Json(shown(claimed)));
                }
                gate.remember(key, look, claimed.next_due_in)
            }
        };
        let now = Instant::now();
        if now >= until {
            return Ok(Json(shown(Claimed { items: Vec::new(), next_due_in: empty.next_due_in() })));
        }
        // What is due and was not given out is locked by somebody: looking without a pause would not set it free.
        let next = Instant::from(empty.until).max(now + pause);
        tokio::select! {
            _ = ears.rung(&queue, heard) => pause = LOOK_AGAIN,
            () = tokio::time::sleep_until(until.min(next)) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
}

pub fn seconds(given: f64) -> Result<Duration, WireError> {
    Duration::try_from_secs_f64(given).map_err(|_| WireError::bad("a number of seconds is not negative, and not beyond all measure"))
}

fn shown(claimed: Claimed) -> Value {
    json!({
        "items": claimed.items.into_iter().map(item).collect::<Vec<_>>(),
        "next_due_seconds": claimed.next_due_in.map(|wait| wait.as_secs_f64()),
    })
}

fn item(item: Item) -> Value {
    json!({
        "key": item.key, "lease": item.lease, "kind": item.kind, "owner": item.owner, "attempts": item.attempts,
        "payload": item.payload, "partial": item.partial,
        "lease_seconds": item.lease_for.as_secs_f64(), "deadline_seconds": item.deadline_in.as_secs_f64(),
    })
}
