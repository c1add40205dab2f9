//! Identifies callers of the other parts of the API, by signed and by opaque keys alike.

use futures_util::future::{BoxFuture, FutureExt as _};
use gleaner_http::database::Pool;
use gleaner_http::{Caller, WireError};
use http::HeaderMap;

use super::Access;
use super::identify::{Identify, identify_with};

/// The project's secret and the keys of its programs.
#[derive(Debug, Clone)]
pub struct Keyring {
    access: Access,
}

impl Keyring {
    pub fn new(access: Access, pool: Pool) -> Self {
        Self { access: access.with_programs(pool) }
    }
}

impl Identify for Keyring {
    fn identify<'a>(&'a self, headers: &'a HeaderMap, query: Option<&'a str>) -> BoxFuture<'a, Result<Caller, WireError>> {
        let look_up = async |key: &str| self.access.holder_of_opaque(key).await;
        async move { identify_with(&self.access, headers, query, look_up).await }.boxed()
    }
}
