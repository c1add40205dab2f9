//! Cancels rows, by key or by the values of their columns.

use axum::extract::State;
use gleaner_http::describe::{Conflict, Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, WireError};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::rows::{QueuePath, RowResults, Text};
use super::{keys, texts};
use crate::queues::Queues;

/// Either `keys` or `matching` says which rows.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelRequest {
    /// The keys of the rows.
    keys: Option<Vec<Text>>,
    /// Columns and their values: every row that has them.
    matching: Option<Map<String, Value>>,
    reason: Option<String>,
    /// For queues that declare a tenant.
    tenant: Option<Text>,
}

/// Cancel rows
///
/// By key, or all rows with these values, including rows that are being worked on.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/cancel",
    tag = "queues",
    params(QueuePath),
    request_body(content = CancelRequest, example = json!({"keys": ["7"], "reason": "answered already"})),
    responses(
        (status = 200, description = "The result for each row.", body = RowResults,
            example = json!({"items": [{"key": "7", "outcome": "done", "status": "cancelled"}]})),
        Denied, InvalidBody, NotFound, Conflict,
    )
)]
pub(crate) async fn cancel(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<CancelRequest>,
) -> Result<RowResults, WireError> {
    let reason = body.reason;
    let answers = match (body.keys, body.matching) {
        (Some(rows), None) => {
            let keys = keys(&rows);
            act!(queues, caller, queue, body.tenant, |acts, transaction| acts.cancel(transaction, &texts(&keys), reason.as_deref()).await)
        }
        (None, Some(matching)) => {
            let matching = Value::Object(matching);
            act!(queues, caller, queue, body.tenant, |acts, transaction| {
                acts.cancel_matching(transaction, &matching, reason.as_deref()).await
            })
        }
        _ => return Err(WireError::bad("either `keys` or `matching` says which rows")),
    };
    Ok(answers.into())
}
