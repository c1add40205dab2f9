//! Records progress, which extends the lease.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use gleaner::Outcome;
use gleaner::queue::{Held, Progress};
use gleaner_http::describe::{Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, WireError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::rows::{Lost, QueuePath, RowResult, Text};
use crate::queues::Queues;
use crate::queues::claim::seconds;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProgressRequest {
    key: Text,
    /// The lease from the claim.
    lease: i64,
    stage: Option<String>,
    #[schema(minimum = 0, maximum = 100)]
    percent: Option<f64>,
    /// Any JSON; merged into the stored partial result.
    partial: Option<Value>,
    /// How long the lease lasts from now on. The default is the queue's declared hold time.
    #[schema(minimum = 0)]
    hold_seconds: Option<f64>,
    /// For queues that declare a tenant.
    tenant: Option<Text>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProgressResponse {
    #[serde(flatten)]
    row: RowResult,
    /// How long the lease lasts now.
    lease_seconds: f64,
}

/// Report progress
///
/// Stage, percent and partial results. Extends the lease up to the deadline.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/progress",
    tag = "queues",
    params(QueuePath),
    request_body(
        content = ProgressRequest,
        example = json!({
            "key": "7", "lease": 1763273000000000_i64, "stage": "transcribe", "percent": 40, "partial": {"text": "Hello"}
        })
    ),
    responses(
        (status = 200, description = "The result, and how long the lease lasts.", body = ProgressResponse,
            example = json!({"key": "7", "outcome": "done", "status": "running", "lease_seconds": 300.0})),
        Lost<ProgressResponse>, Denied, InvalidBody, NotFound,
    )
)]
pub(crate) async fn progress(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<ProgressRequest>,
) -> Result<(StatusCode, Json<ProgressResponse>), WireError> {
    let lease = body.lease;
    let held = Held::new(body.key.to_string(), lease);
    let hold = body.hold_seconds.map(seconds).transpose()?;
    let progress = Progress { stage: body.stage, percent: body.percent, partial: body.partial, hold };
    let (one, left) = act!(queues, caller, queue, body.tenant, |acts, transaction| acts.progress(transaction, &held, &progress).await);
    if one.outcome == Outcome::Done {
        queues.nodes().kept(&queue, &one.key, lease, left);
    }
    let row = RowResult::from(one);
    Ok((row.status(), Json(ProgressResponse { row, lease_seconds: left.as_secs_f64() })))
}
