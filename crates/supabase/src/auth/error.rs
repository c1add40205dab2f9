//! Errors of `/auth/v1`, in the form that the caller's client version understands.

use std::time::Duration;

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use gleaner_http::database::Error;
use serde_json::{Value, json};

pub(super) type Result<T, E = Failure> = std::result::Result<T, E>;

const VERSION: HeaderName = HeaderName::from_static("x-supabase-api-version");
/// The API version from which on `code` is a string.
const WORDS: &str = "2024-01-01";

/// Why a request failed.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    status: StatusCode,
    code: &'static str,
    message: String,
    weak: Vec<&'static str>,
    retry_after: Option<Duration>,
}

impl Failure {
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, code, message: message.into(), weak: Vec::new(), retry_after: None }
    }

    /// Used for an unknown address and for a wrong password, so that the caller cannot learn which it was.
    pub(super) fn credentials() -> Self {
        Self::new(400, "invalid_credentials", "Invalid login credentials")
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "validation_failed", message)
    }

    pub(super) fn bad_jwt(message: impl Into<String>) -> Self {
        Self::new(403, "bad_jwt", message)
    }

    pub(super) fn no_session() -> Self {
        Self::new(403, "session_not_found", "Session from session_id claim in JWT does not exist")
    }

    pub(super) fn banned() -> Self {
        Self::new(403, "user_banned", "User is banned")
    }

    /// A password is set by those who know the old one, or have just signed in.
    pub(super) fn stale_sign_in() -> Self {
        Self::new(401, "reauthentication_needed", "Password update requires the current password or a fresh sign-in")
    }

    pub(super) fn weak(reasons: Vec<&'static str>, message: impl Into<String>) -> Self {
        Self { weak: reasons, ..Self::new(422, "weak_password", message) }
    }

    pub(super) fn too_many(retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(429, "over_request_rate_limit", "Request rate limit reached") }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn code(&self) -> &'static str {
        self.code
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn renamed(self, code: &'static str, message: &str) -> Self {
        Self { code, message: message.to_owned(), ..self }
    }

    /// There are more passwords to hash than we can handle. The client retries.
    pub(super) fn busy() -> Self {
        Self { retry_after: Some(Duration::from_secs(1)), ..Self::new(503, "unexpected_failure", "Too many sign-ins at once, try again") }
    }

    pub(super) fn no_mailer() -> Self {
        Self::new(422, "email_provider_disabled", "This server sends no e-mail; an administrator can print a link with `gleaner users`")
    }
}

/// A failure of the server is a 5xx, because on a 4xx the client would drop its session. The database's message goes to our log
/// only.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if error.is_transient() {
            tracing::warn!(%error, "auth: the database is away");
            return Self {
                retry_after: Some(Duration::from_secs(1)),
                ..Self::new(503, "unexpected_failure", "The database is away, try again")
            };
        }
        tracing::error!(%error, "auth: unexpected failure");
        Self::new(500, "unexpected_failure", "Unexpected failure, please check server logs for more information")
    }
}

impl From<super::password::Busy> for Failure {
    fn from(_: super::password::Busy) -> Self {
        Self::busy()
    }
}

/// The failure is attached to the response until [`in_the_callers_form`] has seen the request's header.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut answer = self.status.into_response();
        answer.extensions_mut().insert(self);
        answer
    }
}

/// Writes errors in the form that the caller's client version reads: `code` is a string from 2024 on, a number before.
pub(super) async fn in_the_callers_form(request: Request, next: Next) -> Response {
    let words = request.headers().get(&VERSION).and_then(|value| value.to_str().ok()).is_some_and(|version| version >= WORDS);
    let mut answer = next.run(request).await;
    let is_text = answer.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if answer.status().is_client_error() && is_text {
        // The query or path could not be parsed. The framework's own message has no form that a client knows.
        answer = Failure::new(answer.status().as_u16(), "validation_failed", "The request could not be understood").into_response();
    }
    if let Some(failure) = answer.extensions_mut().remove::<Failure>() {
        answer = failure.answer(words);
    }
    if words {
        answer.headers_mut().insert(VERSION, HeaderValue::from_static(WORDS));
    }
    // A session must not end up in a cache.
    answer.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

impl Failure {
    fn answer(self, words: bool) -> Response {
        let mut body = if words {
            json!({"code": self.code, "message": self.message})
        } else {
            json!({"code": self.status.as_u16(), "error_code": self.code, "msg": self.message})
        };
        if !self.weak.is_empty() {
            body["weak_password"] = json!({"reasons": self.weak});
        }
        let mut answer = (self.status, Json::<Value>(body)).into_response();
        if let Some(after) = self.retry_after {
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
        }
        answer
    }
}

pub(super) async fn no_such_route() -> Failure {
    Failure::new(404, "not_found", "There is nothing here")
}

pub(super) async fn no_such_method() -> Failure {
    Failure::new(405, "method_not_allowed", "Not with this method")
}
