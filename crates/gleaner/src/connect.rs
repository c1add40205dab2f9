//! Connections: a pool for the acts, and single connections for what needs its own.

use deadpool_postgres::{Manager, ManagerConfig, RecyclingMethod};
use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

use crate::error::{Error, Result};

// Compiled for tests too, so that its behaviour is tested in every build.
#[cfg(any(test, not(feature = "tls")))]
mod no_tls;
pub mod ssl;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod verify;

#[cfg(not(feature = "tls"))]
use no_tls as encryption;
use ssl::{Mode, Ssl};
#[cfg(feature = "tls")]
use tls as encryption;

use encryption::Tls;
pub(crate) use encryption::{is_handshake_error, tls};

/// A pool of connections, from [`pool`].
pub type Pool = deadpool_postgres::Pool;

/// A pool of at most `size` connections to `url`.
///
/// Statements are always sent unnamed, so that a pooler in transaction mode may sit between the program and PostgreSQL.
pub fn pool(url: &str, size: usize) -> Result<Pool> {
    let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_connect(parse(url)?, Connector::of(url)?, manager);
    Pool::builder(manager).max_size(size).build().map_err(|e| Error::Connect(e.to_string()))
}

/// A pool of connections to the database of `url` with another login.
pub fn pool_as(url: &str, user: &str, password: &str, size: usize) -> Result<Pool> {
    let mut config = parse(url)?;
    config.user(user).password(password);
    let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_connect(config, Connector::of(url)?, manager);
    Pool::builder(manager).max_size(size).build().map_err(|e| Error::Connect(e.to_string()))
}

/// A connection from the pool. Unlike the pool's own error, ours says whether a retry may succeed.
pub async fn checkout(pool: &Pool) -> Result<deadpool_postgres::Object> {
    Ok(pool.get().await?)
}

/// A separate connection, driven by a background task.
pub async fn connect(url: &str) -> Result<Client> {
    let (client, _) = Connector::of(url)?.open(&parse(url)?).await.map_err(|e| Error::unconnected(&e))?;
    Ok(client)
}

/// A connection to PostgreSQL itself, or `None` behind a pooler: a setting that can only be made when a session starts does not
/// pass through a pooler.
#[cfg(feature = "schema")]
pub(crate) async fn connect_directly(url: &str) -> Option<Client> {
    const PROOF: &str = "gleaner.direct";
    let mut config = parse(url).ok()?;
    let options = config.get_options().map(|o| format!("{o} ")).unwrap_or_default();
    config.options(format!("{options}-c {PROOF}=yes"));
    let (client, _) = Connector::of(url).ok()?.open(&config).await.ok()?;
    let rows = client.query_typed(&format!("select current_setting('{PROOF}', true)"), &[]).await.ok()?;
    let proof: Option<String> = rows.first()?.get(0);
    (proof.as_deref() == Some("yes")).then_some(client)
}

/// Opens connections as `sslmode` requires.
struct Connector {
    mode: Mode,
    tls: Tls,
}

impl Connector {
    fn of(url: &str) -> Result<Self> {
        Ok(Self { mode: Ssl::of(url)?.0.mode, tls: tls(url)? })
    }

    /// Like libpq: `allow` and `prefer` make a second attempt, with or without encryption.
    async fn open(&self, config: &Config) -> Result<(Client, JoinHandle<()>), tokio_postgres::Error> {
        if is_local(config) || self.mode == Mode::Disable {
            return self.open_as(config, SslMode::Disable).await;
        }
        let (first, second) = match self.mode {
            Mode::Allow => (SslMode::Disable, Some(SslMode::Require)),
            Mode::Prefer => (SslMode::Prefer, Some(SslMode::Disable)),
            _ => (SslMode::Require, None),
        };
        match (self.open_as(config, first).await, second) {
            (Err(error), Some(second)) if is_about_encryption(&error) => self.open_as(config, second).await,
            (result, _) => result,
        }
    }

    async fn open_as(&self, config: &Config, mode: SslMode) -> Result<(Client, JoinHandle<()>), tokio_postgres::Error> {
        let mut config = config.clone();
        config.ssl_mode(mode);
        if mode == SslMode::Disable {
            let (client, connection) = config.connect(NoTls).await?;
            Ok((client, tokio::spawn(drive(connection))))
        } else {
            let (client, connection) = config.connect(Tls::clone(&self.tls)).await?;
            Ok((client, tokio::spawn(drive(connection))))
        }
    }
}

impl deadpool_postgres::Connect for Connector {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), tokio_postgres::Error>> {
        let config = config.clone();
        Box::pin(async move { self.open(&config).await })
    }
}

/// Whether the other attempt may succeed: the handshake failed, or pg_hba.conf rejects this kind of connection.
fn is_about_encryption(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        None => std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>()).is_some_and(is_handshake_error),
    }
}

async fn drive(connection: impl Future<Output = Result<(), tokio_postgres::Error>>) {
    if let Err(error) = connection.await {
        tracing::debug!(%error, "connection closed");
    }
}

/// Host and database of `url`, for people to read. Never contains a password.
pub fn describe(url: &str) -> String {
    let Ok(config) = parse(url) else { return "a URL that cannot be read".to_owned() };
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => format!("{host}:{}", config.get_ports().first().copied().unwrap_or(5432)),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    format!("postgresql at {host}, database {}", config.get_dbname().or(config.get_user()).unwrap_or("postgres"))
}

/// A unix socket needs no encryption, and has no host name to check.
pub(crate) fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|h| matches!(h, Host::Unix(_)))
}

/// The driver's part of a connection string. The driver knows three of the modes; [`ssl`] reads all of them.
pub fn parse(url: &str) -> Result<Config> {
    let (ssl, rest) = Ssl::of(url)?;
    let mut config: Config = rest.parse().map_err(|e| Error::Refused { message: crate::error::describe(&e), code: None })?;
    config.ssl_mode(match ssl.mode {
        Mode::Disable => SslMode::Disable,
        Mode::Allow | Mode::Prefer => SslMode::Prefer,
        _ => SslMode::Require,
    });
    if config.get_application_name().is_none() {
        config.application_name("gleaner");
    }
    Ok(config)
}
