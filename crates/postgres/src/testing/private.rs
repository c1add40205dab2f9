//! A server for one test.

use super::options;
use super::place::Place;
use crate::{Cluster, Error, Result, connect};

/// A temporary server that can be crashed and restarted. Its address stays the same through both.
#[derive(Debug)]
pub struct PrivateServer {
    cluster: Cluster,
    // After the cluster: fields are dropped in this order, and the server must be gone before its files.
    _place: Place,
}

impl PrivateServer {
    /// Starts one. With `durable`, commits are flushed, as they are outside of tests; needed by any test with a crash.
    pub async fn start(durable: bool) -> Result<Self> {
        Self::start_with(durable, &[]).await
    }

    /// Starts one with the test's own settings.
    pub async fn start_with(durable: bool, settings: &[(&str, &str)]) -> Result<Self> {
        let place = Place::create()?;
        let mut options = options(place.home.clone(), durable)?;
        options.settings.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Ok(Self { cluster: Cluster::start(options).await?, _place: place })
    }

    /// The address of its database, for psql and for tokio-postgres.
    pub fn url(&self) -> &str {
        self.cluster.url()
    }

    /// The cluster behind it.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// A new connection, driven by the current runtime.
    pub async fn connect(&self) -> Result<tokio_postgres::Client> {
        connect::connect(self.url()).await.map_err(Error::database("connect to the test server"))
    }

    /// Kills the server and all its sessions, and waits until they are gone.
    pub async fn crash(&mut self) -> Result<()> {
        self.cluster.crash().await
    }

    /// Starts it again, after a crash or not, and waits until it answers.
    pub async fn restart(&mut self) -> Result<()> {
        self.cluster.restart().await
    }

    /// Stops it and removes its data.
    pub async fn stop(self) -> Result<()> {
        self.cluster.stop().await
    }
}
