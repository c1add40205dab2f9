//! Ingestion keys: 32 random bytes, looked up by their hash, shown as a mask.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngCore as _;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// The start of every mask; the trigger `keep_channel_secrets` uses it too. No URL contains an unescaped ellipsis, so no
/// key looks like this.
const MASK_PREFIX: &str = "ik_…";

pub(super) fn generate() -> Zeroizing<String> {
    let mut bytes = Zeroizing::new([0_u8; 32]);
    rand::rng().fill_bytes(bytes.as_mut_slice());
    Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes.as_slice()))
}

pub(super) fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// Enough of the hash to distinguish channels, and of no use to an attacker.
pub(super) fn mask(hash: &[u8]) -> String {
    format!("{MASK_PREFIX}{}", hex::encode(&hash[..hash.len().min(6)]))
}

pub(super) fn is_mask(text: &str) -> bool {
    text.starts_with(MASK_PREFIX)
}

/// What is wrong with a key that the caller supplies.
pub(super) fn check(key: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    if key.len() < 16 || key.len() > 256 {
        Some("the ingestion key must have 16 to 256 characters; leave it out and a random one is made".into())
    } else if !key.chars().all(plain) {
        Some("the ingestion key may hold letters, digits and -._~ only: it is part of a URL, and the URL is signed".into())
    } else {
        None
    }
}
