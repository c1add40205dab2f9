//! The fastest peer, in the same run: pgmq, by its own SQL functions, without a client library.
//!
//! Everything but the installation is compiled without feature `peers` too, so that checks of a change cover it.

mod reader;
pub(crate) mod waiter;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::json;

pub(crate) use self::reader::Reader;
use crate::raw::{self, Finish};
use crate::report::Report;
use crate::stage::Stage;

/// Shown below `--help`.
pub(crate) const HINT: &str = if cfg!(feature = "peers") {
    "enqueue, drain and the runtime-… rows measure pgmq beside us. It is installed where it is missing, and removed at the end."
} else {
    "Built without peers: pgmq is not measured. `make bench`, or cargo's `--features peers`, puts it in."
};

const QUEUE: &str = "gleaner_bench";
/// As long as in the hand-written loop: no message becomes visible again during a measurement.
const VISIBILITY_SECONDS: i32 = 300;

/// pgmq in the measured database, with an empty queue for us.
#[derive(Debug)]
pub(crate) struct Peer<'a> {
    stage: &'a Stage,
    /// Whether it was installed before, and so stays installed.
    found: bool,
}

impl<'a> Peer<'a> {
    /// `None` where the benchmark was built without peers.
    pub(crate) async fn set(stage: &'a Stage, report: &mut Report) -> Result<Option<Self>> {
        if !cfg!(feature = "peers") {
            return Ok(None);
        }
        let client = stage.connect().await?;
        let found = client.query_one("select to_regnamespace('pgmq') is not null", &[]).await?.get(0);
        let version = if found {
            let version = client.query_opt("select extversion from pg_extension where extname = 'pgmq'", &[]).await?;
            version.map_or_else(|| "of an unknown version".into(), |r| r.get(0))
        } else {
            install(&stage.url).await.context("install pgmq, the peer to measure")?
        };
        report.peer(format!("pgmq {version}"));
        client.execute("select pgmq.create($1)", &[&QUEUE]).await?;
        Ok(Some(Self { stage, found }))
    }

    /// Removes what [`Peer::set`] created.
    pub(crate) async fn strike(self) -> Result<()> {
        let client = self.stage.connect().await?;
        client.execute("select pgmq.drop_queue($1)", &[&QUEUE]).await?;
        if !self.found {
            client.batch_execute("set client_min_messages = warning; drop schema pgmq cascade").await?;
        }
        Ok(())
    }

    /// Empties the queue and its archive, with a checkpoint and a vacuum, as [`Stage::clear`] does for ours.
    pub(crate) async fn clear(&self) -> Result<()> {
        let client = self.stage.connect().await?;
        client.batch_execute(&format!("truncate pgmq.q_{QUEUE}, pgmq.a_{QUEUE}; checkpoint;")).await?;
        self.vacuum().await
    }

    async fn vacuum(&self) -> Result<()> {
        Ok(self.stage.connect().await?.batch_execute(&format!("vacuum analyze pgmq.q_{QUEUE}, pgmq.a_{QUEUE}")).await?)
    }

    /// Sends `n` messages that can be read at once.
    pub(crate) async fn fill(&self, n: usize) -> Result<()> {
        let fill = format!(
            "select count(*) from pgmq.send_batch('{QUEUE}', (select array_agg('{{\"n\": 1}}'::jsonb) from generate_series(1, {n})), clock_timestamp() - interval '10 minutes')"
        );
        self.stage.connect().await?.execute(&fill, &[]).await?;
        self.vacuum().await
    }

    /// Reads 500 and finishes them, from `connections` connections, until all `n` are gone; messages per second.
    pub(crate) async fn drain(&self, n: usize, connections: usize, finish: Finish) -> Result<f64> {
        self.clear().await?;
        self.fill(n).await?;
        let mut readers = Vec::new();
        for _ in 0..connections {
            readers.push(Reader::connect(&self.stage.url, finish).await?);
        }
        let done = AtomicU64::new(0);
        let workers = readers.iter().map(|reader| async {
            let mine = reader.drain(|_| true).await?;
            done.fetch_add(mine, Ordering::Relaxed);
            anyhow::Ok(mine)
        });
        let rate = raw::rate(workers).await?;
        let done = done.into_inner();
        ensure!(done == n as u64, "pgmq ended {done} of {n} messages");
        Ok(rate)
    }

    /// Reads and deletes about `n` of the waiting messages, from one connection; messages per second.
    pub(crate) async fn drain_some(&self, n: usize) -> Result<f64> {
        let reader = Reader::connect(&self.stage.url, Finish::Delete).await?;
        raw::rate(std::iter::once(reader.drain(|done| done < n as u64))).await
    }

    /// Sends one message, and waits for its commit.
    pub(crate) async fn send_one(&self, client: &tokio_postgres::Client, message: &serde_json::Value) -> Result<()> {
        client.execute("select pgmq.send($1, $2)", &[&QUEUE, message]).await?;
        Ok(())
    }

    /// Sends `n` messages in one call.
    pub(crate) async fn send_many(&self, client: &tokio_postgres::Client, n: usize) -> Result<()> {
        client.execute("select count(*) from pgmq.send_batch($1, $2::jsonb[])", &[&QUEUE, &vec![json!({"n": 1}); n]]).await?;
        Ok(())
    }

    /// `n` messages from one connection, 1,000 a call; messages per second.
    pub(crate) async fn send_batches(&self, n: usize) -> Result<f64> {
        self.clear().await?;
        let client = self.stage.connect().await?;
        let send = client.prepare("select count(*) from pgmq.send_batch($1, $2::jsonb[])").await?;
        let messages = vec![json!({"n": 1}); n.min(1000)];
        let begun = Instant::now();
        let mut sent = 0;
        while sent < n {
            client.query_one(&send, &[&QUEUE, &&messages[..messages.len().min(n - sent)]]).await?;
            sent += messages.len();
        }
        Ok(n as f64 / begun.elapsed().as_secs_f64())
    }

    /// Single messages, each its own commit, from `clients` connections for `seconds`; messages per second.
    pub(crate) async fn send(&self, clients: usize, seconds: u64) -> Result<f64> {
        self.clear().await?;
        raw::insert(self.stage, &format!("select pgmq.send('{QUEUE}', '{{\"n\": 1}}')"), clients, seconds).await
    }
}

/// Installs the SQL that the crate contains, through sqlx, the only client it supports, and returns its version.
#[cfg(feature = "peers")]
async fn install(url: &str) -> Result<String> {
    use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
    use tokio_postgres::config::Host;

    // Not by the URL: sqlx cannot parse one without a host, which is the form of a unix socket's.
    let config: tokio_postgres::Config = url.parse()?;
    let mut options = PgConnectOptions::new_without_pgpass();
    options = match config.get_hosts().first() {
        Some(Host::Unix(folder)) => options.socket(folder),
        Some(Host::Tcp(host)) => options.host(host),
        None => options,
    };
    if let Some(port) = config.get_ports().first() {
        options = options.port(*port);
    }
    if let Some(user) = config.get_user() {
        options = options.username(user);
    }
    if let Some(password) = config.get_password() {
        options = options.password(std::str::from_utf8(password)?);
    }
    if let Some(database) = config.get_dbname() {
        options = options.database(database);
    }
    let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await?;
    pgmq::install::install_sql_from_embedded(&pool).await?;
    let version = pgmq::install::installed_version(&pool).await?;
    pool.close().await;
    Ok(version.context("pgmq does not say its version")?.to_string())
}

#[cfg(not(feature = "peers"))]
async fn install(_: &str) -> Result<String> {
    anyhow::bail!("built without peers")
}
