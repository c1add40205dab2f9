//! Puts a held row back, to be tried later.

use axum::extract::State;
use gleaner::queue::Held;
use gleaner_http::describe::{Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, WireError};
use serde::Deserialize;
use utoipa::ToSchema;

use super::rows::{Lost, QueuePath, RowResult, Text};
use crate::queues::claim::seconds;
use crate::queues::{Queues, worked};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnoozeRequest {
    key: Text,
    /// The lease from the claim.
    lease: i64,
    #[schema(minimum = 0)]
    seconds: f64,
    /// For queues that declare a tenant.
    tenant: Option<Text>,
}

/// Snooze a row
///
/// Puts it back, to be tried later. Counts no attempt.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/snooze",
    tag = "queues",
    params(QueuePath),
    request_body(content = SnoozeRequest, example = json!({"key": "7", "lease": 1763273000000000_i64, "seconds": 60})),
    responses(
        (status = 200, description = "The result.", body = RowResult, example = json!({"key": "7", "outcome": "done", "status": "ready"})),
        Lost<RowResult>, Denied, InvalidBody, NotFound,
    )
)]
pub(crate) async fn snooze(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<SnoozeRequest>,
) -> Result<RowResult, WireError> {
    let by = seconds(body.seconds)?;
    let held = Held::new(body.key.to_string(), body.lease);
    let snoozed = [held.clone()];
    let one = act!(queues, caller, queue, body.tenant, |acts, transaction| acts.snooze(transaction, &held, by).await);
    worked::ended(queues.nodes(), &queue, &snoozed, std::slice::from_ref(&one), false);
    queues.notify(&queue);
    Ok(one.into())
}
