//! Shows how far bulk acts have come.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use futures_util::FutureExt as _;
use gleaner::Error;
use gleaner_http::describe::{Denied, Invalid, NotFound};
use gleaner_http::{Caller, Path, WireError};

use super::request::{Bulk, BulkPath};
use super::store;
use crate::queues::Queues;
use crate::queues::acts::rows::QueuePath;
use crate::queues::failure::refuse;
use crate::queues::items::viewing::Scope;
use crate::team::who;

/// List bulk acts
///
/// The latest ten. Who does not operate all rows sees its own.
#[utoipa::path(
    get,
    path = "/v1/queues/{queue}/bulk",
    operation_id = "listBulk",
    tag = "queues",
    params(QueuePath),
    responses((status = 200, description = "The bulk acts, the newest first.", body = Vec<Bulk>, example = json!([])), Denied, NotFound)
)]
pub(crate) async fn list(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
) -> Result<Json<Vec<Bulk>>, WireError> {
    let listed = async {
        let whose = queues.whose(&caller, &queue).await?;
        let client = queues.shared.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        store::latest(&**client, &queue, whose.as_deref()).await
    };
    Ok(Json(listed.await.map_err(|error| refuse(&caller, &error))?))
}

/// Watch a bulk act
#[utoipa::path(
    get,
    path = "/v1/queues/{queue}/bulk/{id}",
    operation_id = "watchBulk",
    tag = "queues",
    params(BulkPath),
    responses(
        (status = 200, description = "How far it has come.", body = Bulk,
            example = json!({"id": "01a1e32a-89cf-74ed-b1f2-6eb8fe58a467", "act": "requeue", "filter": {"state": "dead"}, "caller": "service_role",
                "state": "done", "total": 512, "done": 500, "already": 12, "failed": 0, "error": null,
                "started_at": "2026-01-02T03:04:05Z", "changed_at": "2026-01-02T03:04:06Z"})),
        Denied, Invalid, NotFound,
    )
)]
pub(crate) async fn watch(
    State(queues): State<Queues>,
    caller: Caller,
    Path(BulkPath { queue, id }): Path<BulkPath>,
) -> Result<Json<Bulk>, WireError> {
    queues.bulk(&caller, &queue, id).await.map(Json)
}

impl Queues {
    /// The caller whose bulk acts are shown to it; none when it sees all.
    pub(super) async fn whose(&self, caller: &Caller, queue: &str) -> gleaner::Result<Option<String>> {
        let scope = self.viewing(caller, queue, |_, _, scope| async move { Ok::<_, Error>(scope) }.boxed()).await?;
        if scope == Scope::All { Ok(None) } else { Ok(Some(who(caller))) }
    }

    /// One bulk act, if the caller may see it.
    pub(super) async fn bulk(&self, caller: &Caller, queue: &str, id: uuid::Uuid) -> Result<Bulk, WireError> {
        let found = async {
            let whose = self.whose(caller, queue).await?;
            let client = self.shared.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
            store::find(&**client, queue, id, whose.as_deref()).await
        };
        let found = found.await.map_err(|error| refuse(caller, &error))?;
        found.ok_or_else(|| WireError::new(StatusCode::NOT_FOUND, "P0002", "there is no such bulk act, or you may not see it"))
    }
}
