//! Changes when waiting rows are due.

use axum::extract::State;
use gleaner_http::describe::{Conflict, Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, WireError};
use serde::Deserialize;
use utoipa::ToSchema;

use super::rows::{QueuePath, RowResults, Text};
use super::{keys, texts};
use crate::queues::Queues;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RescheduleRequest {
    /// The keys of the rows.
    keys: Vec<Text>,
    /// A time with its zone, such as `2026-05-04T09:00:00Z`.
    due: String,
    /// For queues that declare a tenant.
    tenant: Option<Text>,
}

/// Change the due time
///
/// Of rows that wait. A held row answers `lost`, a finished one `already`.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/reschedule",
    tag = "queues",
    params(QueuePath),
    request_body(content = RescheduleRequest, example = json!({"keys": ["7"], "due": "2026-05-04T09:00:00Z"})),
    responses(
        (status = 200, description = "The result for each row.", body = RowResults,
            example = json!({"items": [{"key": "7", "outcome": "done", "status": "ready"}]})),
        Denied, InvalidBody, NotFound, Conflict,
    )
)]
pub(crate) async fn reschedule(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<RescheduleRequest>,
) -> Result<RowResults, WireError> {
    let keys = keys(&body.keys);
    let (due, tenant) = (body.due, body.tenant);
    let answers = act!(queues, caller, queue, tenant, |acts, transaction| acts.reschedule(transaction, &texts(&keys), &due).await);
    queues.notify(&queue);
    Ok(answers.into())
}
