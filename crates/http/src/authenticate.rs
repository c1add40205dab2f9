//! The caller of a request.

use std::fmt;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use futures_util::future::BoxFuture;

use crate::{Caller, WireError};

/// Finds the holder of a key or a token.
pub trait Authenticate: Send + Sync + 'static {
    /// Returns the holder. The error is sent to the client.
    fn holder<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Caller, WireError>>;
}

/// The state that a router must have for its handlers to take a [`Caller`]. Cheap to clone.
#[derive(Clone)]
pub struct Authenticator(Arc<dyn Authenticate>);

impl<T: Authenticate> From<T> for Authenticator {
    fn from(authenticate: T) -> Self {
        Self(Arc::new(authenticate))
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authenticator")
    }
}

/// Uses the bearer token or key, else the project key. A request with neither is refused.
impl<S> FromRequestParts<S> for Caller
where
    Authenticator: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = WireError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, WireError> {
        let token = token(parts)?;
        Authenticator::from_ref(state).0.holder(&token).await
    }
}

fn token(parts: &Parts) -> Result<String, WireError> {
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().map_err(|_| WireError::token("JWT could not be decoded")));
    if let Some(bearer) = header(AUTHORIZATION.as_str()).transpose()? {
        let (scheme, token) = bearer.split_once(' ').unwrap_or((bearer, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(WireError::token("the scheme of Authorization is not Bearer"));
        }
        return Ok(token.trim().to_owned());
    }
    if let Some(key) = header("apikey").transpose()? {
        return Ok(key.trim().to_owned());
    }
    let mut pairs = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let key = pairs.find_map(|(name, value)| (name == "apikey").then(|| value.into_owned()));
    key.ok_or_else(WireError::anonymous)
}
