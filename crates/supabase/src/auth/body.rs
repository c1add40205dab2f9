//! Parses JSON bodies. The content type is not checked: clients send different ones, and the body shows whether it is JSON.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use super::error::Failure;

/// The largest body accepted. Metadata is the largest thing that clients send here.
pub(super) const MOST: usize = 256 * 1024;

/// A JSON body; without one, an empty object.
pub(super) struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|_| Failure::new(400, "bad_json", "Could not read the request body; it may be too large"))?;
        let text = if bytes.trim_ascii().is_empty() { b"{}".as_slice() } else { &bytes };
        // The parser's own message could quote a password.
        let parsed: T = serde_json::from_slice(text).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            Failure::new(400, "bad_json", format!("Could not parse request body as JSON of the expected shape ({place})"))
        })?;
        Ok(Self(parsed))
    }
}
