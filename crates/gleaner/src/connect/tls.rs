//! Encrypted connections, with rustls.

use std::sync::Arc;

use tokio_postgres_rustls::MakeRustlsConnect;

use super::ssl::Ssl;
use super::verify;
use crate::error::{Error, Result};

pub(crate) type Tls = MakeRustlsConnect;

/// Encryption, and the check of the server's certificate that `sslmode` asks for.
pub(crate) fn tls(url: &str) -> Result<Tls> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = verify::verifier(&Ssl::of(url)?.0, provider.clone())?;
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::Connect(e.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Whether the handshake failed, and not the network.
pub(crate) fn is_handshake_error(error: &std::io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
}
