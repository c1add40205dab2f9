//! The database everything is measured on.

use anyhow::Result;
use gleaner_postgres::testing::PrivateServer;
use tokio_postgres::Client;

/// A migrated, durable database, and how large to measure.
#[derive(Debug)]
pub struct Stage {
    server: Option<PrivateServer>,
    pub url: String,
    pub version: String,
    pub quick: bool,
}

impl Stage {
    pub async fn set(url: Option<&str>, quick: bool) -> Result<Self> {
        let server = match url {
            Some(_) => None,
            // Durable, with the settings of the embedded server: what a user gets.
            None => Some(PrivateServer::start(true).await?),
        };
        let url = url.map_or_else(|| server.as_ref().map(|s| s.url().to_owned()).unwrap_or_default(), str::to_owned);
        gleaner::migrate::migrate(&url, &|s| println!("{s}")).await?;
        let client = gleaner::connect(&url).await?;
        let version = client.query_one("show server_version", &[]).await?.get(0);
        Ok(Self { server, url, version, quick })
    }

    pub async fn connect(&self) -> Result<Client> {
        Ok(gleaner::connect(&self.url).await?)
    }

    pub fn rows(&self, full: usize) -> usize {
        if self.quick { full / 10 } else { full }
    }

    pub fn seconds(&self, full: u64) -> u64 {
        if self.quick { (full / 4).max(5) } else { full }
    }

    /// Empties our queues, and lets the disk come to rest: what the last measurement left must not be paid by the next.
    pub async fn clear(&self) -> Result<()> {
        let client = self.connect().await?;
        client
            .batch_execute(
                "truncate gleaner.jobs; truncate activities cascade; delete from sales; truncate gleaner.request; truncate gleaner.late_result; checkpoint;",
            )
            .await?;
        client.batch_execute("vacuum analyze gleaner.jobs").await?;
        Ok(client.batch_execute("vacuum analyze activities").await?)
    }

    /// Waiting jobs, put in the quickest way; their due times spread over the last minutes.
    pub async fn fill_jobs(&self, n: usize) -> Result<()> {
        let client = self.connect().await?;
        client
            .batch_execute(&format!(
                "insert into gleaner.jobs (kind, payload, due_at)
                 select 'bench', '{{\"n\": 1}}', clock_timestamp() - interval '10 minutes' + g * interval '1 microsecond' from generate_series(1, {n}) g"
            ))
            .await?;
        Ok(client.batch_execute("vacuum analyze gleaner.jobs").await?)
    }

    pub async fn strike(self) -> Result<()> {
        if let Some(server) = self.server {
            server.stop().await?;
        }
        Ok(())
    }
}
