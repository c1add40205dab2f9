//! The lock that allows one migration at a time.

use std::time::{Duration, Instant};

use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient};

use crate::connect::{connect, connect_directly};
use crate::error::{Error, Result};

/// A lock row with a lease, polled. Session locks deadlock with concurrent index builds and do not survive a pooler.
///
/// Without a pooler, a separate connection shows that the holder is alive. Once PostgreSQL has lost that connection, other runs
/// do not wait for the rest of the lease.
pub(super) struct Lock {
    fence: i64,
    renewal: tokio::task::JoinHandle<()>,
    /// Kept open while the lock is held.
    _presence: Option<Client>,
}

impl Drop for Lock {
    /// An abandoned run must not go on renewing its lease.
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// The lock is free: its lease expired, or its holder's connection is gone. A backend with the same pid but another start time is
/// a different one. A start time that this role may not see counts as the same.
const FREE: &str = "
    until < clock_timestamp()
    or backend_pid is not null and not exists (
        select from pg_stat_activity a
        where a.pid = backend_pid and (a.backend_start is null or a.backend_start = migration_lock.backend_start))";

impl Lock {
    const LEASE: &'static str = "30 seconds";

    pub(super) async fn acquire(url: &str, client: &impl GenericClient, say: &(dyn Fn(&str) + Sync)) -> Result<Self> {
        let holder = format!("process {} on {}", std::process::id(), std::env::var("HOSTNAME").unwrap_or_else(|_| "this host".into()));
        let presence = connect_directly(url).await;
        let backend = match &presence {
            Some(client) => backend(client).await?,
            None => None,
        };
        let begun = Instant::now();
        let mut reported = false;
        loop {
            let rows = client
                .query_typed(
                    &format!(
                        "update gleaner.migration_lock
                         set holder = $1, fence = fence + 1, until = clock_timestamp() + interval '{}', backend_pid = $2,
                             backend_start = (select a.backend_start from pg_stat_activity a where a.pid = $2)
                         where id = 1 and ({FREE}) returning fence",
                        Self::LEASE
                    ),
                    &[(&holder, Type::TEXT), (&backend, Type::INT4)],
                )
                .await
                .map_err(Error::doing("take the migration lock"))?;
            if let Some(row) = rows.first() {
                let fence = row.get(0);
                return Ok(Self { fence, renewal: tokio::spawn(renew(url.to_owned(), fence)), _presence: presence });
            }
            let other =
                client.query_typed("select holder from gleaner.migration_lock", &[]).await.map_err(Error::doing("ask who migrates"))?;
            let other: String = other.first().map(|r| r.get(0)).unwrap_or_default();
            if begun.elapsed() > Duration::from_secs(600) {
                return Err(Error::MigrationBusy { holder: other, age: format!("{} s", begun.elapsed().as_secs()) });
            }
            if !reported {
                say(&format!("waiting for another migration ({other})"));
                reported = true;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Fails if another run has taken over: a step must not run twice at once.
    pub(super) async fn check(&self, client: &impl GenericClient) -> Result<()> {
        let rows = client
            .query_typed(
                "select 1 from gleaner.migration_lock where fence = $1 and until > clock_timestamp()",
                &[(&self.fence, Type::INT8)],
            )
            .await
            .map_err(Error::doing("check the migration lock"))?;
        if rows.is_empty() {
            return Err(Error::MigrationBusy { holder: "another run that took over".into(), age: "a moment".into() });
        }
        Ok(())
    }

    pub(super) async fn release(self, client: &impl GenericClient) {
        self.renewal.abort();
        let released = client
            .query_typed(
                "update gleaner.migration_lock set until = '-infinity', backend_pid = null, backend_start = null where fence = $1",
                &[(&self.fence, Type::INT8)],
            )
            .await;
        if let Err(error) = released {
            tracing::debug!(%error, "the migration lock will run out by itself");
        }
    }
}

async fn backend(client: &Client) -> Result<Option<i32>> {
    let rows = client.query_typed("select pg_backend_pid()", &[]).await.map_err(Error::doing("ask for our own process"))?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Renews the lease from a separate connection: an index build may keep the first one busy for hours.
async fn renew(url: String, fence: i64) {
    loop {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let renewed = async {
            let client = connect(&url).await?;
            client
                .query_typed(
                    &format!("update gleaner.migration_lock set until = clock_timestamp() + interval '{}' where fence = $1", Lock::LEASE),
                    &[(&fence, Type::INT8)],
                )
                .await
                .map_err(Error::doing("renew the migration lock"))
        };
        if let Err(error) = renewed.await {
            tracing::warn!(%error, "renewing the migration lock failed");
        }
    }
}
