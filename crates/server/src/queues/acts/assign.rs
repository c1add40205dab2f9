//! Changes the owner of rows.

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
pub(crate) struct AssignRequest {
    /// The keys of the rows.
    keys: Vec<Text>,
    /// The new owner. No owner when left out.
    owner: Option<Text>,
    /// For queues that declare a tenant.
    tenant: Option<Text>,
}

/// Assign rows
///
/// Changes the owner of rows, or removes it. Only for queues that declare an owner.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/assign",
    tag = "queues",
    params(QueuePath),
    request_body(content = AssignRequest, example = json!({"keys": ["7"], "owner": 3})),
    responses(
        (status = 200, description = "The result for each row.", body = RowResults,
            example = json!({"items": [{"key": "7", "outcome": "done", "status": "raw"}]})),
        Denied, InvalidBody, NotFound, Conflict,
    )
)]
pub(crate) async fn assign(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<AssignRequest>,
) -> Result<RowResults, WireError> {
    let (keys, owner) = (keys(&body.keys), body.owner.as_ref().map(ToString::to_string));
    let answers =
        act!(queues, caller, queue, body.tenant, |acts, transaction| acts.assign(transaction, &texts(&keys), owner.as_deref()).await);
    queues.notify(&queue);
    Ok(answers.into())
}
