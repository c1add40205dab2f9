//! The caller of a request.

use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::{Access, Caller, Refused};

/// Takes the bearer's token, else the project key. Whoever sends neither is refused.
impl<S> FromRequestParts<S> for Caller
where
    Access: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        Access::from_ref(state).caller(parts)
    }
}

impl Access {
    fn caller(&self, parts: &Parts) -> Result<Caller, Refused> {
        let header =
            |name: &str| parts.headers.get(name).map(|value| value.to_str().map_err(|_| Refused::token("JWT could not be decoded")));
        if let Some(bearer) = header(AUTHORIZATION.as_str()).transpose()? {
            let (scheme, token) = bearer.split_once(' ').unwrap_or((bearer, ""));
            if !scheme.eq_ignore_ascii_case("bearer") {
                return Err(Refused::token("the scheme of Authorization is not Bearer"));
            }
            return self.verify(token.trim());
        }
        if let Some(key) = header("apikey").transpose()? {
            return self.verify(key.trim());
        }
        let query = parts.uri.query().unwrap_or_default();
        let key = query.split('&').find_map(|pair| pair.strip_prefix("apikey="));
        key.map_or_else(|| Err(Refused::anonymous()), |key| self.verify(key))
    }
}
