//! Groups dead rows by the cause of their failure.

use axum::Json;
use axum::extract::State;
use futures_util::FutureExt as _;
use gleaner_http::describe::{Denied, Invalid, NotFound};
use gleaner_http::{Caller, Path, Query, WireError};
use serde::Serialize;
use utoipa::ToSchema;

use super::filter::RowFilter;
use crate::queues::Queues;
use crate::queues::acts::rows::QueuePath;
use crate::queues::failure::refuse;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeadRows {
    causes: Vec<DeadCause>,
    /// There are more dead rows than were counted.
    capped: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeadCause {
    /// The error without what differs from row to row; a filter of lists and bulk acts.
    cause: String,
    count: i64,
    /// The key of one of the rows.
    sample: String,
    /// That row's error.
    #[schema(required)]
    message: Option<String>,
    /// When the newest of them was created, where the queue knows.
    #[schema(required)]
    newest: Option<String>,
}

/// Group dead rows by cause
#[utoipa::path(
    get,
    path = "/v1/queues/{queue}/causes",
    operation_id = "listCauses",
    tag = "queues",
    params(QueuePath, RowFilter),
    responses(
        (status = 200, description = "The causes, the most frequent first.", body = DeadRows,
            example = json!({"causes": [{"cause": "Timeout: no answer within … s", "count": 12, "sample": "7", "message": "no answer within 30 s", "newest": null}], "capped": false})),
        Denied, Invalid, NotFound,
    )
)]
pub(crate) async fn causes(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Query(filter): Query<RowFilter>,
) -> Result<Json<DeadRows>, WireError> {
    let filter = filter.read();
    let view = queues.viewing(&caller, &queue, |view, transaction, _| async move { view.causes(&**transaction, &filter).await }.boxed());
    let (causes, capped) = view.await.map_err(|error| refuse(&caller, &error))?;
    let groups = causes.into_iter().map(|one| DeadCause {
        cause: one.cause,
        count: one.count,
        sample: one.sample,
        message: one.message,
        newest: one.newest,
    });
    Ok(Json(DeadRows { causes: groups.collect(), capped }))
}
