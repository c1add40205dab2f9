//! Connections in a build without the feature `tls`: never encrypted.

use tokio_postgres::NoTls;

use super::ssl::{Mode, Ssl};
use crate::error::{Error, Result};

pub(crate) type Tls = NoTls;

/// An error if the URL demands encryption: such a connection must not be opened without it.
pub(crate) fn tls(url: &str) -> Result<Tls> {
    let mode = Ssl::of(url)?.0.mode;
    if matches!(mode, Mode::Disable | Mode::Allow | Mode::Prefer) || super::is_local(&super::parse(url)?) {
        return Ok(NoTls);
    }
    let message = "the URL demands TLS, and this program was built without it: enable the feature `tls` of gleaner".into();
    Err(Error::Refused { message, code: None })
}

pub(crate) fn is_handshake_error(_: &std::io::Error) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_demands_tls_is_an_error_in_a_build_without_it() {
        for mode in ["require", "verify-ca", "verify-full"] {
            let error = tls(&format!("postgres://db.example.com/shop?sslmode={mode}")).unwrap_err();
            assert!(error.to_string().contains("enable the feature `tls`"), "{mode}: {error}");
        }
        for mode in ["disable", "allow", "prefer"] {
            assert!(tls(&format!("postgres://db.example.com/shop?sslmode={mode}")).is_ok(), "{mode}");
        }
        assert!(tls("host=/run/postgresql sslmode=require").is_ok(), "a unix socket is not encrypted");
        assert!(!is_handshake_error(&std::io::ErrorKind::ConnectionReset.into()));
    }
}
