//! Which server certificates are accepted.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme};

use super::ssl::{Mode, Ssl};
use crate::error::{Error, Result};

/// The verifier that a mode requires.
pub(super) fn verifier(ssl: &Ssl, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>> {
    if ssl.mode < Mode::VerifyCa {
        return Ok(Arc::new(Unseen));
    }
    let trusted = match &ssl.root {
        Some(file) => read(file)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    // One unreadable certificate must not make all the others untrusted.
    roots.add_parsable_certificates(trusted.iter().cloned());
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|e| Error::Refused { message: format!("no certificate can be verified: {e}"), code: None })?;
    // A self-signed server certificate may be trusted by listing it in the root file. The system's certificates are authorities.
    let pinned = if ssl.root.is_some() { trusted } else { Vec::new() };
    Ok(Arc::new(Trusted { inner, pinned, names: ssl.mode == Mode::VerifyFull }))
}

fn read(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let failed = |why: String| Error::Refused { message: format!("read sslrootcert {}: {why}", file.display()), code: None };
    CertificateDer::pem_file_iter(file)
        .map_err(|e| failed(e.to_string()))?
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| failed(e.to_string()))
}

/// Below `verify-ca` the certificate is not checked, not even whether it can be parsed: it may be expired, for another host, or
/// of an obsolete form. A man-in-the-middle could present an equally acceptable one.
#[derive(Debug)]
struct Unseen;

impl ServerCertVerifier for Unseen {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        use SignatureScheme as S;
        vec![
            S::ECDSA_NISTP256_SHA256,
            S::ECDSA_NISTP384_SHA384,
            S::ECDSA_NISTP521_SHA512,
            S::ED25519,
            S::ED448,
            S::RSA_PSS_SHA256,
            S::RSA_PSS_SHA384,
            S::RSA_PSS_SHA512,
            S::RSA_PKCS1_SHA256,
            S::RSA_PKCS1_SHA384,
            S::RSA_PKCS1_SHA512,
            S::RSA_PKCS1_SHA1,
            S::ECDSA_SHA1_Legacy,
        ]
    }
}

/// The verifier for `verify-ca` and `verify-full`.
#[derive(Debug)]
struct Trusted {
    inner: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
    names: bool,
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        match self.inner.verify_server_cert(certificate, chain, name, ocsp, now) {
            Err(TlsError::InvalidCertificate(CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }))
                if !self.names =>
            {
                Ok(ServerCertVerified::assertion())
            }
            // The server presents an authority's own certificate. webpki rejects that; libpq trusts the certificates in the root file.
            Err(TlsError::InvalidCertificate(CertificateError::Other(_))) if self.pinned.iter().any(|p| p == certificate) => {
                if self.names {
                    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
