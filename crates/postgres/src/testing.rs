//! PostgreSQL for tests: the same code that runs a private cluster, on temporary data.
//!
//! [`server`] is one temporary server per test process, started at the first call. [`Server::database_from`] gives each test its
//! own database, copied from a template that is prepared once. [`PrivateServer`] is a server for one test, which can be crashed and
//! restarted.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use gleaner_postgres::testing;
//!
//! let database = testing::server()
//!     .database_from("migrated", async |url: String| {
//!         // Runs once per process, however many tests ask.
//!         testing::connect(&url).await?.batch_execute("create table task (id bigint primary key)").await
//!     })
//!     .await?;
//! let client = database.connect().await?;
//! client.batch_execute("insert into task values (1)").await?;
//! # Ok(())
//! # }
//! ```
//!
//! `GLEANER_TEST_PG_BIN` names the programs of another PostgreSQL to test on. Data is in the system's temporary directory. It is
//! removed when the process ends, however it ends, or else at the next run.

mod database;
mod place;
mod private;
mod server;

pub use database::TestDatabase;
pub use private::PrivateServer;
pub use server::{Server, server};

use crate::{Error, Home, Installation, Options, ParentDeath, Result};

/// Connects to a database of a test server; the connection is driven by the current runtime.
pub async fn connect(url: &str) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
    crate::connect::connect(url).await
}

/// The options that all test servers share.
fn options(home: Home, durable: bool) -> Result<Options> {
    let mut options = Options::new(home);
    // Removed together with the home, also when the process died without a chance to clean up.
    options.socket_parent = Some(options.home.path().to_owned());
    options.durable = durable;
    options.max_connections = 400;
    options.parent_death = ParentDeath::Abort;
    if let Some(bin) = std::env::var_os("GLEANER_TEST_PG_BIN").filter(|value| !value.is_empty()) {
        options.installation = Some(Installation::at(bin)?);
    }
    Ok(options)
}

/// Runs a start on its own runtime, for callers that have none or must not block theirs.
fn block_on<T: Send>(work: impl Future<Output = Result<T>> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::io("start", "a runtime"))?;
            runtime.block_on(work)
        };
        scope.spawn(run).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
