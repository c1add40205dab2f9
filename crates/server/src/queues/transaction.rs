//! Transactions on behalf of a caller, with the engine's errors.

use deadpool_postgres::{Client, Transaction};
use futures_util::TryFutureExt as _;
use futures_util::future::BoxFuture;
use gleaner::{Error, Pool, Result};
use gleaner_http::{Caller, database};

/// Carries either kind of error through [`gleaner_http::with_caller`].
struct Either(Error);

impl From<database::Error> for Either {
    fn from(error: database::Error) -> Self {
        Self(engine(error))
    }
}

fn engine(error: database::Error) -> Error {
    match error {
        database::Error::Database { act, source } => Error::Database { act, source },
        database::Error::Connect(why) => Error::Connect(why),
        other => Error::Other(other.to_string()),
    }
}

/// As [`gleaner_http::begin`].
pub(super) async fn begin<'a>(client: &'a mut Client, caller: &Caller) -> Result<Transaction<'a>> {
    gleaner_http::begin(client, caller).await.map_err(engine)
}

/// As [`gleaner_http::with_caller`].
pub(super) async fn with_caller<T: Send + 'static>(
    pool: &Pool,
    caller: &Caller,
    act: impl for<'t> FnOnce(&'t Transaction<'_>) -> BoxFuture<'t, Result<T>>,
) -> Result<T> {
    let done = gleaner_http::with_caller(pool, caller, |transaction| Box::pin(act(transaction).map_err(Either)));
    done.await.map_err(|Either(error)| error)
}
