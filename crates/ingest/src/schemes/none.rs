//! `none`: any caller that knows the URL is accepted.

use http::HeaderMap;

use crate::provider::Verified;
use crate::scheme::{Keys, Scheme};
use crate::{Refusal, Request};

/// The warning shown wherever a channel relies on its key alone.
pub const KEY_ALONE: &str = "nothing is signed: anyone who has the URL with its key can store events in this channel";

#[derive(Debug)]
pub struct None;

impl Scheme for None {
    fn code(&self) -> &'static str {
        "none"
    }

    fn about(&self) -> &'static str {
        "no signature: the key in the URL is the only protection; for senders that cannot sign"
    }

    fn check(&self, keys: &Keys<'_>) -> Vec<String> {
        if keys.is_empty() {
            return Vec::new();
        }
        // A secret here was meant to protect something, so ignoring it silently would be wrong.
        vec!["scheme none ignores the secret: choose a scheme that uses it, or take the secret out".to_owned()]
    }

    fn caution(&self) -> Option<&'static str> {
        Some(KEY_ALONE)
    }

    fn verify(&self, _: &Keys<'_>, _: &Request<'_>) -> Result<Verified, Refusal> {
        Ok(Verified { warning: Some(KEY_ALONE.to_owned()), ..Verified::default() })
    }

    fn sign(&self, _: &Keys<'_>, _: i64, _: &mut HeaderMap, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}
