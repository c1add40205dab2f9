//! `raw-hex`: the HMAC of the body in plain hexadecimal, as Convoy and many custom senders write it.

use http::HeaderMap;

use super::proof;
use crate::provider::Verified;
use crate::refusal::Why;
use crate::scheme::{Keys, Scheme};
use crate::{Refusal, Request, crypt};

const HEADERS: &[&str] = &["x-convoy-signature", "x-webhook-signature"];

#[derive(Debug)]
pub struct RawHex;

impl Scheme for RawHex {
    fn code(&self) -> &'static str {
        "raw-hex"
    }

    fn about(&self) -> &'static str {
        "Convoy: X-Convoy-Signature (or X-Webhook-Signature, or header) holds the HMAC-SHA256 of the body in hexadecimal"
    }

    fn check(&self, keys: &Keys<'_>) -> Vec<String> {
        proof::secret_missing(keys, "the secret that was given to the sender")
    }

    fn verify(&self, keys: &Keys<'_>, request: &Request<'_>) -> Result<Verified, Refusal> {
        proof::configured(keys)?;
        let signature = proof::lower_hex(proof::signature_header(keys, HEADERS, request)?).ok_or(Why::Mismatch)?;
        if !proof::any_hmac(keys.secrets(), &[request.body], &[signature]) {
            return Err(Why::Mismatch.into());
        }
        Ok(Verified::default())
    }

    fn sign(&self, keys: &Keys<'_>, _: i64, headers: &mut HeaderMap, body: &[u8]) -> Result<(), String> {
        let signature = hex::encode(crypt::hmac_sha256(keys.current()?.as_bytes(), &[body]));
        proof::set_header(headers, keys.header.unwrap_or(HEADERS[0]), &signature)
    }
}
