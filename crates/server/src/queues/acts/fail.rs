//! Records a failed attempt.

use axum::extract::State;
use gleaner::Failure;
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
pub(crate) struct FailRequest {
    key: Text,
    /// The lease from the claim.
    lease: i64,
    message: String,
    category: Option<String>,
    /// False: the row is dead at once.
    #[serde(default = "yes")]
    #[schema(default = true)]
    retryable: bool,
    /// Replaces the declared back-off.
    #[schema(minimum = 0)]
    retry_in_seconds: Option<f64>,
    /// For queues that declare a tenant.
    tenant: Option<Text>,
}

fn yes() -> bool {
    true
}

/// Fail a row
///
/// Counts an attempt. The row waits for its next try, or is dead.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/fail",
    tag = "queues",
    params(QueuePath),
    request_body(
        content = FailRequest,
        example = json!({"key": "7", "lease": 1763273000000000_i64, "message": "model not loaded", "category": "transient"})
    ),
    responses(
        (status = 200, description = "The result.", body = RowResult, example = json!({"key": "7", "outcome": "done", "status": "failed"})),
        Lost<RowResult>, Denied, InvalidBody, NotFound,
    )
)]
pub(crate) async fn fail(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<FailRequest>,
) -> Result<RowResult, WireError> {
    let mut failure = Failure::new(body.message);
    if let Some(category) = body.category {
        failure = failure.category(category);
    }
    failure.retryable = body.retryable;
    failure.retry_in = body.retry_in_seconds.map(seconds).transpose()?;
    let held = Held::new(body.key.to_string(), body.lease);
    let failed = [held.clone()];
    let one = act!(queues, caller, queue, body.tenant, |acts, transaction| acts.fail(transaction, &held, &failure).await);
    worked::ended(queues.nodes(), &queue, &failed, std::slice::from_ref(&one), false);
    queues.notify(&queue);
    Ok(one.into())
}
