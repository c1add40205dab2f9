//! Errors in OpenAI's format.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

#[derive(Debug)]
pub(super) struct Refusal {
    pub status: StatusCode,
    pub kind: &'static str,
    pub code: Option<&'static str>,
    pub message: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, kind: &'static str, code: Option<&'static str>, message: impl Into<String>) -> Self {
        Self { status, kind, code, message: message.into() }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", None, message)
    }

    pub(super) fn not_found(message: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", Some("not_found"), message)
    }

    pub(super) fn no_model(name: &str) -> Self {
        let name: String = name.chars().take(100).collect();
        let message = format!("the agent has no model {name:?} for this; GET /v1/models lists those it has");
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", Some("model_not_found"), message)
    }

    pub(super) fn too_large(most: usize) -> Self {
        let message = format!("the request is larger than {} MiB", most / (1024 * 1024));
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", Some("request_too_large"), message)
    }

    /// The model's endpoint failed, not the app.
    pub(super) fn upstream(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "api_error", Some("model_unavailable"), message)
    }

    pub(super) fn timed_out(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "api_error", Some("timeout"), message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let error = json!({"message": self.message, "type": self.kind, "param": null, "code": self.code});
        (self.status, Json(json!({"error": error}))).into_response()
    }
}
