//! The fastest peer, in the same run: pgmq, by its own SQL functions, without a client library in between.
//!
//! All but the installing is compiled without feature `peers` too, so that what checks a change sees it.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use serde_json::json;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::drain::BATCH;
use crate::raw::{self, Finish};
use crate::report::Report;
use crate::stage::Stage;

/// Said below `--help`.
pub const HINT: &str = if cfg!(feature = "peers") {
    "enqueue and drain measure pgmq beside us. It is installed where it is missing, and removed at the end."
} else {
    "Built without peers: pgmq is not measured. `make bench`, or cargo's `--features peers`, puts it in."
};

const QUEUE: &str = "gleaner_bench";
/// As long as the hand-written loop's: nothing comes back while it is measured.
const VISIBILITY_SECONDS: i32 = 300;

/// pgmq in the measured database, with an empty queue of ours.
#[derive(Debug)]
pub struct Peer<'a> {
    stage: &'a Stage,
    /// Whether it was there before us, and stays.
    found: bool,
}

impl<'a> Peer<'a> {
    /// `None` where the benchmark was built without peers.
    pub async fn set(stage: &'a Stage, report: &mut Report) -> Result<Option<Self>> {
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

    /// Takes away what [`Peer::set`] put there.
    pub async fn strike(self) -> Result<()> {
        let client = self.stage.connect().await?;
        client.execute("select pgmq.drop_queue($1)", &[&QUEUE]).await?;
        if !self.found {
            client.batch_execute("set client_min_messages = warning; drop schema pgmq cascade").await?;
        }
        Ok(())
    }

    /// Empties the queue and its archive, and lets the disk come to rest, as [`Stage::clear`] does for ours.
    async fn clear(&self) -> Result<()> {
        let client = self.stage.connect().await?;
        client.batch_execute(&format!("truncate pgmq.q_{QUEUE}, pgmq.a_{QUEUE}; checkpoint;")).await?;
        self.vacuum().await
    }

    async fn vacuum(&self) -> Result<()> {
        Ok(self.stage.connect().await?.batch_execute(&format!("vacuum analyze pgmq.q_{QUEUE}, pgmq.a_{QUEUE}")).await?)
    }

    /// Reads 500 and ends them, from `connections` connections, until all `n` are gone; messages per second.
    pub async fn drain(&self, n: usize, connections: usize, finish: Finish) -> Result<f64> {
        self.clear().await?;
        let fill = format!(
            "select count(*) from pgmq.send_batch('{QUEUE}', (select array_agg('{{\"n\": 1}}'::jsonb) from generate_series(1, {n})), clock_timestamp() - interval '10 minutes')"
        );
        self.stage.connect().await?.execute(&fill, &[]).await?;
        self.vacuum().await?;
        let end = match finish {
            Finish::Delete => "select count(*) from pgmq.delete($1, $2::bigint[])",
            Finish::Keep => "select count(*) from pgmq.archive($1, $2::bigint[])",
        };
        let mut ready = Vec::new();
        for _ in 0..connections {
            let client = self.stage.connect().await?;
            let read = client.prepare("select msg_id, message from pgmq.read($1, $2, $3)").await?;
            let end = client.prepare(end).await?;
            ready.push((client, read, end));
        }
        let ids = |rows: Vec<Row>| rows.iter().map(|r| r.get(0)).collect::<Vec<i64>>();
        let begun = Instant::now();
        let workers = ready.iter().map(|(client, read, end)| async move {
            let claim: [&(dyn ToSql + Sync); 3] = [&QUEUE, &VISIBILITY_SECONDS, &BATCH];
            let mut done = 0i64;
            let mut held = ids(client.query(read, &claim).await?);
            while !held.is_empty() {
                let finished: [&(dyn ToSql + Sync); 2] = [&QUEUE, &held];
                // As our own loop does: the next read is under way while this one is ended.
                let (ended, next) = tokio::try_join!(client.query_one(end, &finished), client.query(read, &claim))?;
                done += ended.get::<_, i64>(0);
                held = ids(next);
            }
            anyhow::Ok(done)
        });
        let done: i64 = try_join_all(workers).await?.iter().sum();
        let rate = done as f64 / begun.elapsed().as_secs_f64();
        ensure!(done as usize == n, "pgmq ended {done} of {n} messages");
        Ok(rate)
    }

    /// `n` messages from one connection, 1,000 a call; messages per second.
    pub async fn send_batches(&self, n: usize) -> Result<f64> {
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
    pub async fn send(&self, clients: usize, seconds: u64) -> Result<f64> {
        self.clear().await?;
        raw::insert(self.stage, &format!("select pgmq.send('{QUEUE}', '{{\"n\": 1}}')"), clients, seconds).await
    }
}

/// Installs the SQL that the crate carries, through the only client it speaks through, and says which version it is.
#[cfg(feature = "peers")]
async fn install(url: &str) -> Result<String> {
    use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
    use tokio_postgres::config::Host;

    // Not by the address: sqlx cannot read one without a host, which is what a socket's looks like.
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
