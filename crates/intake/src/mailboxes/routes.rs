//! Gmail over HTTP: polls on request, and the browser that returns from Google.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{FromRef, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use gleaner_http::database::Error as Database;
use gleaner_http::describe::{Denied, InvalidBody, NotFound};
use gleaner_http::{Authenticator, Caller, WireError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Gmail;
use super::ask::Report;
use super::authorize::CALLBACK;
use super::error::Error;

/// How long a caller waits by default.
const WAIT_SECONDS: f64 = 20.0;

#[derive(Debug, Clone, FromRef)]
struct Shared {
    gmail: Arc<Gmail>,
    authenticator: Authenticator,
}

/// The routes, to be merged into the server's.
pub fn router(gmail: Arc<Gmail>, authenticator: impl Into<Authenticator>) -> OpenApiRouter {
    OpenApiRouter::default()
        .routes(routes!(fetch))
        .routes(routes!(callback))
        .with_state(Shared { gmail, authenticator: authenticator.into() })
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
struct FetchRequest {
    /// Name or id of a channel. All Gmail channels when left out.
    channel: Option<String>,
    /// Seconds to wait for the end of the poll, at most 60; 0 only requests it. The default is 20.
    wait: Option<f64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct FetchResponse {
    success: bool,
    channels: Vec<Report>,
}

/// Poll mailboxes now
///
/// Requests a poll of one mailbox or all, and waits a while for the result. For the service key.
#[utoipa::path(
    post,
    path = "/functions/v1/fetch-gmail-updates",
    operation_id = "fetchGmail",
    tag = "webhooks",
    request_body(content = Option<FetchRequest>, example = json!({"wait": 5})),
    responses(
        (status = 200, description = "The results of the polls.", body = FetchResponse, example = json!({"success": true, "channels": []})),
        (status = 202, description = "Some polls are not finished.", body = FetchResponse,
            example = json!({"success": true, "channels": [
                {"channel": "1f0c7a52-0000-4000-8000-000000000001", "name": "Mailbox", "outcome": "waiting", "stored": 0}
            ]})),
        Denied, InvalidBody, NotFound,
    )
)]
async fn fetch(
    State(gmail): State<Arc<Gmail>>,
    caller: Caller,
    body: axum::body::Bytes,
) -> Result<(StatusCode, Json<FetchResponse>), WireError> {
    let wanted = read(&body)?;
    let asked = gmail.ask(&caller, wanted.channel.as_deref()).await.map_err(refused)?;
    if let Some(name) = wanted.channel
        && asked.is_empty()
    {
        return Err(WireError::new(StatusCode::NOT_FOUND, "PGRST116", format!("there is no Gmail channel {name:?}")));
    }
    let within = Duration::try_from_secs_f64(wanted.wait.unwrap_or(WAIT_SECONDS).clamp(0.0, 60.0)).unwrap_or_default();
    let reports = gmail.wait_for(&asked, within).await.map_err(unavailable)?;
    let pending = reports.iter().any(|report| report.outcome == "waiting");
    let status = if pending { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(FetchResponse { success: true, channels: reports })))
}

fn read(body: &[u8]) -> Result<FetchRequest, WireError> {
    let wrong = |why: String| WireError::new(StatusCode::BAD_REQUEST, "PGRST102", format!("the body is {{\"channel\", \"wait\"}}: {why}"));
    match body.trim_ascii() {
        [] => Ok(FetchRequest::default()),
        text if text.starts_with(b"{") => serde_json::from_slice(text).map_err(|error| wrong(error.to_string())),
        _ => Err(wrong("not an object".into())),
    }
}

fn refused(error: Database) -> WireError {
    if error.code().is_some_and(|code| code.code() == "42501") {
        return WireError::new(StatusCode::FORBIDDEN, "42501", "only the service key may ask for a poll of mailboxes");
    }
    // A name that PostgreSQL cannot read, such as one with a NUL in it, belongs to no channel.
    if error.code().is_some_and(|code| code.code().starts_with("22")) {
        return WireError::bad("the channel's name is not one");
    }
    tracing::warn!(%error, "could not ask for a poll");
    WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST000", "the database does not answer")
}

fn unavailable(error: Error) -> WireError {
    tracing::warn!(%error, "could not wait for a poll");
    WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST000", "the database does not answer")
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
struct Returned {
    state: String,
    code: Option<String>,
    error: Option<String>,
}

/// Receive a person's consent
///
/// Google sends the browser here. The response is a page for the person. No key is needed: the state serves as one,
/// because it was made for this consent only and is used once.
#[utoipa::path(
    get,
    path = CALLBACK,
    operation_id = "consent",
    tag = "webhooks",
    security(()),
    params(Returned),
    responses(
        (status = 200, description = "Access was granted.", body = String, content_type = "text/plain"),
        (status = 400, description = "The consent was not requested, was used, or took too long.", body = String, content_type = "text/plain"),
        (status = 403, description = "Access was not granted.", body = String, content_type = "text/plain"),
        (status = 502, description = "Google refused.", body = String, content_type = "text/plain"),
        (status = 503, description = "The database cannot be reached.", body = String, content_type = "text/plain"),
    )
)]
async fn callback(State(gmail): State<Arc<Gmail>>, Query(returned): Query<Returned>) -> Response {
    let consent = match gmail.expected(&returned.state).await {
        Ok(Some(consent)) => consent,
        Ok(None) => return page(StatusCode::BAD_REQUEST, "This consent was not asked for, was used, or took too long. Please ask again."),
        Err(error) => {
            tracing::warn!(%error, "could not look up a consent");
            return page(StatusCode::SERVICE_UNAVAILABLE, "The database does not answer. Please try again.");
        }
    };
    let Some(code) = returned.code.filter(|_| returned.error.is_none()) else {
        return page(StatusCode::FORBIDDEN, "Access was not granted, and nothing was changed.");
    };
    match gmail.grant(&consent, &code).await {
        Ok(channel) => {
            page(StatusCode::OK, &format!("Access granted: channel {} reads the mailbox now. You may close this window.", channel.name))
        }
        Err(error) => {
            tracing::warn!(channel = %consent.channel, %error, "a consent did not become a grant");
            page(StatusCode::BAD_GATEWAY, &format!("Access was not granted: {error}"))
        }
    }
}

/// Plain text, so that nothing the browser sends is ever interpreted as markup.
fn page(status: StatusCode, text: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, format!("{text}\n")).into_response()
}
