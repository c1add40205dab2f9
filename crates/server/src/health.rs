//! `/health`: the process is running. `/ready`: it can do its work.
//!
//! Both ask the database on a new connection. Connections that are open already go on answering when new ones fail, for example when
//! PostgreSQL's programs were replaced under the running server or its connections are used up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use gleaner::Error;
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::State;

/// How long the database may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

pub fn routes(state: Arc<State>) -> OpenApiRouter {
    OpenApiRouter::default().routes(routes!(health)).routes(routes!(ready)).with_state(state)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Ready,
    NotMigrated,
    Unavailable,
}

/// Asks the database. The routes need no key, and each question costs the database a connection: so there is one question at a time,
/// and its answer serves all requests that arrived before it was asked.
#[derive(Debug)]
pub struct Probe {
    url: String,
    /// When the last question was asked, and its answer.
    last: Mutex<Option<(Instant, Found)>>,
}

impl Probe {
    pub(crate) fn new(url: &str) -> Self {
        Self { url: url.to_owned(), last: Mutex::default() }
    }

    async fn ask(&self) -> Found {
        let arrived = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((asked, found)) = *last
            && asked > arrived
        {
            return found;
        }
        let asked = Instant::now();
        let found = match tokio::time::timeout(PATIENCE, is_migrated(&self.url)).await {
            Ok(Ok(true)) => Found::Ready,
            Ok(Ok(false)) => Found::NotMigrated,
            Ok(Err(error)) => {
                // The error is logged and not sent: clients must not learn where the database is or which role we use.
                tracing::warn!(%error, "not ready");
                Found::Unavailable
            }
            Err(_) => Found::Unavailable,
        };
        *last = Some((asked, found));
        found
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct Health {
    status: &'static str,
    version: &'static str,
    /// `ok`, or `unavailable` when a new connection to the database fails
    database: &'static str,
}

/// Check that the process runs
///
/// The status is 200 also without a database: a restart of the server would not bring it back.
#[utoipa::path(
    get,
    path = "/health",
    tag = "operations",
    security(()),
    responses((status = 200, description = "It does.", body = Health,
        example = json!({"status": "ok", "version": "0.1.0", "database": "ok"})))
)]
async fn health(Shared(state): Shared<Arc<State>>) -> Json<Health> {
    let database = if state.probe.ask().await == Found::Unavailable { "unavailable" } else { "ok" };
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION"), database })
}

#[derive(Debug, Serialize, ToSchema)]
struct Ready {
    ready: bool,
    #[schema(required)]
    problem: Option<&'static str>,
}

/// Check that the server can work
#[utoipa::path(
    get,
    path = "/ready",
    tag = "operations",
    security(()),
    responses(
        (status = 200, description = "It can.", body = Ready, example = json!({"ready": true, "problem": null})),
        (status = 503, description = "It cannot, and why.", body = Ready,
            example = json!({"ready": false, "problem": "the database does not answer"})),
    )
)]
async fn ready(Shared(state): Shared<Arc<State>>) -> (StatusCode, Json<Ready>) {
    let (status, problem) = match state.probe.ask().await {
        Found::Ready => (StatusCode::OK, None),
        Found::NotMigrated => (
            StatusCode::SERVICE_UNAVAILABLE,
            Some("the database is not migrated to this version, or lacks the system crm; run `gleaner migrate --systems crm`"),
        ),
        Found::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, Some("the database does not answer")),
    };
    (status, Json(Ready { ready: problem.is_none(), problem }))
}

/// Whether everything that the webhook endpoint calls exists in the database. Asks on a connection of its own.
pub async fn is_migrated(url: &str) -> gleaner::Result<bool> {
    let client = gleaner::connect(url).await?;
    let rows = client
        .query_typed("select to_regproc('gleaner.ingest_activities') is not null", &[])
        .await
        .map_err(Error::doing("look at the schema"))?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}
