//! Pauses a queue, and resumes it.

use axum::Json;
use axum::extract::State;
use futures_util::FutureExt as _;
use gleaner::Error;
use gleaner_http::describe::{Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, WireError};
use serde::{Deserialize, Serialize};
use tokio_postgres::types::Type;
use utoipa::ToSchema;

use super::rows::QueuePath;
use crate::queues::Queues;
use crate::queues::failure::refuse;
use crate::queues::transaction::with_caller;

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseRequest {
    /// For people who ask why nothing happens.
    reason: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PauseResult {
    /// `done`, or `already` when there was nothing to change.
    outcome: String,
}

/// Pause a queue
///
/// Claims find nothing in it. What is held goes on. For those who operate all rows of the queue.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/pause",
    tag = "queues",
    params(QueuePath),
    request_body(content = PauseRequest, example = json!({"reason": "the provider is down"})),
    responses((status = 200, description = "It is paused.", body = PauseResult, example = json!({"outcome": "done"})), Denied, InvalidBody, NotFound)
)]
pub(crate) async fn pause(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(request): Body<PauseRequest>,
) -> Result<Json<PauseResult>, WireError> {
    queues.set_paused(caller, queue, true, request.reason).await
}

/// Resume a queue
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/resume",
    tag = "queues",
    params(QueuePath),
    request_body(content = PauseRequest, example = json!({})),
    responses((status = 200, description = "Claims find its rows again.", body = PauseResult, example = json!({"outcome": "done"})), Denied, InvalidBody, NotFound)
)]
pub(crate) async fn resume(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(request): Body<PauseRequest>,
) -> Result<Json<PauseResult>, WireError> {
    queues.set_paused(caller, queue, false, request.reason).await
}

impl Queues {
    async fn set_paused(
        &self,
        caller: Caller,
        queue: String,
        paused: bool,
        reason: Option<String>,
    ) -> Result<Json<PauseResult>, WireError> {
        // An unknown queue is the same error as for every act.
        self.acts(&queue).await.map_err(|error| refuse(&caller, &error))?;
        let name = queue.clone();
        let set = with_caller(&self.shared.pool, &caller, |transaction| {
            async move {
                let sql = "select gleaner.pause_queue($1, $2, $3)";
                let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
                    [(&name, Type::TEXT), (&paused, Type::BOOL), (&reason, Type::TEXT)];
                let rows = transaction.query_typed(sql, &values).await.map_err(Error::doing("pause or resume the queue"))?;
                Ok::<String, Error>(rows[0].get(0))
            }
            .boxed()
        });
        let outcome = set.await.map_err(|error| refuse(&caller, &error))?;
        // Claims that wait query again.
        self.notify(&queue);
        Ok(Json(PauseResult { outcome }))
    }
}
