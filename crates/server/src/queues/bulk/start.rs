//! Starts a bulk act.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use futures_util::FutureExt as _;
use gleaner::Error;
use gleaner_http::describe::{Conflict, Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, WireError};

use super::request::{Bulk, BulkAct, BulkRequest};
use super::store;
use crate::queues::Queues;
use crate::queues::acts::rows::QueuePath;
use crate::queues::failure::refuse;
use crate::queues::items::viewing::Scope;
use crate::team::who;

/// The most rows of one bulk act.
const MOST: usize = 100_000;

/// Act on all rows that match
///
/// The rows are chosen now, and worked off by the server in batches; `GET /v1/queues/{queue}/bulk/{id}` shows how far it has
/// come. `GET /v1/queues/{queue}/count` with the same filter says beforehand how many there are. Members act on their own rows
/// and on rows without an owner, and name one of the two as the owner to filter by.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/bulk",
    operation_id = "startBulk",
    tag = "queues",
    params(QueuePath),
    request_body(content = BulkRequest, example = json!({"act": "requeue", "filter": {"state": "dead"}})),
    responses(
        (status = 202, description = "It has started.", body = Bulk,
            example = json!({"id": "01a1e32a-89cf-74ed-b1f2-6eb8fe58a467", "act": "requeue", "filter": {"state": "dead"}, "caller": "service_role",
                "state": "running", "total": 512, "done": 0, "already": 0, "failed": 0, "error": null,
                "started_at": "2026-01-02T03:04:05Z", "changed_at": "2026-01-02T03:04:05Z"})),
        Denied, InvalidBody, NotFound, Conflict,
    )
)]
pub(crate) async fn start(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(request): Body<BulkRequest>,
) -> Result<(StatusCode, Json<Bulk>), WireError> {
    if request.act == BulkAct::Reschedule && request.due.is_none() {
        return Err(WireError::bad("reschedule needs `due`, a time with its zone"));
    }
    let filter = request.filter.read();
    let choose = queues.viewing(&caller, &queue, |view, transaction, scope| {
        async move {
            if scope == Scope::Nothing {
                return Ok(None);
            }
            let most = i64::try_from(MOST).unwrap_or(i64::MAX) + 1;
            Ok::<_, Error>(Some(view.keys(&**transaction, &filter, None, most).await?))
        }
        .boxed()
    });
    let chosen = choose.await.map_err(|error| refuse(&caller, &error))?;
    let Some(keys) = chosen else {
        return Err(WireError::new(StatusCode::FORBIDDEN, "42501", format!("only administrators may do this in the queue {queue}")));
    };
    if keys.len() > MOST {
        return Err(WireError::bad(format!("these are more than {MOST} rows; narrow the filter")));
    }
    let entered = async {
        let client = queues.shared.pool.get().await.map_err(|error| Error::Connect(error.to_string()))?;
        store::enter(&**client, &queue, &request, &who(&caller), keys.len()).await
    };
    let Some(bulk) = entered.await.map_err(|error| refuse(&caller, &error))? else {
        return Err(WireError::new(StatusCode::CONFLICT, "55006", "another bulk act runs in this queue; wait for it, or stop it"));
    };
    // In a task of its own: the caller may leave the page.
    tokio::spawn(queues.clone().work_off(caller, queue, bulk.id, request, keys));
    Ok((StatusCode::ACCEPTED, Json(bulk)))
}
