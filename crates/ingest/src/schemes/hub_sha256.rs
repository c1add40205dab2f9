//! `hub-sha256`: GitHub, Meta, and others that use the same scheme.

use http::HeaderMap;

use super::proof;
use crate::provider::Verified;
use crate::refusal::Why;
use crate::scheme::{Keys, Scheme};
use crate::{Refusal, Request, crypt};

/// The header of GitHub and Meta, and the one that our own documentation has always given for custom senders.
const HEADERS: &[&str] = &["x-hub-signature-256", "x-webhook-signature"];

#[derive(Debug)]
pub struct HubSha256;

impl Scheme for HubSha256 {
    fn code(&self) -> &'static str {
        "hub-sha256"
    }

    fn about(&self) -> &'static str {
        "GitHub, Meta: X-Hub-Signature-256 (or X-Webhook-Signature, or header) holds sha256= and the HMAC of the body"
    }

    fn check(&self, keys: &Keys<'_>) -> Vec<String> {
        proof::secret_missing(keys, "the secret that was given to the sender")
    }

    fn verify(&self, keys: &Keys<'_>, request: &Request<'_>) -> Result<Verified, Refusal> {
        proof::configured(keys)?;
        let sent = proof::signature_header(keys, HEADERS, request)?;
        let signature = sent.strip_prefix("sha256=").and_then(proof::lower_hex).ok_or(Why::Mismatch)?;
        if !proof::any_hmac(keys.secrets(), &[request.body], &[signature]) {
            return Err(Why::Mismatch.into());
        }
        Ok(Verified::default())
    }

    fn sign(&self, keys: &Keys<'_>, _: i64, headers: &mut HeaderMap, body: &[u8]) -> Result<(), String> {
        let signature = hex::encode(crypt::hmac_sha256(keys.current()?.as_bytes(), &[body]));
        proof::set_header(headers, keys.header.unwrap_or(HEADERS[0]), &format!("sha256={signature}"))
    }
}
