//! Makes rows ready again.

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
pub(crate) struct RequeueRequest {
    /// The keys of the rows.
    keys: Vec<Text>,
    /// When they are due, such as `2026-05-04T09:00:00Z`; now where it is left out.
    due: Option<String>,
    /// For queues that declare a tenant.
    tenant: Option<Text>,
}

/// Requeue rows
///
/// They are tried again, also if they were dead: now, or at `due`.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/requeue",
    tag = "queues",
    params(QueuePath),
    request_body(content = RequeueRequest, example = json!({"keys": ["7"]})),
    responses(
        (status = 200, description = "The result for each row.", body = RowResults,
            example = json!({"items": [{"key": "7", "outcome": "done", "status": "ready"}]})),
        Denied, InvalidBody, NotFound, Conflict,
    )
)]
pub(crate) async fn requeue(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<RequeueRequest>,
) -> Result<RowResults, WireError> {
    let keys = keys(&body.keys);
    let (due, tenant) = (body.due, body.tenant);
    // One transaction: a row that is due later must not be claimed in between.
    let answers = act!(queues, caller, queue, tenant, |acts, transaction| {
        let answers = acts.requeue(transaction, &texts(&keys)).await?;
        if let Some(due) = due {
            acts.reschedule(transaction, &texts(&keys), &due).await?;
        }
        Ok(answers)
    });
    queues.notify(&queue);
    Ok(answers.into())
}
