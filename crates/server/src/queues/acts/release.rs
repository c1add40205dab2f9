//! Releases claimed rows, so that others can claim them.

use axum::extract::State;
use gleaner::queue::Held;
use gleaner_http::describe::{Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, WireError};

use super::rows::{HeldRows, Lost, OneOrManyResults, QueuePath, RowResult};
use crate::queues::{Queues, worked};

/// Release rows
///
/// Gives back work that was not started. Counts no attempt. One row or many.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/release",
    tag = "queues",
    params(QueuePath),
    request_body(content = HeldRows, example = json!({"key": "7", "lease": 1763273000000000_i64})),
    responses(
        (status = 200, description = "The result for each row.", body = OneOrManyResults,
            example = json!({"key": "7", "outcome": "done", "status": "ready"})),
        Lost<RowResult>, Denied, InvalidBody, NotFound,
    )
)]
pub(crate) async fn release(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<HeldRows>,
) -> Result<OneOrManyResults, WireError> {
    let held: Vec<Held> = body.items.into_iter().map(Held::from).collect();
    let released = held.clone();
    let answers = act!(queues, caller, queue, body.tenant, |acts, transaction| acts.release(transaction, &held).await);
    worked::ended(queues.nodes(), &queue, &released, &answers, false);
    queues.notify(&queue);
    Ok(OneOrManyResults::new(body.single, answers))
}
