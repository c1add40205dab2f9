//! Who is calling, asked of whoever keeps the keys.

use futures_util::future::BoxFuture;
use http::HeaderMap;

use crate::access::Caller;
use crate::wire_error::WireError;

/// Tells a caller by what a request carries: the project key in `apikey` (header or query string) and the bearer token.
/// Refusals are 401 in the shape of [`WireError`]: no or an unknown key, `PGRST301` for a token that is none of ours,
/// `PGRST303` for one whose time is over.
pub trait Identify: Send + Sync + 'static {
    fn identify<'a>(&'a self, headers: &'a HeaderMap, query: Option<&'a str>) -> BoxFuture<'a, Result<Caller, WireError>>;
}
