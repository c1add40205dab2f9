//! `POST /v1/runs/{run}/artefacts` keeps a screenshot, `GET /v1/runs/{run}/artefacts/{artefact}` returns it.

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRef, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gleaner_http::describe::{Denied, Invalid, InvalidBody, NotFound};
use gleaner_http::{Authenticator, Caller, Path, Role, WireError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Artefact, Artefacts, Failure, LIMIT};
use crate::media;

#[derive(Debug, Clone, FromRef)]
struct Shared {
    artefacts: Artefacts,
    authenticator: Authenticator,
}

/// The routes, to be merged into the server's.
pub fn router(artefacts: Artefacts, authenticator: impl Into<Authenticator>) -> OpenApiRouter {
    OpenApiRouter::default()
        .routes(routes!(store))
        .routes(routes!(file))
        .with_state(Shared { artefacts, authenticator: authenticator.into() })
}

/// Read as text, so that a malformed id is a run that does not exist.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
struct RunPath {
    #[param(value_type = Uuid, example = "1f0c7a52-0000-4000-8000-000000000001")]
    run: String,
}

/// A screenshot of a run that the caller holds.
#[derive(Debug, Deserialize, ToSchema)]
struct NewArtefact {
    /// The lease under which the run is held.
    lease: i64,
    /// The line of the data, counted from 1.
    #[schema(minimum = 1)]
    row: i32,
    /// The step, counted from 1.
    #[schema(minimum = 1)]
    step: i32,
    #[schema(max_length = 200)]
    name: String,
    /// A PNG of at most 5 MB, in base64.
    content: String,
    /// Deleted after so many days; 30 where it does not say.
    #[schema(minimum = 1, maximum = 3650)]
    keep_days: Option<i32>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Kept {
    id: Uuid,
}

/// Keep a screenshot of a run
///
/// For agents, while they hold the run. One of the same row, step and name is replaced.
#[utoipa::path(
    post,
    path = "/v1/runs/{run}/artefacts",
    operation_id = "storeArtefact",
    tag = "runs",
    params(RunPath),
    request_body(content = NewArtefact, example = json!({"lease": 7, "row": 2, "step": 4, "name": "4-failed.png", "content": "iVBORw0KGgo="})),
    responses(
        (status = 201, description = "Kept.", body = Kept),
        (status = 409, description = "The caller does not hold this run.", body = WireError),
        Denied, Invalid, InvalidBody, NotFound,
    )
)]
async fn store(
    State(artefacts): State<Artefacts>,
    caller: Caller,
    Path(RunPath { run }): Path<RunPath>,
    body: Body,
) -> Result<(StatusCode, Json<Kept>), WireError> {
    // Only trusted callers work this queue: the bytes of others are not read.
    if let Caller::Token { role: Role::Anon | Role::Authenticated, .. } = &caller {
        return Err(WireError::new(StatusCode::FORBIDDEN, "42501", "only agents with the service key keep artefacts"));
    }
    let Ok(run) = run.parse::<Uuid>() else { return Err(media::Failure::Unknown.into()) };
    let too_large =
        || WireError::new(StatusCode::PAYLOAD_TOO_LARGE, "artefact_too_large", format!("an artefact has at most {LIMIT} bytes"));
    let body = to_bytes(body, LIMIT * 3 / 2).await.map_err(|_| too_large())?;
    let new: NewArtefact = serde_json::from_slice(&body).map_err(|error| WireError::bad(format!("the body cannot be read: {error}")))?;
    let bytes = STANDARD.decode(&new.content).map_err(|_| WireError::bad("content is not base64"))?;
    if bytes.len() > LIMIT {
        return Err(too_large());
    }
    if !bytes.starts_with(b"\x89PNG\r\n\x1a\n") || new.name.is_empty() || new.name.len() > 200 || new.row < 1 || new.step < 1 {
        return Err(WireError::bad("an artefact is a PNG with a name, a row and a step"));
    }
    let NewArtefact { lease, row, step, name, keep_days, .. } = new;
    let artefact = Artefact { run, lease, row, step, name, keep_days: keep_days.filter(|days| *days > 0), bytes: bytes.into() };
    match artefacts.store(&caller, artefact).await {
        Ok(id) => Ok((StatusCode::CREATED, Json(Kept { id }))),
        Err(failure) => Err(refuse(failure)),
    }
}

/// Read as text, so that a malformed id is an artefact that does not exist.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
struct ArtefactPath {
    #[param(value_type = Uuid, example = "1f0c7a52-0000-4000-8000-000000000001")]
    run: String,
    #[param(value_type = Uuid, example = "1f0c7a52-0000-4000-8000-000000000002")]
    artefact: String,
}

/// Get a screenshot of a run
///
/// For callers that may read the run. `Range` works.
#[utoipa::path(
    get,
    path = "/v1/runs/{run}/artefacts/{artefact}",
    operation_id = "getArtefact",
    tag = "runs",
    params(ArtefactPath, ("Range" = Option<String>, Header, description = "One range of bytes.", example = "bytes=0-1023")),
    responses(
        (status = 200, description = "The file, in its own type.", content_type = "*/*", body = Value),
        (status = 206, description = "The part of it.", content_type = "*/*", body = Value),
        (status = 410, description = "There was a file, and it is gone.", body = WireError),
        (status = 416, description = "The file is shorter than that."),
        Denied, NotFound,
    )
)]
async fn file(
    State(artefacts): State<Artefacts>,
    caller: Caller,
    Path(ArtefactPath { run, artefact }): Path<ArtefactPath>,
    headers: HeaderMap,
) -> Result<Response, WireError> {
    let (Ok(run), Ok(artefact)) = (run.parse::<Uuid>(), artefact.parse::<Uuid>()) else { return Err(media::Failure::Unknown.into()) };
    Ok(artefacts.file(&caller, run, artefact, &headers).await?)
}

fn refuse(failure: Failure) -> WireError {
    let text = failure.to_string();
    match failure {
        Failure::Lost => WireError::new(StatusCode::CONFLICT, "lost", text),
        Failure::Full => WireError::new(StatusCode::PAYLOAD_TOO_LARGE, "artefacts_full", text),
        Failure::Files(error) => {
            tracing::warn!(%error, "a screenshot could not be stored");
            WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST000", "the file store does not answer; try again")
        }
        Failure::Database(error) if error.is_transient() => {
            WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", "the database cannot be reached; try again")
        }
        Failure::Database(error) if error.code().is_some_and(|code| ["42883", "3F000"].contains(&code.code())) => {
            WireError::new(StatusCode::NOT_FOUND, "42P01", "this database does not have the system runs; run `gleaner migrate`")
        }
        Failure::Database(error) => {
            tracing::error!(%error, "runs: an artefact could not be kept");
            WireError::internal()
        }
    }
}
