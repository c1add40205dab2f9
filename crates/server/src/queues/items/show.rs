//! Shows one row with what is known about it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use futures_util::FutureExt as _;
use gleaner::Error;
use gleaner_http::describe::{Denied, Invalid, NotFound};
use gleaner_http::{Caller, Path, WireError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::queues::Queues;
use crate::queues::acts::rows::RowPath;
use crate::queues::failure::refuse;

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ShownRow {
    id: String,
    state: String,
    status: String,
    /// All columns of the row.
    #[schema(value_type = Object)]
    row: Value,
    /// What people did to it, the latest last.
    #[schema(value_type = Vec<Object>)]
    audit: Vec<Value>,
    /// Results that came after their lease was lost.
    #[schema(value_type = Vec<Object>)]
    late_results: Vec<Value>,
    /// The other members of a listed row.
    #[serde(flatten)]
    summary: Map<String, Value>,
}

/// Show a row
#[utoipa::path(
    get,
    path = "/v1/queues/{queue}/items/{key}",
    operation_id = "showItem",
    tag = "queues",
    params(RowPath),
    responses(
        (status = 200, description = "The row, what people did to it, and results that came too late.", body = ShownRow,
            example = json!({"id": "7", "state": "ready", "status": "ready", "row": {"id": 7}, "audit": [], "late_results": []})),
        Denied, Invalid, NotFound,
    )
)]
pub(crate) async fn show(
    State(queues): State<Queues>,
    caller: Caller,
    Path(RowPath { queue, key }): Path<RowPath>,
) -> Result<Json<ShownRow>, WireError> {
    let view = queues.viewing(&caller, &queue, |view, transaction, _| async move { view.show(&**transaction, &key).await }.boxed());
    let found = match view.await {
        Ok(found) => found,
        // What cannot be a key is no row's key.
        Err(Error::Database { source, .. }) if source.code().is_some_and(|code| code.code().starts_with("22")) => None,
        Err(error) => return Err(refuse(&caller, &error)),
    };
    let shown = found.and_then(|value| serde_json::from_value(value).ok());
    shown.map(Json).ok_or_else(|| WireError::new(StatusCode::NOT_FOUND, "P0002", "there is no such row, or you may not see it"))
}
