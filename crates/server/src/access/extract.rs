//! The caller of a request.

use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::{Access, Caller};
use crate::wire_error::WireError;

/// Takes the bearer's token or key, else the project key. Whoever sends neither is refused.
impl<S> FromRequestParts<S> for Caller
where
    Access: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = WireError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, WireError> {
        let token = token(parts)?;
        Access::from_ref(state).holder(&token).await
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
