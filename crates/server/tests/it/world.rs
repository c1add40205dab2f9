//! The setup that all tests share: a migrated database, a PostgreSQL that may crash, a folder, and waiting.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use gleaner_postgres::testing::{self, PrivateServer, TestDatabase};
use uuid::Uuid;

/// A database for this test, on the PostgreSQL that all tests share.
pub(crate) async fn database() -> Result<TestDatabase> {
    // Clients in tests need it, whichever test runs first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(testing::server().database_from("migrated", async |url: String| gleaner::migrate::migrate(&url, &|_| {}).await.map(drop)).await?)
}

/// A migrated PostgreSQL for this test only, with durable commits.
pub(crate) async fn private_server(settings: &[(&str, &str)]) -> Result<PrivateServer> {
    let server = PrivateServer::start_with(true, settings).await?;
    gleaner::migrate::migrate(server.url(), &|_| {}).await?;
    Ok(server)
}

/// A folder for files and keys that is deleted with the test.
pub(crate) struct Home(pub PathBuf);

impl Home {
    pub(crate) fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("gleaner-server-{}", Uuid::now_v7()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits until the condition becomes true.
pub(crate) async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_so().await? {
        if Instant::now() > until {
            bail!("waited in vain for {what}");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
