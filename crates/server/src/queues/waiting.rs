//! How much work waits, for people to see. Counted seldom, however many clients ask.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use futures_util::FutureExt as _;
use gleaner::queue::Waiting;
use gleaner::{Acts, Claim, Error};
use gleaner_http::describe::{Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, WireError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Queues;
use super::acts::rows::{QueuePath, Text};
use super::failure::refuse;
use super::key::Key;
use super::transaction::with_caller;

/// How long a count is fresh.
const FRESH: Duration = Duration::from_secs(5);
/// How long an older count is still used when a new one may not be made yet.
const KEPT: Duration = Duration::from_secs(60);
/// The pause between two counts, for any queue and any caller: a thousand agents with an owner each would otherwise cause a
/// thousand counts.
const APART: Duration = Duration::from_millis(200);

/// The cached counts, and when the next count may be made.
#[derive(Debug, Default)]
pub(super) struct Counts {
    known: Mutex<Cached>,
    counted: AtomicU64,
}

#[derive(Debug, Default)]
struct Cached {
    figures: HashMap<Key, (Instant, Waiting)>,
    last: Option<Instant>,
}

enum Turn {
    Known(Option<Waiting>),
    Count,
}

impl Counts {
    /// Returns the cached count, or says that the caller must count.
    fn turn(&self, key: &Key) -> Turn {
        let now = Instant::now();
        let mut known = self.known.lock().expect("no panic holds it");
        let figure = known.figures.get(key).filter(|(at, _)| now.duration_since(*at) < KEPT).copied();
        let fresh = figure.is_some_and(|(at, _)| now.duration_since(at) < FRESH);
        if fresh || known.last.is_some_and(|last| now.duration_since(last) < APART) {
            return Turn::Known(figure.map(|(_, waiting)| waiting));
        }
        known.last = Some(now);
        Turn::Count
    }

    fn remember(&self, key: Key, waiting: Waiting) {
        let now = Instant::now();
        let mut known = self.known.lock().expect("no panic holds it");
        known.figures.retain(|_, (at, _)| now.duration_since(*at) < KEPT);
        known.figures.insert(key, (now, waiting));
    }
}

impl Queues {
    /// How many counts were really made.
    pub fn counted(&self) -> u64 {
        self.shared.counts.counted.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitingRequest {
    /// Also count rows of this owner.
    owner: Option<Text>,
    /// Count rows of these kinds. All when left out.
    kinds: Option<Vec<String>>,
    /// For queues that declare a tenant.
    tenant: Option<Text>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WaitingResponse {
    /// Null when there is no recent count and a new one may not be made yet.
    #[schema(required)]
    count: Option<u64>,
    /// Counting stopped at ten thousand rows: there may be more.
    capped: bool,
}

/// Count the rows that wait
///
/// How many rows a claim could take now. Every caller that may claim may ask. A count is used for five seconds, and the
/// server counts at most five times a second for all callers; the others get the last count, or null.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/waiting",
    tag = "queues",
    params(QueuePath),
    request_body(content = WaitingRequest, example = json!({"kinds": ["resize"]})),
    responses(
        (status = 200, description = "How many rows are due and could be claimed with these arguments.", body = WaitingResponse,
            example = json!({"count": 3, "capped": false})),
        Denied, InvalidBody, NotFound,
    )
)]

pub(crate) async fn waiting(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<WaitingRequest>,
) -> Result<Json<WaitingResponse>, WireError> {
    // A claim for no rows gets no rows, but the caller must still be allowed to claim.
    let mut claim = Claim::by("waiting").limit(0);
    claim.owner = body.owner.map(|owner| owner.to_string());
    claim.kinds = body.kinds;
    let tenant = body.tenant.map(|tenant| tenant.to_string());
    let key = Key::new(&queue, &caller, &claim, tenant.as_deref());
    let counts = &queues.shared.counts;
    let waiting = match counts.turn(&key) {
        Turn::Known(waiting) => waiting,
        Turn::Count => {
            counts.counted.fetch_add(1, Ordering::Relaxed);
            let waiting = count(&queues, &caller, &queue, claim, tenant).await.map_err(|error| refuse(&caller, &error))?;
            counts.remember(key, waiting);
            Some(waiting)
        }
    };
    let (count, capped) = (waiting.map(|waiting| waiting.count), waiting.is_some_and(|waiting| waiting.capped));
    Ok(Json(WaitingResponse { count, capped }))
}

async fn count(queues: &Queues, caller: &Caller, queue: &str, mut claim: Claim, tenant: Option<String>) -> Result<Waiting, Error> {
    let known = queues.acts(queue).await?;
    let empty = claim.clone();
    let (acts, due) = with_caller(&queues.shared.pool, caller, |transaction| {
        async move {
            let mut acts = Acts::clone(&known);
            if let Some(tenant) = tenant {
                acts = acts.within(&**transaction, tenant).await?;
            }
            let due = acts.claim(&**transaction, &empty).await?.next_due_in;
            Ok::<_, Error>((acts, due))
        }
        .boxed()
    })
    .await?;
    if due != Some(Duration::ZERO) {
        return Ok(Waiting::default());
    }
    claim.kinds = scope(caller, claim.kinds);
    // Uses the server's own role: a worker's key may claim rows that it cannot see before it holds them.
    let client = gleaner::connect::checkout(&queues.shared.pool).await?;
    acts.waiting(&**client, &claim).await
}

/// The kinds that a worker's key is limited to, when the request names none.
fn scope(caller: &Caller, kinds: Option<Vec<String>>) -> Option<Vec<String>> {
    let Caller::Token { claims, .. } = caller else { return kinds };
    let scoped = || Some(claims.get("kinds")?.as_array()?.iter().filter_map(|kind| Some(kind.as_str()?.to_owned())).collect());
    kinds.or_else(|| scoped().filter(|_| claims.get("worker").is_some_and(|worker| *worker == true)))
}
