//! Errors in the one shape supabase-js programs know: `code`, `message`, `details` and `hint`, all four always there.

mod postgres;

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

/// A refusal or failure on its way to the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct WireError {
    #[serde(skip)]
    pub status: StatusCode,
    /// A SQLSTATE, or one of PostgREST's own codes.
    pub code: Cow<'static, str>,
    pub message: String,
    pub details: Option<String>,
    pub hint: Option<String>,
}

impl WireError {
    pub fn new(status: StatusCode, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { status, code: code.into(), message: message.into(), details: None, hint: None }
    }

    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.code = code.into();
        self
    }

    #[must_use]
    pub fn details(mut self, details: impl Into<String>) -> Self {
        self.details = Some(details.into());
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The database cannot be reached. Nothing was stored that the sender was told of; it may repeat.
    pub fn database_away() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", "Could not reach the database").hint("Try again in a moment.")
    }

    /// All connections stayed busy.
    pub fn no_connection_in_time() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "PGRST003", "Timed out acquiring connection from connection pool.")
    }

    /// What `WWW-Authenticate` says beside a 401; programs of other makers look there.
    fn challenge(&self) -> HeaderValue {
        if matches!(&*self.code, "PGRST301" | "PGRST303") {
            let said: String = self.message.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\\')).collect();
            if let Ok(value) = HeaderValue::try_from(format!("Bearer error=\"invalid_token\", error_description=\"{said}\"")) {
                return value;
            }
        }
        HeaderValue::from_static("Bearer")
    }
}

impl IntoResponse for WireError {
    fn into_response(self) -> Response {
        // Four strings always serialise.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        match self.status {
            StatusCode::UNAUTHORIZED => drop(headers.insert(WWW_AUTHENTICATE, self.challenge())),
            StatusCode::SERVICE_UNAVAILABLE => drop(headers.insert(RETRY_AFTER, HeaderValue::from_static("1"))),
            _ => {}
        }
        response
    }
}
