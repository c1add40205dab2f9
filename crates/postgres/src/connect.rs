//! Addresses, and whether a server answers there.

use std::path::Path;

use tokio_postgres::{Client, NoTls};

use crate::{Error, NAME, Result};

/// PostgreSQL's default port, and the number in its socket's name.
pub(crate) const PORT: u16 = 5432;

/// The address of a database on a unix socket, in the form that libpq and tokio-postgres both accept.
pub(crate) fn socket_url(directory: &Path, port: u16, database: &str) -> String {
    let host = directory.display();
    let port = if port == PORT { String::new() } else { format!("&port={port}") };
    format!("postgresql://{NAME}@/{database}?host={host}{port}")
}

/// The address over TCP.
pub(crate) fn tcp_url(port: u16, password: &str, database: &str) -> String {
    format!("postgresql://{NAME}:{password}@127.0.0.1:{port}/{database}")
}

/// Connects without TLS, which a unix socket and 127.0.0.1 do not need, and drives the connection on this runtime.
pub(crate) async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        // The client gets the same error at its next statement, so it is not reported here as well.
        let _ = connection.await;
    });
    Ok(client)
}

/// The version of the server that answers at this address, for display: `15.4`.
pub(crate) async fn server_version(url: &str) -> Result<String> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(Error::database("connect"))?;
    let version = connection.parameter("server_version").unwrap_or_default();
    let version = version.split_whitespace().next().unwrap_or_default().to_owned();
    drop(client);
    // Closes the connection properly, so that the server does not log a lost connection.
    let _ = connection.await;
    Ok(version)
}

/// Creates our database unless it exists.
pub(crate) async fn ensure_database(maintenance_url: &str) -> Result<()> {
    let client = connect(maintenance_url).await.map_err(Error::database("connect"))?;
    let there = client
        .query_one("select exists (select from pg_database where datname = $1)", &[&NAME])
        .await
        .map_err(Error::database("look for the database"))?;
    if !there.get::<_, bool>(0) {
        client.batch_execute(&format!("create database {NAME}")).await.map_err(Error::database("create the database"))?;
    }
    Ok(())
}

/// Sets the password of our role, unless it has it already. Only TCP connections need it.
pub(crate) async fn set_password(url: &str, password: &str) -> Result<()> {
    let client = connect(url).await.map_err(Error::database("connect"))?;
    // Hexadecimal digits only, see `password`: nothing needs quoting.
    let statement = format!("set log_statement = none; alter role {NAME} password '{password}'");
    client.batch_execute(&statement).await.map_err(Error::database("set the password"))
}

#[cfg(test)]
mod tests {
    use super::socket_url;
    use std::path::Path;
    use tokio_postgres::config::Host;

    #[test]
    fn the_address_is_understood_by_tokio_postgres() {
        for (port, expected) in [(5432, 5432), (6000, 6000)] {
            let url = socket_url(Path::new("/tmp/gleaner-1"), port, "gleaner");
            let config: tokio_postgres::Config = url.parse().expect("a URL");
            assert_eq!(config.get_hosts(), [Host::Unix("/tmp/gleaner-1".into())]);
            assert_eq!(config.get_ports().first().copied().unwrap_or(5432), expected);
            assert_eq!((config.get_user(), config.get_dbname()), (Some("gleaner"), Some("gleaner")));
        }
    }
}
