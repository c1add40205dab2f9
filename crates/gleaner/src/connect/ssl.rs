//! `sslmode` and `sslrootcert` of a connection string, with the same meaning as in libpq.

use std::path::PathBuf;

use crate::error::{Error, Result};

/// What a connection requires of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Mode {
    /// No encryption.
    Disable,
    /// Encryption only if the server insists on it.
    Allow,
    /// Encryption if the server supports it.
    #[default]
    Prefer,
    /// Encryption, without checking the certificate.
    Require,
    /// Encryption, with a certificate from a trusted authority.
    VerifyCa,
    /// Like `VerifyCa`, and the certificate must be for this host.
    VerifyFull,
}

/// What a connection string says about encryption.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ssl {
    /// What it requires of the server.
    pub mode: Mode,
    /// The file of trusted certificates. Without it the system's certificates are trusted.
    pub root: Option<PathBuf>,
}

impl Ssl {
    /// Removes the two parameters from a connection string, in either of its forms, because the driver knows only some of their values.
    pub fn of(url: &str) -> Result<(Self, String)> {
        let mut ssl = Self::default();
        let mut said = None;
        let mut take = |part: &str| -> Result<bool> {
            let Some((key, value)) = part.split_once('=') else { return Ok(false) };
            match key.trim() {
                "sslmode" => said = Some(mode(value.trim().trim_matches('\''))?),
                "sslrootcert" => ssl.root = Some(value.trim().trim_matches('\'').replace("%2F", "/").into()),
                _ => return Ok(false),
            }
            Ok(true)
        };
        let rest = if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let (address, query) = url.split_once('?').unwrap_or((url, ""));
            let mut kept = Vec::new();
            for part in query.split('&').filter(|part| !part.is_empty()) {
                if !take(part)? {
                    kept.push(part);
                }
            }
            if kept.is_empty() { address.to_owned() } else { format!("{address}?{}", kept.join("&")) }
        } else {
            let mut kept = Vec::new();
            for part in url.split(' ') {
                if !take(part)? {
                    kept.push(part);
                }
            }
            kept.join(" ")
        };
        ssl.mode = said.unwrap_or_default();
        if ssl.root.as_deref().is_some_and(|root| root.as_os_str() == "system") {
            ssl.root = None;
            // Same as libpq: when every authority is trusted, the host name must be checked.
            ssl.mode = ssl.mode.max(Mode::VerifyFull);
        } else if ssl.root.is_none() && ssl.mode >= Mode::Require {
            ssl.root = std::env::home_dir().map(|home| home.join(".postgresql/root.crt")).filter(|file| file.exists());
        }
        // For compatibility with old settings, libpq checks the certificate if there is a root certificate to compare it with.
        if ssl.mode == Mode::Require && ssl.root.is_some() {
            ssl.mode = Mode::VerifyCa;
        }
        Ok((ssl, rest))
    }
}

fn mode(word: &str) -> Result<Mode> {
    Ok(match word {
        "disable" => Mode::Disable,
        "allow" => Mode::Allow,
        "prefer" => Mode::Prefer,
        "require" => Mode::Require,
        "verify-ca" => Mode::VerifyCa,
        "verify-full" => Mode::VerifyFull,
        other => {
            let message = format!("sslmode={other} is none: there are disable, allow, prefer, require, verify-ca, verify-full");
            return Err(Error::Refused { message, code: None });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> (Mode, Option<String>, String) {
        let (ssl, rest) = Ssl::of(url).unwrap();
        (ssl.mode, ssl.root.map(|r| r.display().to_string()), rest)
    }

    #[test]
    fn both_forms_of_a_connection_string_are_read() {
        assert_eq!(of("postgresql://u@h/d"), (Mode::Prefer, None, "postgresql://u@h/d".into()));
        assert_eq!(
            of("postgres://u@h/d?sslmode=verify-ca&connect_timeout=3&sslrootcert=/a/b.pem"),
            (Mode::VerifyCa, Some("/a/b.pem".into()), "postgres://u@h/d?connect_timeout=3".into())
        );
        assert_eq!(of("host=h sslmode=disable user=u"), (Mode::Disable, None, "host=h user=u".into()));
        assert_eq!(of("postgres://h/d?sslrootcert=system").0, Mode::VerifyFull);
        assert_eq!(of("postgres://h/d?sslmode=require&sslrootcert=/a").0, Mode::VerifyCa);
        assert!(Ssl::of("postgres://h/d?sslmode=yes").unwrap_err().to_string().contains("verify-full"));
    }
}
