//! `/health`: the process is running. `/ready`: it can do its work.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use gleaner::{Error, Pool};
use serde_json::json;

use crate::State;

pub async fn health() -> Json<serde_json::Value> {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}

pub async fn ready(Shared(state): Shared<Arc<State>>) -> Response {
    let asked = tokio::time::timeout(Duration::from_secs(3), is_migrated(&state.pool)).await;
    let (status, problem) = match asked {
        Ok(Ok(true)) => (StatusCode::OK, None),
        Ok(Ok(false)) => (
            StatusCode::SERVICE_UNAVAILABLE,
            Some("the database is not migrated to this version, or lacks the system crm; run `gleaner migrate --systems crm`"),
        ),
        Ok(Err(error)) => {
            // The error is logged and not sent: clients must not learn where the database is or which role we use.
            tracing::warn!(%error, "not ready");
            (StatusCode::SERVICE_UNAVAILABLE, Some("the database does not answer"))
        }
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, Some("the database does not answer")),
    };
    (status, Json(json!({"ready": problem.is_none(), "problem": problem}))).into_response()
}

/// Whether everything that the webhook endpoint calls exists in the database.
pub async fn is_migrated(pool: &Pool) -> gleaner::Result<bool> {
    let client = pool.get().await.map_err(|e| Error::Connect(e.to_string()))?;
    let rows = client
        .query_typed("select to_regproc('gleaner.ingest_activities') is not null", &[])
        .await
        .map_err(Error::doing("look at the schema"))?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}
