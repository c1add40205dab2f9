//! No, in the words of the wire contract: `{"code", "message", "details", "hint"}`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An error as every part of the API answers it.
#[derive(Debug, Clone)]
pub struct Refused {
    pub status: StatusCode,
    /// PostgREST's code, or the SQLSTATE.
    pub code: &'static str,
    pub message: String,
    pub details: Option<String>,
    pub hint: Option<String>,
    /// Everything that was wrong, one by one, where it was more than one thing.
    pub mistakes: Vec<String>,
}

impl Refused {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: None, hint: None, mistakes: Vec::new() }
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The token is malformed or not ours.
    pub fn token(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "PGRST301", message)
    }

    /// The token is ours, and what it says does not hold (any more).
    pub fn claims(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "PGRST303", message)
    }

    /// There is no token.
    pub fn anonymous() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "PGRST302", "No API key found in request")
            .with_hint("Send a project key as `apikey` or a token as `Authorization: Bearer …`; `gleaner status -o env` prints the keys.")
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut body = json!({"code": self.code, "message": self.message, "details": self.details, "hint": self.hint});
        if !self.mistakes.is_empty() {
            body["mistakes"] = Value::from(self.mistakes);
        }
        let mut response = (self.status, Json(body)).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            let told = match self.code {
                "PGRST301" | "PGRST303" => format!("Bearer error=\"invalid_token\", error_description=\"{}\"", self.message),
                _ => "Bearer".to_owned(),
            };
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::try_from(told).unwrap_or(HeaderValue::from_static("Bearer")));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
