//! The database that is measured.

use anyhow::{Context as _, Result};
use gleaner_postgres::testing::PrivateServer;
use tokio_postgres::Client;

use crate::server::Server;

/// A migrated, durable database, and the size of the measurements.
#[derive(Debug)]
pub(crate) struct Stage {
    server: Option<PrivateServer>,
    /// For the report: which server, and the settings that matter most.
    pub name: String,
    pub url: String,
    pub version: String,
    pub quick: bool,
}

impl Stage {
    /// On a private server.
    pub(crate) async fn on(server: Server, quick: bool) -> Result<Self> {
        let running = server.start().await?;
        let url = running.url().to_owned();
        Self::at(Some(running), server.name(), url, quick).await
    }

    /// On the user's server.
    pub(crate) async fn given(url: &str, quick: bool) -> Result<Self> {
        Self::at(None, "given", url.to_owned(), quick).await
    }

    async fn at(server: Option<PrivateServer>, name: &str, url: String, quick: bool) -> Result<Self> {
        gleaner::migrate::migrate(&url, &|s| println!("{s}")).await?;
        let client = gleaner::connect(&url).await?;
        let version = client.query_one("show server_version", &[]).await?.get(0);
        Ok(Self { server, name: name.to_owned(), url, version, quick })
    }

    /// Another migrated database on the same server, so that two states of one queue can be measured in turns.
    pub(crate) async fn beside(&self) -> Result<Self> {
        let client = self.connect().await?;
        client.batch_execute(&format!("drop database if exists {BESIDE}")).await?;
        client.batch_execute(&format!("create database {BESIDE}")).await.context("create a second database to compare with")?;
        let and = if self.url.contains('?') { '&' } else { '?' };
        Self::at(None, &self.name, format!("{}{and}dbname={BESIDE}", self.url), self.quick).await
    }

    /// Drops the database that [`Stage::beside`] created.
    pub(crate) async fn alone(&self) -> Result<()> {
        Ok(self.connect().await?.batch_execute(&format!("drop database {BESIDE} with (force)")).await?)
    }

    pub(crate) async fn connect(&self) -> Result<Client> {
        Ok(gleaner::connect(&self.url).await?)
    }

    /// The settings that matter most to a reader of the figures.
    pub(crate) async fn settings(&self) -> Result<String> {
        let sql = "select string_agg(name || ' = ' || current_setting(name), ', ' order by name) from pg_settings
                   where name in ('fsync', 'jit', 'shared_buffers', 'synchronous_commit', 'wal_level')";
        let settings: String = self.connect().await?.query_one(sql, &[]).await?.get(0);
        let jit: bool = self.connect().await?.query_one("select pg_jit_available()", &[]).await?.get(0);
        Ok(if settings.contains("jit = on") && !jit { format!("{settings} (jit is not installed)") } else { settings })
    }

    pub(crate) fn rows(&self, full: usize) -> usize {
        if self.quick { full / 10 } else { full }
    }

    pub(crate) fn seconds(&self, full: u64) -> u64 {
        if self.quick { (full / 4).max(5) } else { full }
    }

    /// How many rounds alternatives are measured.
    pub(crate) fn rounds(&self) -> std::ops::Range<usize> {
        0..if self.quick { 3 } else { 5 }
    }

    /// Empties our queues, with a checkpoint and a vacuum, so that work left by the last measurement does not slow the next one.
    pub(crate) async fn clear(&self) -> Result<()> {
        let client = self.connect().await?;
        client
            .batch_execute(
                "truncate gleaner.jobs; truncate activities cascade; delete from sales; truncate gleaner.request; truncate gleaner.late_result; checkpoint;",
            )
            .await?;
        client.batch_execute("vacuum analyze gleaner.jobs").await?;
        Ok(client.batch_execute("vacuum analyze activities").await?)
    }

    /// Inserts waiting jobs in the fastest way, with due times spread over the last minutes.
    pub(crate) async fn fill_jobs(&self, n: usize) -> Result<()> {
        let client = self.connect().await?;
        client
            .batch_execute(&format!(
                "insert into gleaner.jobs (kind, payload, due_at)
                 select 'bench', '{{\"n\": 1}}', clock_timestamp() - interval '10 minutes' + g * interval '1 microsecond' from generate_series(1, {n}) g"
            ))
            .await?;
        Ok(client.batch_execute("vacuum analyze gleaner.jobs").await?)
    }

    pub(crate) async fn strike(self) -> Result<()> {
        if let Some(server) = self.server {
            server.stop().await?;
        }
        Ok(())
    }
}

const BESIDE: &str = "gleaner_bench_beside";
