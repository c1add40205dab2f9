//! Enqueues rows.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use gleaner::queue::OnDuplicate;
use gleaner_http::describe::{Conflict, Denied, InvalidBody, NotFound};
use gleaner_http::{Body, Caller, Path, WireError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::rows::{QueuePath, Text};
use crate::queues::Queues;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnqueueRequest {
    /// The rows. The fields of each are columns of the table.
    items: Vec<Map<String, Value>>,
    #[serde(default)]
    on_duplicate: Duplicate,
    /// For queues that declare a tenant.
    tenant: Option<Text>,
}

/// What happens when a waiting row has the same unique key: it stays as it is, or takes the new values.
#[derive(Debug, Default, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(default = "skip")]
enum Duplicate {
    #[default]
    Skip,
    Replace,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EnqueueResponse {
    items: Vec<EnqueuedRow>,
}

#[derive(Debug, Serialize, ToSchema)]
struct EnqueuedRow {
    key: String,
    /// `enqueued`; `standing`: a waiting row with the same unique key stays; `replaced`: it took the new values.
    outcome: String,
}

/// Enqueue rows
///
/// Rows of the queue's table, by column. A plain insert into the table does the same; this form is for many rows, with a
/// unique key.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/enqueue",
    tag = "queues",
    params(QueuePath),
    request_body(content = EnqueueRequest, example = json!({"items": [{"kind": "mail", "payload": {"to": "ann@example.com"}}]})),
    responses(
        (status = 201, description = "The keys of the rows.", body = EnqueueResponse,
            example = json!({"items": [{"key": "7", "outcome": "enqueued"}]})),
        Denied, InvalidBody, NotFound, Conflict,
    )
)]
pub(crate) async fn enqueue(
    State(queues): State<Queues>,
    caller: Caller,
    Path(QueuePath { queue }): Path<QueuePath>,
    Body(body): Body<EnqueueRequest>,
) -> Result<(StatusCode, Json<EnqueueResponse>), WireError> {
    let items: Vec<Value> = body.items.into_iter().map(Value::Object).collect();
    let on_duplicate = match body.on_duplicate {
        Duplicate::Skip => OnDuplicate::Skip,
        Duplicate::Replace => OnDuplicate::Replace,
    };
    let rows = act!(queues, caller, queue, body.tenant, |acts, transaction| acts.enqueue(transaction, &items, on_duplicate).await);
    queues.notify(&queue);
    let items = rows.into_iter().map(|row| EnqueuedRow { key: row.key, outcome: row.outcome }).collect();
    Ok((StatusCode::CREATED, Json(EnqueueResponse { items })))
}
