//! Secrets at rest: encrypted with a master key, each bound to one place.
//!
//! A sealed text names the key that sealed it, so that keys can be rotated one row at a time. It is bound to its table, row and
//! purpose, so that it can be opened nowhere else: copying a secret to a row that one may read gains nothing.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use rand::RngCore as _;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

pub mod keyfile;

/// The environment variable that is read before the file.
pub const VARIABLE: &str = "GLEANER_MASTER_KEY";
/// The file in the home directory, created at first use.
pub const FILE: &str = "master.key";

/// Marks our format. Another way of sealing would have another mark.
const MARK: &str = "gs1";
const NONCE: usize = 24;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{place}: {detail}")]
    Keys { place: String, detail: String },
    #[error("sealed with master key {missing}, which is not here (here: {}); add it to {VARIABLE} or {FILE}, after the current one", here.join(", "))]
    MissingKey { missing: String, here: Vec<String> },
    #[error("a sealed value does not open: it was changed, or moved here from another row")]
    Broken,
    #[error("not a sealed value")]
    Unsealed,
}

/// The place a sealed value belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub table: &'a str,
    pub row: &'a str,
    /// Which of the row's secrets: `key`, `config`.
    pub purpose: &'a str,
}

impl Place<'_> {
    /// Each length precedes its content, so that no two places have the same bytes.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in [MARK, self.table, self.row, self.purpose] {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }
}

/// One or more keys. The first one seals; all of them open. Never printed, and wiped from memory when dropped.
pub struct MasterKeys {
    keys: Vec<MasterKey>,
}

struct MasterKey {
    id: String,
    bytes: Zeroizing<[u8; 32]>,
}

impl fmt::Debug for MasterKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKeys")
    }
}

impl MasterKeys {
    /// The keys of this installation: the variable `GLEANER_MASTER_KEY`, else the file `master.key` in its home, which is created
    /// with a random key if it does not exist.
    pub fn load(home: &Path) -> Result<Self, Error> {
        match std::env::var(VARIABLE) {
            Ok(text) if !text.trim().is_empty() => Self::parse(&Zeroizing::new(text), VARIABLE),
            Err(std::env::VarError::NotUnicode(_)) => Err(Error::Keys { place: VARIABLE.into(), detail: "not text".into() }),
            _ => {
                let path = home.join(FILE);
                let text = keyfile::read_or_make(&path, || Zeroizing::new(Self::generate_text()))?;
                Self::parse(&text, &path.display().to_string())
            }
        }
    }

    /// Parses keys: each 32 bytes in base64, several separated by commas or white space, the sealing one first.
    pub fn parse(text: &str, place: &str) -> Result<Self, Error> {
        let wrong = |detail: String| Error::Keys { place: place.to_owned(), detail };
        let mut keys = Vec::new();
        for (n, part) in text.split([',', '\n', ' ', '\r', '\t']).filter(|part| !part.is_empty()).enumerate() {
            // Both alphabets, with and without padding, because tools print either.
            let plain = Zeroizing::new(part.trim_end_matches('=').replace('+', "-").replace('/', "_"));
            let bytes = URL_SAFE_NO_PAD.decode(plain.as_bytes()).map(Zeroizing::new).ok();
            let bytes: Option<[u8; 32]> = bytes.and_then(|bytes| bytes.as_slice().try_into().ok());
            let Some(bytes) = bytes else {
                return Err(wrong(format!("key {} is not 32 bytes in base64; `openssl rand -base64 32` makes one", n + 1)));
            };
            keys.push(MasterKey::new(bytes));
        }
        if keys.is_empty() {
            return Err(wrong("there is no key in it; `openssl rand -base64 32` makes one".into()));
        }
        Ok(Self { keys })
    }

    /// A random key, for tests and for programs that keep no secret after they end.
    pub fn generate() -> Self {
        let mut bytes = [0; 32];
        rand::rng().fill_bytes(&mut bytes);
        Self { keys: vec![MasterKey::new(bytes)] }
    }

    fn generate_text() -> String {
        let mut bytes = Zeroizing::new([0; 32]);
        rand::rng().fill_bytes(bytes.as_mut_slice());
        base64::engine::general_purpose::STANDARD.encode(bytes.as_slice()) + "\n"
    }

    /// Name of the key that seals.
    pub fn current(&self) -> &str {
        &self.keys[0].id
    }

    /// The prefix of every value sealed by the current key.
    pub fn current_prefix(&self) -> String {
        format!("{MARK}.{}.", self.current())
    }

    pub fn seal(&self, plain: &[u8], place: &Place<'_>) -> String {
        let key = &self.keys[0];
        let mut sealed = vec![0; NONCE];
        rand::rng().fill_bytes(&mut sealed);
        let aad = place.bytes();
        let payload = Payload { msg: plain, aad: &aad };
        let text = key.cipher().encrypt(XNonce::from_slice(&sealed), payload).expect("a secret is far shorter than the cipher's limit");
        sealed.extend_from_slice(&text);
        format!("{MARK}.{}.{}", key.id, URL_SAFE_NO_PAD.encode(sealed))
    }

    pub fn open(&self, sealed: &str, place: &Place<'_>) -> Result<Zeroizing<Vec<u8>>, Error> {
        let mut parts = sealed.splitn(3, '.');
        let (Some(MARK), Some(id), Some(text)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(Error::Unsealed);
        };
        let Some(key) = self.keys.iter().find(|key| key.id == id) else {
            let here = self.keys.iter().map(|key| key.id.clone()).collect();
            // The name comes from the database, so only as much of it as a valid name has is repeated.
            return Err(Error::MissingKey { missing: id.chars().take(16).collect(), here });
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| Error::Broken)?;
        let (nonce, text) = bytes.split_at_checked(NONCE).ok_or(Error::Broken)?;
        let payload = Payload { msg: text, aad: &place.bytes() };
        key.cipher().decrypt(XNonce::from_slice(nonce), payload).map(Zeroizing::new).map_err(|_| Error::Broken)
    }
}

impl MasterKey {
    fn new(bytes: [u8; 32]) -> Self {
        // The name is derived from the key, so that a key has the same name everywhere.
        let digest = Sha256::new().chain_update(b"gleaner master key\0").chain_update(bytes).finalize();
        Self { id: hex::encode(&digest[..4]), bytes: Zeroizing::new(bytes) }
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.bytes.as_slice().into())
    }
}

#[cfg(test)]
mod tests;
