//! The connections of the change feed, made from the database URL.

use gleaner::connect::ssl::{Mode, Ssl};
use gleaner::{Pool, connect};
use gleaner_supabase::realtime::Source;
use pgwire_replication::{ReplicationConfig, SslMode, TlsConfig};
use tokio_postgres::config::Host;

/// What it takes to follow the database at `url`. `pool` connects to the same database.
pub fn source(url: &str, pool: Pool) -> Source {
    let feed = gleaner::pool(url, 2).unwrap_or_else(|_| pool.clone());
    let joins = gleaner::pool(url, 2).unwrap_or_else(|_| pool.clone());
    Source { pool, joins, feed, log: log(url) }
}

/// Where the log is read: the same URL as for every other connection.
fn log(url: &str) -> Result<ReplicationConfig, String> {
    let unsuitable = |what: &str| what.to_owned();
    // libpq's two strictest modes are unknown to the parser that reads the rest of the URL.
    let (ssl, _) = Ssl::of(url).map_err(|_| unsuitable("the database URL cannot be read"))?;
    let parsed = connect::parse(url).map_err(|_| unsuitable("the database URL cannot be read"))?;
    let user = parsed.get_user().map(str::to_owned).or_else(|| std::env::var("USER").ok()).unwrap_or_else(|| "postgres".into());
    let database = parsed.get_dbname().unwrap_or(&user).to_owned();
    let password = parsed.get_password().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    let port = parsed.get_ports().first().copied().unwrap_or(5432);
    let (host, tls) = match parsed.get_hosts().first() {
        Some(Host::Unix(directory)) => (directory.display().to_string(), TlsConfig::disabled()),
        Some(Host::Tcp(host)) => {
            let mode = match ssl.mode {
                Mode::Disable => SslMode::Disable,
                Mode::Allow | Mode::Prefer => SslMode::Prefer,
                Mode::Require => SslMode::Require,
                Mode::VerifyCa => SslMode::VerifyCa,
                Mode::VerifyFull => SslMode::VerifyFull,
            };
            (host.clone(), TlsConfig { mode, ca_pem_path: ssl.root, ..TlsConfig::default() })
        }
        None => return Err(unsuitable("the database URL names no host")),
    };
    Ok(ReplicationConfig::new(host, user, password, database, String::new(), "")
        .with_port(port)
        .with_tls(tls)
        .with_application_name("gleaner change feed"))
}
