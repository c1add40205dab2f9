//! Counts the rows of a queue by state.

use axum::Json;
use axum::extract::State;
use futures_util::FutureExt as _;
use gleaner_http::describe::{Denied, NotFound};
use gleaner_http::{Caller, Path, WireError};
use serde::Serialize;
use utoipa::ToSchema;

use crate::queues::Queues;
use crate::queues::acts::rows::QueuePath;
use crate::queues::failure::refuse;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StateCount {
    /// `ready`, `running`, `expired`, `scheduled`, `failed`, `dead`, `finished`; `waiting` when there are too many to tell apart.
    state: String,
    count: i64,
    /// There may be more; of finished rows, that it is an estimate.
    capped: bool,
    /// Seconds since the oldest of them was due; negative while it is not.
    #[schema(required)]
    oldest_seconds: Option<f64>,
}

/// Count rows by state
///
/// Its cost is bounded: counts of unfinished rows stop at ten thousand, and finished rows of a large table are estimated.
#[utoipa::path(
    get,
    path = "/v1/queues/{queue}/stats",
    operation_id = "queueStats",
    tag = "queues",
    params(QueuePath),
    responses(
        (status = 200, description = "The counts.", body = Vec<StateCount>,
            example = json!([{"state": "ready", "count": 3, "capped": false, "oldest_seconds": 1.5}])),
        Denied, NotFound,
    )
)]
pub(crate) async fn stats(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
) -> Result<Json<Vec<StateCount>>, WireError> {
    let view = queues.viewing(&caller, &queue, |view, transaction, _| async move { view.stats(&**transaction).await }.boxed());
    let stats = view.await.map_err(|error| refuse(&caller, &error))?;
    let counts =
        stats.into_iter().map(|one| StateCount { state: one.state, count: one.count, capped: one.capped, oldest_seconds: one.oldest_age });
    Ok(Json(counts.collect()))
}
