//! Records that the work on claimed rows begins.

use axum::extract::State;
use gleaner::queue::Held;
use gleaner_http::describe::{Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, WireError};

use super::rows::{HeldRows, Lost, OneOrManyResults, QueuePath, RowResult};
use crate::queues::Queues;

/// Start the work on rows
///
/// From now on a lost lease counts against the row. One row or many.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/start",
    tag = "queues",
    params(QueuePath),
    request_body(content = HeldRows, example = json!({"key": "7", "lease": 1763273000000000_i64})),
    responses(
        (status = 200, description = "The result for each row.", body = OneOrManyResults,
            example = json!({"key": "7", "outcome": "done", "status": "running"})),
        Lost<RowResult>, Denied, InvalidBody, NotFound,
    )
)]
pub(crate) async fn start(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<HeldRows>,
) -> Result<OneOrManyResults, WireError> {
    let held: Vec<Held> = body.items.into_iter().map(Held::from).collect();
    let answers = act!(queues, caller, queue, body.tenant, |acts, transaction| acts.start(transaction, &held).await);
    Ok(OneOrManyResults::new(body.single, answers))
}
