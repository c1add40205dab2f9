//! Makes rows dead.

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
pub(crate) struct BuryRequest {
    /// The keys of the rows.
    keys: Vec<Text>,
    reason: Option<String>,
    /// For queues that declare a tenant.
    tenant: Option<Text>,
}

/// Bury rows
///
/// They are dead letters until they are requeued.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/bury",
    tag = "queues",
    params(QueuePath),
    request_body(content = BuryRequest, example = json!({"keys": ["7"], "reason": "poison"})),
    responses(
        (status = 200, description = "The result for each row.", body = RowResults,
            example = json!({"items": [{"key": "7", "outcome": "done", "status": "failed"}]})),
        Denied, InvalidBody, NotFound, Conflict,
    )
)]
pub(crate) async fn bury(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<BuryRequest>,
) -> Result<RowResults, WireError> {
    let keys = keys(&body.keys);
    let answers = act!(queues, caller, queue, body.tenant, |acts, transaction| {
        acts.bury(transaction, &texts(&keys), body.reason.as_deref()).await
    });
    Ok(answers.into())
}
