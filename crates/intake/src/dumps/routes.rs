//! `POST /v1/dumps` adds a document, `GET /v1/dumps/{dump}/file` returns it.

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRef, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use gleaner_http::describe::{Denied, Invalid, InvalidBody, NotFound};
use gleaner_http::{Authenticator, Caller, Path, Query, Role, WireError};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Added, Dumps, Failure, Upload};
use crate::media;

#[derive(Debug, Clone, FromRef)]
struct Shared {
    dumps: Dumps,
    authenticator: Authenticator,
}

/// The routes, to be merged into the server's.
pub fn router(dumps: Dumps, authenticator: impl Into<Authenticator>) -> OpenApiRouter {
    OpenApiRouter::default().routes(routes!(add)).routes(routes!(file)).with_state(Shared { dumps, authenticator: authenticator.into() })
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct AddQuery {
    /// The basket to add it to; the caller's oldest one where none is named.
    #[param(value_type = Option<Uuid>)]
    basket: Option<String>,
    /// The file's name.
    #[param(example = "notes.md")]
    name: Option<String>,
}

/// Add a document
///
/// The body is the file itself: text, Markdown, HTML, PDF or DOCX. Answered as soon as it is stored; agents read it then, and
/// `agent_processing_queue` shows how far they are. The same file twice in one basket is one dump.
#[utoipa::path(
    post,
    path = "/v1/dumps",
    operation_id = "addDump",
    tag = "dumps",
    params(AddQuery),
    request_body(content = Value, content_type = "*/*", description = "The document."),
    responses(
        (status = 200, description = "The basket has this very file already.", body = Added),
        (status = 201, description = "Stored and queued.", body = Added),
        (status = 415, description = "Nothing that agents read.", body = WireError),
        Denied, Invalid, InvalidBody, NotFound,
    )
)]
async fn add(
    State(dumps): State<Dumps>,
    caller: Caller,
    Query(query): Query<AddQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Added>), WireError> {
    let basket = match query.basket.as_deref().map(str::parse::<Uuid>) {
        None => None,
        Some(Ok(basket)) => Some(basket),
        Some(Err(_)) => return Err(WireError::bad("basket is a uuid")),
    };
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let upload = Upload { basket, name: query.name.unwrap_or_default(), media_type };
    let added = dumps.add(&caller, &upload, body.into_data_stream()).await.map_err(|failure| refuse(&caller, failure))?;
    Ok((if added.known { StatusCode::OK } else { StatusCode::CREATED }, Json(added)))
}

/// Read as text, so that a malformed id is a dump that does not exist.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
struct DumpPath {
    #[param(value_type = Uuid, example = "1f0c7a52-0000-4000-8000-000000000001")]
    dump: String,
}

/// Get the file of a dump
///
/// For callers that may read the dump. `Range` works.
#[utoipa::path(
    get,
    path = "/v1/dumps/{dump}/file",
    operation_id = "getDumpFile",
    tag = "dumps",
    params(DumpPath, ("Range" = Option<String>, Header, description = "One range of bytes.", example = "bytes=0-1023")),
    responses(
        (status = 200, description = "The file, in its own type.", content_type = "*/*", body = Value),
        (status = 206, description = "The part of it.", content_type = "*/*", body = Value),
        (status = 410, description = "There was a file, and it is gone.", body = WireError),
        (status = 416, description = "The file is shorter than that."),
        Denied, NotFound,
    )
)]
async fn file(
    State(dumps): State<Dumps>,
    caller: Caller,
    Path(DumpPath { dump }): Path<DumpPath>,
    headers: HeaderMap,
) -> Result<Response, WireError> {
    let Ok(dump) = dump.parse::<Uuid>() else { return Err(media::Failure::Unknown.into()) };
    Ok(dumps.file(&caller, dump, &headers).await?)
}

fn refuse(caller: &Caller, failure: Failure) -> WireError {
    let text = failure.to_string();
    let error = match failure {
        Failure::Basket => return WireError::new(StatusCode::NOT_FOUND, "PGRST116", text),
        Failure::NoBasket | Failure::Empty | Failure::Source(_) => return WireError::bad(text),
        Failure::TooLarge { .. } => return WireError::new(StatusCode::PAYLOAD_TOO_LARGE, "dump_too_large", text),
        Failure::Kind => return WireError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "dump_unsupported", text),
        Failure::Files(error) => {
            tracing::warn!(%error, "a document could not be stored");
            return WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST000", "the file store does not answer; try again");
        }
        Failure::Database(error) => error,
    };
    match error.code().map_or("", |code| code.code()) {
        "42501" if matches!(caller, Caller::Token { role: Role::Anon, .. }) => {
            WireError::new(StatusCode::UNAUTHORIZED, "42501", "sign in to add documents")
        }
        "42501" => WireError::new(StatusCode::FORBIDDEN, "42501", "this basket is not yours to add to"),
        "42P01" | "42703" => {
            WireError::new(StatusCode::NOT_FOUND, "42P01", "this database does not have the system dumps; run `gleaner migrate`")
        }
        _ if error.is_transient() => {
            tracing::warn!(%error, "dumps: the database is away");
            WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", "the database cannot be reached; try again")
        }
        _ => {
            tracing::error!(%error, "dumps: a document could not be added");
            WireError::internal()
        }
    }
}
