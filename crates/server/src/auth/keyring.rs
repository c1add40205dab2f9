//! Callers of the other parts of the API, told by signed and by opaque keys alike.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use gleaner::{Error, Pool};
use http::{HeaderMap, StatusCode};

use super::ApiKeys;
use crate::access::{Access, Caller, Role};
use crate::rest::{Identify, identify_with};
use crate::wire_error::WireError;

/// The project's secret and the keys of its programs.
#[derive(Debug, Clone)]
pub struct Keyring {
    access: Access,
    keys: Arc<ApiKeys>,
}

impl Keyring {
    pub fn new(access: Access, pool: Pool) -> Self {
        Self { access, keys: Arc::new(ApiKeys::new(pool)) }
    }
}

impl Identify for Keyring {
    fn identify<'a>(&'a self, headers: &'a HeaderMap, query: Option<&'a str>) -> BoxFuture<'a, Result<Caller, WireError>> {
        let look_up = async |key: &str| {
            let claims = self.keys.verify(key).await.map_err(|error| trouble(&error))?;
            Ok(claims.and_then(|claims| Some(Caller::Token { role: Role::named(claims.get("role")?.as_str()?)?, claims })))
        };
        async move { identify_with(&self.access, headers, query, look_up).await }.boxed()
    }
}

/// Whether the key is good cannot be said now; the client asks again.
fn trouble(error: &Error) -> WireError {
    tracing::warn!(%error, "a key could not be verified");
    WireError::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST001", "The key could not be verified, try again")
}
