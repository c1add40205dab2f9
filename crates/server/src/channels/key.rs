//! Ingestion keys: 32 random bytes, found by their hash, shown as a mask.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngCore as _;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// What every mask begins with; the trigger `keep_channel_secrets` knows it too. No URL holds the ellipsis unescaped, so
/// no key looks like this.
const MASK_PREFIX: &str = "ik_…";

pub fn generate() -> Zeroizing<String> {
    let mut bytes = Zeroizing::new([0_u8; 32]);
    rand::rng().fill_bytes(bytes.as_mut_slice());
    Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes.as_slice()))
}

pub fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// Enough of the hash to tell channels apart, and of no use to anybody else.
pub fn mask(hash: &[u8]) -> String {
    format!("{MASK_PREFIX}{}", hex::encode(&hash[..hash.len().min(6)]))
}

pub fn is_mask(text: &str) -> bool {
    text.starts_with(MASK_PREFIX)
}

/// What is wrong with a key somebody brings along from elsewhere.
pub fn check(key: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    if key.len() < 16 || key.len() > 256 {
        Some("the ingestion key must have 16 to 256 characters; leave it out and a random one is made".into())
    } else if !key.chars().all(plain) {
        Some("the ingestion key may hold letters, digits and -._~ only: it is part of a URL, and the URL is signed".into())
    } else {
        None
    }
}
