//! Gmail over HTTP: polls on request, and the browser that returns from Google.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRef, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use gleaner_http::database::Error as Database;
use gleaner_http::{Authenticator, Caller, WireError};
use serde::Deserialize;
use serde_json::json;

use super::Gmail;
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
pub fn router(gmail: Arc<Gmail>, authenticator: impl Into<Authenticator>) -> Router {
    Router::new()
        .route("/functions/v1/fetch-gmail-updates", post(fetch))
        .route(CALLBACK, get(callback))
        .with_state(Shared { gmail, authenticator: authenticator.into() })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fetch {
    /// Name or id of a channel. All Gmail channels when left out.
    channel: Option<String>,
    /// Seconds to wait for the end of the poll; 0 only requests it.
    wait: Option<f64>,
}

/// Requests a poll of one mailbox or all, and waits a while for the result. The database decides who may do so.
async fn fetch(State(gmail): State<Arc<Gmail>>, caller: Caller, body: axum::body::Bytes) -> Result<Response, WireError> {
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
    Ok((status, Json(json!({"success": true, "channels": reports}))).into_response())
}

fn read(body: &[u8]) -> Result<Fetch, WireError> {
    let wrong = |why: String| WireError::new(StatusCode::BAD_REQUEST, "PGRST102", format!("the body is {{\"channel\", \"wait\"}}: {why}"));
    match body.trim_ascii() {
        [] => Ok(Fetch::default()),
        text if text.starts_with(b"{") => serde_json::from_slice(text).map_err(|error| wrong(error.to_string())),
        _ => Err(wrong("not an object".into())),
    }
}

fn refused(error: Database) -> WireError {
    if error.code().is_some_and(|code| code.code() == "42501") {
        return WireError::new(StatusCode::FORBIDDEN, "42501", "only the service key may ask for a look into mailboxes");
    }
    // A name that PostgreSQL cannot read, such as one with a NUL in it, belongs to no channel.
    if error.code().is_some_and(|code| code.code().starts_with("22")) {
        return WireError::bad("the channel's name is not one");
    }
    tracing::warn!(%error, "a look could not be asked for");
    WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST000", "the database does not answer")
}

fn unavailable(error: Error) -> WireError {
    tracing::warn!(%error, "a look could not be waited for");
    WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST000", "the database does not answer")
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Returned {
    state: String,
    code: Option<String>,
    error: Option<String>,
}

/// Handles the browser's return. No key is needed: the state serves as one, because it was made for this consent only and
/// is used once.
async fn callback(State(gmail): State<Arc<Gmail>>, Query(returned): Query<Returned>) -> Response {
    let consent = match gmail.expected(&returned.state).await {
        Ok(Some(consent)) => consent,
        Ok(None) => return page(StatusCode::BAD_REQUEST, "This consent was not asked for, was used, or took too long. Please ask again."),
        Err(error) => {
            tracing::warn!(%error, "a consent could not be looked up");
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
