//! One server per test process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;

use super::place::Place;
use super::{TestDatabase, block_on, options};
use crate::{Cluster, Error, Result, connect};

/// The server of this test process: started by the first call, stopped with the process. Data is not flushed to disk; a test with
/// crashes uses a [`super::PrivateServer`].
///
/// # Panics
///
/// When PostgreSQL is missing or does not start: no test could run.
pub fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| block_on(Server::start()).unwrap_or_else(|error| panic!("{error}")))
}

/// A temporary server that creates databases for tests.
#[derive(Debug)]
pub struct Server {
    cluster: Cluster,
    templates: Mutex<HashMap<String, Arc<OnceCell<()>>>>,
    /// PostgreSQL copies a template only while no client is connected to it, and two concurrent copies can disturb each other.
    copying: tokio::sync::Mutex<()>,
    count: AtomicU32,
    _place: Place,
}

impl Server {
    async fn start() -> Result<Self> {
        let place = Place::create()?;
        let mut options = options(place.home.clone(), false)?;
        // Each database is vacuumed once per naptime: with a hundred of them ten seconds would keep autovacuum running all the
        // time.
        options.settings.push(("autovacuum_naptime".to_owned(), "1min".to_owned()));
        Ok(Self {
            cluster: Cluster::start(options).await?,
            templates: Mutex::default(),
            copying: tokio::sync::Mutex::default(),
            count: AtomicU32::new(0),
            _place: place,
        })
    }

    /// The cluster behind it.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// A new, empty database.
    pub async fn empty_database(&self) -> Result<TestDatabase> {
        self.copy("template0").await
    }

    /// A new database, copied from a template that `prepare` filled. `prepare` gets the address of the template and runs once per
    /// process and template name; concurrent callers wait. If it fails, the next caller tries again.
    pub async fn database_from<Prepare, Preparing, Failure>(&self, template: &str, prepare: Prepare) -> Result<TestDatabase>
    where
        Prepare: FnOnce(String) -> Preparing,
        Preparing: Future<Output = Result<(), Failure>>,
        Failure: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let name = format!("template_{template}");
        let cell = Arc::clone(self.templates.lock().unwrap_or_else(PoisonError::into_inner).entry(name.clone()).or_default());
        cell.get_or_try_init(|| self.prepare(&name, prepare)).await?;
        self.copy(&name).await
    }

    async fn prepare<Prepare, Preparing, Failure>(&self, name: &str, prepare: Prepare) -> Result<()>
    where
        Prepare: FnOnce(String) -> Preparing,
        Preparing: Future<Output = Result<(), Failure>>,
        Failure: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let url = self.cluster.url_of(name);
        {
            let _copying = self.copying.lock().await;
            // An earlier attempt may have left it half prepared.
            self.execute("drop a template", &format!("drop database if exists \"{name}\" with (force)")).await?;
            self.execute("create a template", &format!("create database \"{name}\" template template0")).await?;
        }
        prepare(url).await.map_err(|failure| Error::Prepare { template: name.to_owned(), source: failure.into() })?;
        self.close(name).await
    }

    /// Ends all sessions of a template and permits no new ones. A pool that `prepare` used may still be closing.
    async fn close(&self, name: &str) -> Result<()> {
        self.execute("close a template", &format!("alter database \"{name}\" with allow_connections false")).await?;
        let client = self.maintenance().await?;
        let statement = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = $1";
        while client.query_one(statement, &[&name]).await.map_err(Error::database("close a template"))?.get::<_, i64>(0) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    async fn copy(&self, template: &str) -> Result<TestDatabase> {
        let name = format!("test_{}", self.count.fetch_add(1, Ordering::Relaxed));
        let _copying = self.copying.lock().await;
        // Copying files takes half as long as logging blocks: without flushing, its two checkpoints cost almost nothing.
        let statement = format!("create database {name} template \"{template}\" strategy file_copy");
        self.execute("copy a template", &statement).await?;
        Ok(TestDatabase { url: self.cluster.url_of(&name), name })
    }

    async fn maintenance(&self) -> Result<tokio_postgres::Client> {
        // One connection per call: each test has its own runtime, and a connection belongs to one runtime.
        connect::connect(&self.cluster.url_of("postgres")).await.map_err(Error::database("connect"))
    }

    async fn execute(&self, act: &'static str, statement: &str) -> Result<()> {
        self.maintenance().await?.batch_execute(statement).await.map_err(Error::database(act))
    }
}
