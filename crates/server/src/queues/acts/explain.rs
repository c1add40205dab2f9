//! Explains why a row is claimable or not.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use gleaner_http::describe::{Denied, Invalid, NotFound};
use gleaner_http::{Caller, Path, Query, WireError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::rows::{RowPath, Text};
use crate::queues::Queues;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExplainQuery {
    /// For an agent of this owner.
    owner: Option<String>,
    /// For queues that declare a tenant.
    #[param(value_type = Option<String>)]
    tenant: Option<Text>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Explanation {
    claimable: bool,
    /// How it would be claimed: as the owner's own work, as work without an owner, or as stale work of others.
    #[schema(required)]
    class: Option<String>,
    #[schema(required)]
    state: Option<String>,
    #[schema(required)]
    reason: Option<String>,
    #[schema(required)]
    claimable_at: Option<String>,
    /// The values in the row that decide.
    #[serde(flatten)]
    row: Map<String, Value>,
}

/// Explain a row
///
/// Why the row is claimable or not, and when it will be.
#[utoipa::path(
    get,
    path = "/v1/queues/{queue}/items/{key}/explain",
    tag = "queues",
    params(RowPath, ExplainQuery),
    responses(
        (status = 200, description = "Why, and when.", body = Explanation,
            example = json!({
                "id": 7, "claimable": true, "class": "global", "state": "ready", "status": "ready", "reason": "its time has come",
                "claimable_at": "2026-01-02T03:04:05+00:00", "attempts": 0, "lost": 0
            })),
        Denied, Invalid, NotFound,
    )
)]
pub(crate) async fn explain(
    State(queues): State<Queues>,
    caller: Caller,
    Path(RowPath { queue, key }): Path<RowPath>,
    Query(query): Query<ExplainQuery>,
) -> Result<Json<Explanation>, WireError> {
    let found =
        act!(queues, caller, queue, query.tenant, |acts, transaction| acts.explain(transaction, &key, query.owner.as_deref()).await);
    let explanation = found.and_then(|value| serde_json::from_value(value).ok());
    explanation.map(Json).ok_or_else(|| WireError::new(StatusCode::NOT_FOUND, "P0002", "there is no such row, or you may not see it"))
}
