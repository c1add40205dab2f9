//! Finds the caller that a key or a token of any kind belongs to.

use axum::http::StatusCode;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use gleaner_http::{Authenticate, Caller, Role, WireError};

use super::{Access, is_opaque};

impl Authenticate for Access {
    /// The caller that this belongs to: a signed token, or an opaque key (`sb_…`), which is looked up in the database.
    fn holder<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Caller, WireError>> {
        async move {
            if !is_opaque(token) {
                return self.verify(token);
            }
            self.holder_of_opaque(token).await?.ok_or_else(|| WireError::token("the key is unknown, revoked or expired"))
        }
        .boxed()
    }
}

impl Access {
    /// The caller that an opaque key belongs to; `None` when the key is not valid (any more).
    pub async fn holder_of_opaque(&self, key: &str) -> Result<Option<Caller>, WireError> {
        let Some(programs) = &self.programs else { return Ok(None) };
        let claims = programs.verify(key).await.map_err(|error| {
            // Whether the key is valid cannot be checked now. The client retries.
            tracing::warn!(%error, "a key could not be verified");
            WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", "The key could not be verified, try again")
        })?;
        Ok(claims.and_then(|claims| Some(Caller::Token { role: Role::named(claims.get("role")?.as_str()?)?, claims })))
    }
}
