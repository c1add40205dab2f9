//! Claims, including those that wait for work.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use gleaner::Claim;
use gleaner::queue::{Claimed, Item};
use gleaner_http::describe::{Conflict, Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, WireError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

use super::Queues;
use super::acts::rows::{QueuePath, Text};
use super::failure::refuse;
use super::groups::{Alike, Pending};
use super::key::Key;
use super::worked;
use crate::nodes::Named;

/// The longest a claim may wait: proxies cut idle requests off.
const LONGEST_WAIT: Duration = Duration::from_secs(50);
/// How often a waiting device is recorded as alive.
const SHOW_LIFE: Duration = Duration::from_secs(10);
/// The most rows in one response. Every response is built in memory, and many may be built at the same time.
const MOST_ROWS: i32 = 1000;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimRequest {
    /// The name of the holder. New at each start of the agent's process.
    agent: String,
    /// The most rows to claim.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 1000, default = 1)]
    limit: i32,
    /// Rows of this owner come first.
    owner: Option<Text>,
    /// The kinds that the agent can process. All when left out.
    kinds: Option<Vec<String>>,
    /// For queues that declare a tenant.
    tenant: Option<Text>,
    /// A repeated claim with the same id returns the same rows, for when the response was lost.
    request: Option<Uuid>,
    /// The request was never sent before, so no rows can have been claimed for it.
    #[serde(default)]
    first: bool,
    /// The work begins at once.
    #[serde(default)]
    started: bool,
    /// How long the lease lasts without progress. The default is the queue's declared hold time.
    #[schema(minimum = 0)]
    hold_seconds: Option<f64>,
    /// How long an empty claim waits for work; at most 50.
    #[serde(default)]
    #[schema(minimum = 0)]
    wait_seconds: f64,
    /// The name of the agent's machine in the list of nodes. The X-Client-Info or User-Agent header when left out.
    device: Option<String>,
    /// The application it works for, for the same list.
    app: Option<String>,
}

fn one() -> i32 {
    1
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClaimResponse {
    items: Vec<ClaimedRow>,
    /// When nothing was claimed: how long until the next row is due. Null when no row waits.
    #[schema(required)]
    next_due_seconds: Option<f64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ClaimedRow {
    key: String,
    /// Every act on this row carries it.
    lease: i64,
    #[schema(required)]
    kind: Option<String>,
    #[schema(required)]
    owner: Option<String>,
    /// Failures so far.
    attempts: i32,
    /// The declared payload column, or the whole row.
    payload: Value,
    /// What earlier holders stored: finished stages after which to resume.
    #[schema(required)]
    partial: Option<Value>,
    /// How long the lease lasts without progress.
    lease_seconds: f64,
    /// How long progress can extend it at most.
    deadline_seconds: f64,
}

/// Claim rows
///
/// Up to `limit` rows: the owner's own first, then rows without an owner, then stale rows of others. With `wait_seconds`
/// an empty claim waits for work. Claims that must be empty are answered from memory, and simultaneous ones share a
/// statement.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/claim",
    tag = "queues",
    params(QueuePath),
    request_body(content = ClaimRequest, example = json!({"agent": "laptop-1", "limit": 10, "kinds": ["mail"], "wait_seconds": 20})),
    responses(
        (status = 200, description = "The claimed rows.", body = ClaimResponse,
            example = json!({
                "items": [{
                    "key": "7", "lease": 1763273000000000_i64, "kind": "mail", "owner": null, "attempts": 0,
                    "payload": {"to": "ann@example.com"}, "partial": null, "lease_seconds": 300.0, "deadline_seconds": 1800.0
                }],
                "next_due_seconds": null
            })),
        Denied, InvalidBody, NotFound, Conflict,
    )
)]
pub(crate) async fn claim(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    headers: HeaderMap,
    Body(body): Body<ClaimRequest>,
) -> Result<Json<ClaimResponse>, WireError> {
    let hold = body.hold_seconds.map(seconds).transpose()?;
    let until = Instant::now() + seconds(body.wait_seconds)?.min(LONGEST_WAIT);
    if !(1..=MOST_ROWS).contains(&body.limit) {
        return Err(WireError::bad(format!("limit is from 1 to {MOST_ROWS}")));
    }
    let tenant = body.tenant.map(|tenant| tenant.to_string());
    let acts = queues.shared.queue_cache.acts_within(&queue, tenant.as_deref()).await.map_err(|error| refuse(&caller, &error))?;
    let named = Named::new(body.app.as_deref(), body.device.as_deref(), &headers);
    let node = worked::by(&caller, acts.declaration(), named, body.owner.as_ref());
    let mut claim = Claim::by(body.agent).limit(body.limit);
    claim.owner = body.owner.map(|owner| owner.to_string());
    claim.kinds = body.kinds;
    claim.request = body.request;
    claim.started = body.started;
    claim.hold = hold;
    let key = Key::new(&queue, &caller, &claim, tenant.as_deref());
    if let Some(node) = &node {
        queues.nodes().heard(node);
    }
    // A repeated request gets the rows that were claimed for it before, even if the queue has been found empty since.
    let repeats = claim.request.is_some() && !body.first;
    let heard = queues.shared.listener.count(&queue);
    let known = queues.shared.empty_cache.known(&key, queues.shared.empty_cache.begin_query(&queue, heard)).filter(|_| !repeats);
    let waits = until > Instant::now();
    if let Some(empty) = known.filter(|_| !waits) {
        return Ok(Json(Claimed { items: Vec::new(), next_due_in: empty.next_due_in() }.into()));
    }
    let alike = Alike { key, queue: queue.clone(), caller: caller.clone(), acts: acts.clone() };
    let mut place = queues.shared.groups.join(alike, Pending { claim, heard, until, repeats, known_empty: known.is_some() });
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
    Ok(Json(claimed.into()))
}

pub(crate) fn seconds(given: f64) -> Result<Duration, WireError> {
    Duration::try_from_secs_f64(given).map_err(|_| WireError::bad("a number of seconds must be between 0 and 2^64"))
}

impl From<Claimed> for ClaimResponse {
    fn from(claimed: Claimed) -> Self {
        let next_due_seconds = claimed.next_due_in.map(|wait| wait.as_secs_f64());
        Self { items: claimed.items.into_iter().map(ClaimedRow::from).collect(), next_due_seconds }
    }
}

impl From<Item> for ClaimedRow {
    fn from(item: Item) -> Self {
        Self {
            key: item.key,
            lease: item.lease,
            kind: item.kind,
            owner: item.owner,
            attempts: item.attempts,
            payload: item.payload,
            partial: item.partial,
            lease_seconds: item.lease_for.as_secs_f64(),
            deadline_seconds: item.deadline_in.as_secs_f64(),
        }
    }
}
