//! Lists the leases of a holder that have ended.

use axum::Json;
use axum::extract::State;
use gleaner::queue::Held;
use gleaner_http::describe::{Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, WireError};
use serde::Serialize;
use utoipa::ToSchema;

use super::rows::{HeldRows, QueuePath};
use crate::queues::Queues;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndedResponse {
    items: Vec<EndedLease>,
}

#[derive(Debug, Serialize, ToSchema)]
struct EndedLease {
    key: String,
    lease: i64,
}

/// List the leases that have ended
///
/// Which of these rows the caller no longer holds: cancelled, finished, or taken by another worker. Does not extend a
/// lease and takes no lock. Rows that the caller cannot see are left out.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/ended",
    tag = "queues",
    params(QueuePath),
    request_body(content = HeldRows, example = json!({"items": [{"key": "7", "lease": 1763273000000000_i64}]})),
    responses(
        (status = 200, description = "The leases that have ended.", body = EndedResponse,
            example = json!({"items": [{"key": "7", "lease": 1763273000000000_i64}]})),
        Denied, InvalidBody, NotFound,
    )
)]
pub(crate) async fn ended(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<HeldRows>,
) -> Result<Json<EndedResponse>, WireError> {
    let held: Vec<Held> = body.items.into_iter().map(Held::from).collect();
    let ended = act!(queues, caller, queue, body.tenant, |acts, transaction| acts.ended(transaction, &held).await);
    let items = ended.into_iter().map(|held| EndedLease { key: held.key, lease: held.lease }).collect();
    Ok(Json(EndedResponse { items }))
}
