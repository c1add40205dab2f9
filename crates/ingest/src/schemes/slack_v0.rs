//! `slack-v0`: Slack's signing secret.

use http::HeaderMap;

use super::proof;
use crate::provider::Verified;
use crate::refusal::Why;
use crate::scheme::{Keys, Scheme};
use crate::{Refusal, Request, crypt, json};

const SIGNATURE: &str = "x-slack-signature";
const TIMESTAMP: &str = "x-slack-request-timestamp";

#[derive(Debug)]
pub struct SlackV0;

impl Scheme for SlackV0 {
    fn code(&self) -> &'static str {
        "slack-v0"
    }

    fn about(&self) -> &'static str {
        "Slack: the app's signing secret"
    }

    fn check(&self, keys: &Keys<'_>) -> Vec<String> {
        proof::secret_missing(keys, "the signing secret of the Slack app, under Basic Information")
    }

    fn verify(&self, keys: &Keys<'_>, request: &Request<'_>) -> Result<Verified, Refusal> {
        proof::configured(keys)?;
        let timestamp = request.header(TIMESTAMP).ok_or(Why::Unsigned)?;
        let sent = request.header(SIGNATURE).ok_or(Why::Unsigned)?;
        let signature = sent.strip_prefix("v0=").and_then(proof::lower_hex).ok_or(Why::Mismatch)?;
        if !proof::any_hmac(keys.secrets(), &[b"v0:", timestamp.as_bytes(), b":", request.body], &[signature]) {
            return Err(Why::Mismatch.into());
        }
        proof::in_time(timestamp, request)?;
        Ok(Verified::default())
    }

    /// Slack redelivers an event with the same `event_id`. Slash commands have none and are not redelivered.
    fn signed_id(&self, request: &Request<'_>) -> Option<String> {
        let body = json::read(request.body).ok()?;
        Some(body.get("event_id")?.as_str()?.to_owned())
    }

    fn sign(&self, keys: &Keys<'_>, unix_now: i64, headers: &mut HeaderMap, body: &[u8]) -> Result<(), String> {
        let timestamp = unix_now.to_string();
        let signature = crypt::hmac_sha256(keys.current()?.as_bytes(), &[b"v0:", timestamp.as_bytes(), b":", body]);
        proof::set_header(headers, TIMESTAMP, &timestamp)?;
        proof::set_header(headers, SIGNATURE, &format!("v0={}", hex::encode(signature)))
    }
}
