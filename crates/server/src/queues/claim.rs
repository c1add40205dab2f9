//! A claim, and one that waits for work.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use gleaner::queue::{Claimed, Item};
use gleaner::{Acts, Claim};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::Queues;
use super::failure::refuse;
use crate::access::{Caller, Refused};
use crate::api::Body;

/// Longer than that no claim waits: proxies cut idle requests off.
const LONGEST_WAIT: Duration = Duration::from_secs(50);
/// A bell may be heard before its row can be seen: whoever it wakes in vain looks once more after this.
const LOOK_AGAIN: Duration = Duration::from_millis(15);

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
    #[serde(default)]
    started: bool,
    hold_seconds: Option<f64>,
    #[serde(default)]
    wait_seconds: f64,
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
    Body(asked): Body<Asked>,
) -> Result<Json<Value>, Refused> {
    let hold = asked.hold_seconds.map(seconds).transpose()?;
    let until = Instant::now() + seconds(asked.wait_seconds)?.min(LONGEST_WAIT);
    if asked.limit < 1 {
        return Err(Refused::bad("limit is at least 1"));
    }
    let mut acts = queues.acts(&queue).await.map_err(|error| refuse(&caller, &error))?;
    if let Some(tenant) = &asked.tenant {
        let client = queues.shared.pool.get().await.map_err(|error| refuse(&caller, &gleaner::Error::Connect(error.to_string())))?;
        let within = Acts::clone(&acts).within(&**client, tenant.to_string()).await;
        acts = within.map_err(|error| refuse(&caller, &error))?.into();
    }
    let mut claim = Claim::by(asked.agent).limit(asked.limit);
    claim.owner = asked.owner.map(|owner| owner.to_string());
    claim.kinds = asked.kinds;
    claim.request = asked.request;
    claim.started = asked.started;
    claim.hold = hold;
    let key = key(&queue, &caller, &claim, asked.tenant.as_ref());
    let ears = &queues.shared.ears;
    let mut in_vain = false;
    loop {
        let heard = ears.rings(&queue);
        let empty = match queues.shared.gate.look(&key, heard) {
            Some(empty) => empty,
            None => {
                let claimed = queues.shared.combiner.claim(&key, &caller, &acts, claim.clone()).await;
                let claimed = claimed.map_err(|error| refuse(&caller, &error))?;
                if !claimed.items.is_empty() {
                    return Ok(Json(shown(claimed)));
                }
                if std::mem::take(&mut in_vain) {
                    tokio::time::sleep_until(until.min(Instant::now() + LOOK_AGAIN)).await;
                    continue;
                }
                queues.shared.gate.remember(&key, heard, claimed.next_due_in)
            }
        };
        if Instant::now() >= until {
            return Ok(Json(shown(Claimed { items: Vec::new(), next_due_in: empty.next_due_in() })));
        }
        tokio::select! {
            _ = ears.rung(&queue, heard) => in_vain = true,
            () = tokio::time::sleep_until(until.min(empty.until.into())) => {}
        }
    }
}

/// Claims with the same one find, and find empty, the same.
fn key(queue: &str, caller: &Caller, claim: &Claim, tenant: Option<&Text>) -> String {
    let who = match caller {
        Caller::Ourselves => Value::Null,
        Caller::Token { claims, .. } => Value::Object(claims.clone()),
    };
    let kinds = claim.kinds.as_ref().map(|kinds| {
        let mut kinds = kinds.clone();
        kinds.sort_unstable();
        kinds
    });
    let hold = claim.hold.map(|hold| hold.as_micros().to_string());
    json!([queue, who, claim.owner, kinds, claim.started, hold, tenant.map(ToString::to_string)]).to_string()
}

pub fn seconds(given: f64) -> Result<Duration, Refused> {
    Duration::try_from_secs_f64(given).map_err(|_| Refused::bad("a number of seconds is not negative, and not beyond all measure"))
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
