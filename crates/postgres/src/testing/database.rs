//! The database of one test.

use crate::{Error, Result, connect};

/// A database nobody else uses. It is left alone when the test ends, for whoever wants to look why a test failed, and
/// goes away with the server.
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
