//! Connections: a pool for the acts, a single one for what needs its own.

use std::sync::Arc;

use deadpool_postgres::{Manager, ManagerConfig, RecyclingMethod};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Error, Result};

pub type Pool = deadpool_postgres::Pool;

/// A pool of at most `size` connections to `url`.
///
/// Statements are sent unnamed everywhere, so that a pooler in transaction mode may stand in between.
pub fn pool(url: &str, size: usize) -> Result<Pool> {
    let config = parse(url)?;
    let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager =
        if is_local(&config) { Manager::from_config(config, NoTls, manager) } else { Manager::from_config(config, tls(url)?, manager) };
    Pool::builder(manager).max_size(size).build().map_err(|e| Error::Connect(e.to_string()))
}

/// A connection of the pool. Unlike the pool's own error, ours tells whether another try may get one.
pub async fn checkout(pool: &Pool) -> Result<deadpool_postgres::Object> {
    Ok(pool.get().await?)
}

/// A connection of its own, driven by a task in the background.
pub async fn connect(url: &str) -> Result<Client> {
    let config = parse(url)?;
    let refused = |e| Error::unconnected(&e);
    if is_local(&config) {
        let (client, connection) = config.connect(NoTls).await.map_err(refused)?;
        tokio::spawn(drive(connection));
        Ok(client)
    } else {
        let (client, connection) = config.connect(tls(url)?).await.map_err(refused)?;
        tokio::spawn(drive(connection));
        Ok(client)
    }
}

async fn drive(connection: impl Future<Output = Result<(), tokio_postgres::Error>>) {
    if let Err(error) = connection.await {
        tracing::debug!(%error, "connection closed");
    }
}

/// Where `url` points, for people: host and database, never a password.
pub fn describe(url: &str) -> String {
    let Ok(config) = parse(url) else { return "a URL that cannot be read".to_owned() };
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => format!("{host}:{}", config.get_ports().first().copied().unwrap_or(5432)),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    format!("postgresql at {host}, database {}", config.get_dbname().or(config.get_user()).unwrap_or("postgres"))
}

/// A unix socket needs no encryption, and has no name to check.
pub(crate) fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|h| matches!(h, Host::Unix(_)))
}

pub(crate) fn parse(url: &str) -> Result<Config> {
    // libpq's verify-ca and verify-full are not known to the driver; the certificate check is ours, see `tls`.
    let url = url.replace("sslmode=verify-full", "sslmode=require").replace("sslmode=verify-ca", "sslmode=require");
    let mut config: Config = url.parse().map_err(|e| Error::Refused { message: crate::error::describe(&e), code: None })?;
    if config.get_application_name().is_none() {
        config.application_name("gleaner");
    }
    Ok(config)
}

/// TLS as libpq has it: `require` encrypts, `verify-ca` and `verify-full` also check who answers.
pub(crate) fn tls(url: &str) -> Result<MakeRustlsConnect> {
    let verify = url.contains("sslmode=verify-full") || url.contains("sslmode=verify-ca");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::Connect(e.to_string()))?;
    let config = if verify {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in rustls_native_certs::load_native_certs().certs {
            // One unreadable certificate in the system's store is no reason to trust none.
            let _ = roots.add(certificate);
        }
        builder.with_root_certificates(roots).with_no_client_auth()
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(anyone::Anyone(provider))).with_no_client_auth()
    };
    Ok(MakeRustlsConnect::new(config))
}

/// `sslmode=require` encrypts without asking who is there, as libpq documents it.
mod anyone {
    use std::sync::Arc;

    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, Error, SignatureScheme};

    #[derive(Debug)]
    pub(super) struct Anyone(pub(super) Arc<CryptoProvider>);

    impl ServerCertVerifier for Anyone {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
}
