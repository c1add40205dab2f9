//! Who holds a key or a token, whatever its kind.

use axum::http::StatusCode;

use super::{Access, Caller, Role};
use crate::auth::api_keys::PREFIX;
use crate::wire_error::WireError;

impl Access {
    /// Who holds this: a signed token, or an opaque key (`sb_…`), which the database is asked for.
    pub async fn holder(&self, token: &str) -> Result<Caller, WireError> {
        if !is_opaque(token) {
            return self.verify(token);
        }
        self.holder_of_opaque(token).await?.ok_or_else(|| WireError::token("the key is unknown, revoked or expired"))
    }

    /// Whom an opaque key stands for; none when it is not good (any more).
    pub async fn holder_of_opaque(&self, key: &str) -> Result<Option<Caller>, WireError> {
        let Some(programs) = &self.programs else { return Ok(None) };
        let claims = programs.verify(key).await.map_err(|error| {
            // Whether the key is good cannot be said now; the client asks again.
            tracing::warn!(%error, "a key could not be verified");
            WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", "The key could not be verified, try again")
        })?;
        Ok(claims.and_then(|claims| Some(Caller::Token { role: Role::named(claims.get("role")?.as_str()?)?, claims })))
    }
}

/// Whether it says nothing by itself, so that it may end at any time.
pub fn is_opaque(token: &str) -> bool {
    token.starts_with(PREFIX)
}
