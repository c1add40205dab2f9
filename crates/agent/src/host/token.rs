//! An app's key to the shared models. It is shown once and stored only as a hash.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRngCore as _;
use rand::rngs::OsRng;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The prefix of every such key, so that people and secret scanners recognize it.
pub(super) const PREFIX: &str = "gleaner_app_";

pub(super) fn new() -> String {
    format!("{PREFIX}{}", random())
}

pub(super) fn random() -> String {
    let mut bytes = [0; 32];
    // The system's random source. Without it nothing here could be secure.
    OsRng.try_fill_bytes(&mut bytes).expect("the system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(super) fn hash(token: &str) -> String {
    hex::encode(Sha256::digest(token))
}

pub(super) fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}
