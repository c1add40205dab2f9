//! The database of one test.

use crate::{Error, Result, connect};

/// A database that no other test uses. It is kept when the test ends, so that a failure can be investigated, and is removed with
/// the server.
#[derive(Debug, Clone)]
pub struct TestDatabase {
    /// Its address, for psql and for tokio-postgres.
    pub url: String,
    /// Its name.
    pub name: String,
}

impl TestDatabase {
    /// A new connection, driven by the current runtime.
    pub async fn connect(&self) -> Result<tokio_postgres::Client> {
        connect::connect(&self.url).await.map_err(Error::database("connect to the test database"))
    }
}
