//! `timestamped`: Stripe's header, which carries the time and one signature per secret.

use http::HeaderMap;
use serde_json::Value;

use super::proof;
use crate::provider::Verified;
use crate::refusal::Why;
use crate::scheme::{Keys, Scheme};
use crate::{Refusal, Request, crypt, json};

const HEADERS: &[&str] = &["stripe-signature", "x-webhook-signature"];

#[derive(Debug)]
pub struct Timestamped;

/// `t=1700000000,v1=…,v1=…`, in any order. Signatures of other versions are ignored.
fn parse(header: &str) -> Option<(&str, Vec<[u8; 32]>)> {
    let mut timestamps = Vec::new();
    let mut signatures = Vec::new();
    for (name, value) in header.split(',').filter_map(|part| part.trim().split_once('=')) {
        match name {
            "t" => timestamps.push(value),
            "v1" => signatures.extend(proof::lower_hex(value)),
            _ => {}
        }
    }
    let [timestamp] = timestamps[..] else { return None };
    (signatures.len() <= proof::MOST_SIGNATURES).then_some((timestamp, signatures))
}

impl Scheme for Timestamped {
    fn code(&self) -> &'static str {
        "timestamped"
    }

    fn about(&self) -> &'static str {
        "Stripe: Stripe-Signature (or header) holds t=<time>,v1=<HMAC of time, dot and body>; the secret is used as it is written"
    }

    fn check(&self, keys: &Keys<'_>) -> Vec<String> {
        proof::secret_missing(keys, "the signing secret of the endpoint, whsec_ included")
    }

    fn verify(&self, keys: &Keys<'_>, request: &Request<'_>) -> Result<Verified, Refusal> {
        proof::configured(keys)?;
        let (timestamp, signatures) = parse(proof::signature_header(keys, HEADERS, request)?).ok_or(Why::Mismatch)?;
        if !proof::any_hmac(keys.secrets(), &[timestamp.as_bytes(), b".", request.body], &signatures) {
            return Err(Why::Mismatch.into());
        }
        proof::in_time(timestamp, request)?;
        Ok(Verified::default())
    }

    /// A Stripe event keeps its id while its body changes from one delivery to the next (`pending_webhooks` counts down).
    fn signed_id(&self, request: &Request<'_>) -> Option<String> {
        let body = json::read(request.body).ok()?;
        let is_event = body.get("object").and_then(Value::as_str) == Some("event");
        Some(body.get("id").filter(|_| is_event)?.as_str()?.to_owned())
    }

    fn sign(&self, keys: &Keys<'_>, unix_now: i64, headers: &mut HeaderMap, body: &[u8]) -> Result<(), String> {
        let timestamp = unix_now.to_string();
        let signature = crypt::hmac_sha256(keys.current()?.as_bytes(), &[timestamp.as_bytes(), b".", body]);
        proof::set_header(headers, keys.header.unwrap_or(HEADERS[0]), &format!("t={timestamp},v1={}", hex::encode(signature)))
    }
}
