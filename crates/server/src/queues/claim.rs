//! Claims, including those that wait for work.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use gleaner::Claim;
use gleaner::queue::{Claimed, Item};
use gleaner_http::{Body, Caller, WireError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::Queues;
use super::failure::refuse;
use super::key::Key;
use super::line::{Alike, Asked};
use super::worked;
use crate::nodes::Named;

/// The longest a claim may wait: proxies cut idle requests off.
const LONGEST_WAIT: Duration = Duration::from_secs(50);
/// How often a waiting device is recorded as alive.
const SHOW_LIFE: Duration = Duration::from_secs(10);
/// The most rows in one response. Every response is built in memory, and many may be built at the same time.
const MOST_ROWS: i32 = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// New at each start of the agent's process.
    agent: String,
    #[serde(default = "one")]
    limit: i32,
    owner: Option<Text>,
    kinds: Option<Vec<String>>,
    tenant: Option<Text>,
    request: Option<Uuid>,
    /// The request was never sent before, so no rows can have been claimed for it.
    #[serde(default)]
    first: bool,
    #[serde(default)]
    started: bool,
    hold_seconds: Option<f64>,
    #[serde(default)]
    wait_seconds: f64,
    /// The names under which people know the agent's machine and the application it works for.
    device: Option<String>,
    app: Option<String>,
}

fn one() -> i32 {
    1
}

/// A key of a user's table. Programs may send it as a number.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Text {
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

pub(super) async fn claim(
    State(queues): State<Queues>,
    caller: Caller,
    Path(queue): Path<String>,
    headers: HeaderMap,
    Body(asked): Body<Wanted>,
) -> Result<Json<Value>, WireError> {
    let hold = asked.hold_seconds.map(seconds).transpose()?;
    let until = Instant::now() + seconds(asked.wait_seconds)?.min(LONGEST_WAIT);
    if !(1..=MOST_ROWS).contains(&asked.limit) {
        return Err(WireError::bad(format!("limit is from 1 to {MOST_ROWS}")));
    }
    let tenant = asked.tenant.map(|tenant| tenant.to_string());
    let acts = queues.shared.known.acts_within(&queue, tenant.as_deref()).await.map_err(|error| refuse(&caller, &error))?;
    let named = Named::new(asked.app.as_deref(), asked.device.as_deref(), &headers);
    let node = worked::by(&caller, acts.declaration(), named, asked.owner.as_ref());
    let mut claim = Claim::by(asked.agent).limit(asked.limit);
    claim.owner = asked.owner.map(|owner| owner.to_string());
    claim.kinds = asked.kinds;
    claim.request = asked.request;
    claim.started = asked.started;
    claim.hold = hold;
    let key = Key::new(&queue, &caller, &claim, tenant.as_deref());
    if let Some(node) = &node {
        queues.nodes().heard(node);
    }
    // A repeated request gets the rows that were claimed for it before, even if the queue has been found empty since.
    let repeats = claim.request.is_some() && !asked.first;
    let heard = queues.shared.ears.count(&queue);
    let known = queues.shared.gate.known(&key, queues.shared.gate.look(&queue, heard)).filter(|_| !repeats);
    let waits = until > Instant::now();
    if let Some(empty) = known.filter(|_| !waits) {
        return Ok(Json(shown(Claimed { items: Vec::new(), next_due_in: empty.next_due_in() })));
    }
    let alike = Alike { key, queue: queue.clone(), caller: caller.clone(), acts: acts.clone() };
    let mut place = queues.shared.lines.join(alike, Asked { claim, heard, until, repeats, known_empty: known.is_some() });
    let mut alive = tokio::time::interval_at(Instant::now() + SHOW_LIFE, SHOW_LIFE);
    let claimed = loop {
        tokio::select! {
            answer = place.answer() => break answer,
            () = tokio::time::sleep_until(until), if waits => break place.leave().await,
            _ = alive.tick(), if node.is_some() => node.iter().for_each(|node| queues.nodes().heard(node)),
        }
    };
    let claimed = claimed.map_err(|error| refuse(&caller, &error))?;
    if let Some(node) = &node {
        worked::gave(queues.nodes(), node, &queue, acts.declaration(), &claimed.items);
    }
    Ok(Json(shown(claimed)))
}

pub(super) fn seconds(given: f64) -> Result<Duration, WireError> {
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
