//! The database login on which statements of callers run.

use futures_util::future::BoxFuture;
use gleaner_http::WireError;
use gleaner_http::database::Pool;

/// Finds the login. It may have to be made first, and the database may be unavailable at that moment.
pub trait Login: Send + Sync + 'static {
    fn pool(&self) -> BoxFuture<'_, Result<Pool, WireError>>;
}
