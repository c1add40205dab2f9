//! Which database a command uses: the one given, else the private one of this home.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use gleaner::{Acts, notify};
use gleaner_postgres::{Home, Phase, status};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

#[derive(Debug)]
pub(crate) struct Target {
    database_url: Option<String>,
    home: Option<PathBuf>,
}

impl Target {
    pub(crate) fn new(database_url: Option<String>, home: Option<PathBuf>) -> Self {
        // Shells often unset a variable by setting it to the empty string.
        Self { database_url: database_url.filter(|url| !url.is_empty()), home: home.filter(|home| !home.as_os_str().is_empty()) }
    }

    /// The database that the user named, if any.
    pub(crate) fn given(&self) -> Option<&str> {
        self.database_url.as_deref()
    }

    /// The home of the private PostgreSQL.
    pub(crate) fn home(&self) -> Result<Home> {
        Ok(match &self.home {
            Some(path) => Home::at(path)?,
            None => Home::from_env()?,
        })
    }

    /// The home when it is not the default one, and so must be given to the next command as well.
    pub(crate) fn unusual_home(&self) -> Option<&PathBuf> {
        self.home.as_ref()
    }

    /// The address of the database. Waits for a private one that is starting.
    pub(crate) async fn url(&self) -> Result<String> {
        if let Some(url) = &self.database_url {
            return Ok(url.clone());
        }
        let home = self.home()?;
        let patience = Instant::now() + Duration::from_secs(30);
        loop {
            let now = status(&home).await?;
            match now.server {
                Some(server) if server.phase == Phase::Ready => return Ok(server.url),
                Some(server) if Instant::now() > patience => {
                    bail!("PostgreSQL (pid {}) does not answer; `gleaner logs` shows what it says", server.pid)
                }
                Some(server) if server.phase == Phase::Starting => {}
                None if now.parent_pid.is_some() && Instant::now() < patience => {}
                _ => {
                    return Err(anyhow!(
                        "there is no database: nothing runs in {}\n  \
                         Start a private PostgreSQL with `gleaner up`, or set DATABASE_URL",
                        home.path().display()
                    ));
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn client(&self) -> Result<Client> {
        Ok(gleaner::connect(&self.url().await?).await?)
    }

    /// A connection, and the operations of a queue on it.
    pub(crate) async fn acts(&self, named: &Named) -> Result<(Client, Acts)> {
        let client = self.client().await?;
        let acts = Acts::of(&client, &named.queue).await?;
        named.check_tenant(acts.declaration().tenant.is_some())?;
        let acts = match &named.tenant {
            Some(tenant) => acts.within(&client, tenant).await?,
            None => acts,
        };
        Ok((client, acts))
    }
}

/// Which queue.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Named {
    /// Name of the queue, as `gleaner queues` lists it
    pub queue: String,
    /// The tenant to act in, where the queue has tenants
    #[arg(long)]
    pub tenant: Option<String>,
}

impl Named {
    pub(crate) fn check_tenant(&self, needed: bool) -> Result<()> {
        match (&self.tenant, needed) {
            (None, true) => bail!("queue {} has tenants: say which with --tenant", self.queue),
            (Some(_), false) => bail!("queue {} has no tenants: leave --tenant out", self.queue),
            _ => Ok(()),
        }
    }
}

/// Notifies waiting workers that the queue has work. Call it after the commit. A lost notification costs time, never work.
pub(crate) async fn notify_workers(client: &Client, queue: &str) {
    let sent = client.query_typed("select pg_notify($1, $2)", &[(&notify::CHANNEL, Type::TEXT), (&queue, Type::TEXT)]).await;
    if let Err(error) = sent {
        tracing::debug!(%error, "the notification failed; the next poll finds the work");
    }
}

/// The seconds of an interval in PostgreSQL's syntax: `5 minutes`, `1 day 2 hours`.
pub(crate) async fn seconds(client: &Client, interval: &str) -> Result<f64> {
    let rows = client.query_typed("select extract(epoch from $1::text::interval)::float8", &[(&interval, Type::TEXT)]).await;
    match rows {
        Ok(rows) => Ok(rows[0].get(0)),
        Err(error) if error.code().is_some_and(|code| code.code().starts_with("22")) => {
            bail!("{interval:?} is not a length of time; write it like '5 minutes' or '1 day 12 hours'")
        }
        Err(error) => Err(gleaner::Error::Database { act: "read the length of time".into(), source: error }.into()),
    }
}
