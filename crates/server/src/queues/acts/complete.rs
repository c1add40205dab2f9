//! Completes rows with their results.

use axum::extract::State;
use gleaner::queue::{Completion, Held};
use gleaner_http::describe::{Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, WireError};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::rows::{Lost, OneOrMany, OneOrManyResults, QueuePath, RowResult, Text};
use crate::queues::{Queues, worked};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompletedRow {
    key: Text,
    /// The lease from the claim.
    lease: i64,
    /// Any JSON; stored in the declared result column.
    #[serde(default)]
    result: Option<Value>,
}

pub(crate) type CompletedRows = OneOrMany<CompletedRow>;

/// Complete rows
///
/// One row or many. Each row gets a result of its own, and a stale lease does not affect the others.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/complete",
    tag = "queues",
    params(QueuePath),
    request_body(
        content = CompletedRows,
        example = json!({"key": "7", "lease": 1763273000000000_i64, "result": {"text": "Hello Ann"}})
    ),
    responses(
        (status = 200, description = "The result for each row.", body = OneOrManyResults,
            example = json!({"key": "7", "outcome": "done", "status": "done"})),
        Lost<RowResult>, Denied, InvalidBody, NotFound,
    )
)]
pub(crate) async fn complete(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<CompletedRows>,
) -> Result<OneOrManyResults, WireError> {
    let completion = |row: CompletedRow| Completion::new(Held::new(row.key.to_string(), row.lease), row.result);
    let completions: Vec<_> = body.items.into_iter().map(completion).collect();
    let held: Vec<Held> = completions.iter().map(|completion| completion.held.clone()).collect();
    let answers = act!(queues, caller, queue, body.tenant, |acts, transaction| acts.complete(transaction, &completions).await);
    worked::ended(queues.nodes(), &queue, &held, &answers, true);
    Ok(OneOrManyResults::new(body.single, answers))
}
