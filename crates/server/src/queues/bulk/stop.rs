//! Stops a bulk act.

use axum::Json;
use axum::extract::State;
use gleaner::Error;
use gleaner_http::describe::{Denied, Invalid, NotFound};
use gleaner_http::{Caller, Path, WireError};

use super::request::{Bulk, BulkPath};
use super::store;
use crate::queues::Queues;
use crate::queues::failure::refuse;

/// Stop a bulk act
///
/// After the batch at hand. What was done stays done; the rest is not touched.
#[utoipa::path(
    delete,
    path = "/v1/queues/{queue}/bulk/{id}",
    operation_id = "stopBulk",
    tag = "queues",
    params(BulkPath),
    responses(
        (status = 200, description = "It stops.", body = Bulk,
            example = json!({"id": "01a1e32a-89cf-74ed-b1f2-6eb8fe58a467", "act": "requeue", "filter": {}, "caller": "service_role",
                "state": "running", "total": 5000, "done": 500, "already": 0, "failed": 0, "error": null,
                "started_at": "2026-01-02T03:04:05Z", "changed_at": "2026-01-02T03:04:06Z"})),
        Denied, Invalid, NotFound,
    )
)]
pub(crate) async fn stop(
    State(queues): State<Queues>,
    caller: Caller,
    Path(BulkPath { queue, id }): Path<BulkPath>,
) -> Result<Json<Bulk>, WireError> {
    let bulk = queues.bulk(&caller, &queue, id).await?;
    let stopped = async {
        let client = queues.shared.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        store::stop(&**client, bulk.id).await
    };
    stopped.await.map_err(|error| refuse(&caller, &error))?;
    Ok(Json(bulk))
}
