//! What handlers read of a request: JSON body, path, query. Errors are reported in the form of the wire contract.

use axum::body::Bytes;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use crate::WireError;

/// The body, deserialized as `T`. An empty body counts as `{}`.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = WireError;

    async fn from_request(request: Request, state: &S) -> Result<Self, WireError> {
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|error| WireError::new(error.status(), "PGRST102", "the body could not be read, or is too large"))?;
        let text: &[u8] = if bytes.iter().all(u8::is_ascii_whitespace) { b"{}" } else { &bytes };
        // The message names a position and a field and never quotes a value of ours. It may quote a wrong value of the
        // client's, such as a number where a secret was expected, so only the position is reported.
        serde_json::from_slice(text).map(Body).map_err(|error| {
            let message = match error.classify() {
                serde_json::error::Category::Data => format!("the JSON does not fit: {}", shape(&error.to_string())),
                _ => format!("Empty or invalid json (line {}, column {})", error.line(), error.column()),
            };
            WireError::new(StatusCode::BAD_REQUEST, "PGRST102", message)
        })
    }
}

/// The parameters of the path.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(WireError))]
pub struct Path<T>(pub T);

/// The parameters of the query.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(WireError))]
pub struct Query<T>(pub T);

impl From<PathRejection> for WireError {
    fn from(rejection: PathRejection) -> Self {
        Self::bad(rejection.body_text())
    }
}

impl From<QueryRejection> for WireError {
    fn from(rejection: QueryRejection) -> Self {
        Self::bad(rejection.body_text())
    }
}

/// The error without the value it is about: `invalid type: string "…", expected a boolean`.
fn shape(error: &str) -> String {
    match (error.find('"'), error.rfind('"')) {
        (Some(first), Some(last)) if first < last => format!("{}…{}", &error[..first], &error[last + 1..]),
        _ => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::shape;

    #[test]
    fn an_error_does_not_quote_what_was_sent() {
        assert_eq!(
            shape("invalid type: string \"s3\\\"cret\", expected a boolean at line 1"),
            "invalid type: string …, expected a boolean at line 1"
        );
        assert_eq!(shape("unknown field `colour`, expected `name`"), "unknown field `colour`, expected `name`");
    }
}
