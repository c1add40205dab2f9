//! `sendgrid-ecdsa`: SendGrid's signed webhooks. SendGrid has the private key; we have the public key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use p256::ecdsa::signature::Verifier;
use p256::ecdsa::{DerSignature, VerifyingKey};
use p256::pkcs8::DecodePublicKey;

use super::proof;
use crate::provider::Verified;
use crate::refusal::Why;
use crate::scheme::{Keys, Scheme};
use crate::{Refusal, Request};

const SIGNATURE: &str = "x-twilio-email-event-webhook-signature";
const TIMESTAMP: &str = "x-twilio-email-event-webhook-timestamp";

#[derive(Debug)]
pub struct SendgridEcdsa;

/// The key as SendGrid shows it, base64 on one line, or the same wrapped into PEM.
fn key(text: &str) -> Option<VerifyingKey> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
    VerifyingKey::from_public_key_der(&STANDARD.decode(lines.collect::<String>()).ok()?).ok()
}

impl Scheme for SendgridEcdsa {
    fn code(&self) -> &'static str {
        "sendgrid-ecdsa"
    }

    fn about(&self) -> &'static str {
        "SendGrid: the verification key of its signed webhooks"
    }

    fn check(&self, keys: &Keys<'_>) -> Vec<String> {
        if keys.is_empty() {
            vec!["the verification key is missing: SendGrid shows it where signing is switched on".to_owned()]
        } else if keys.secrets().any(|text| key(text).is_none()) {
            vec!["the verification key is no P-256 public key: write the base64 text that SendGrid shows".to_owned()]
        } else {
            Vec::new()
        }
    }

    fn verify(&self, keys: &Keys<'_>, request: &Request<'_>) -> Result<Verified, Refusal> {
        let keys: Vec<_> = keys.secrets().filter_map(key).collect();
        if keys.is_empty() {
            return Err(Why::Unconfigured.into());
        }
        let timestamp = request.header(TIMESTAMP).ok_or(Why::Unsigned)?;
        let sent = STANDARD.decode(request.header(SIGNATURE).ok_or(Why::Unsigned)?).map_err(|_| Why::Mismatch)?;
        let signature = DerSignature::from_bytes(&sent).map_err(|_| Why::Mismatch)?;
        let message = [timestamp.as_bytes(), request.body].concat();
        // These are public keys, so the time reveals no secret.
        if !keys.iter().any(|key| key.verify(&message, &signature).is_ok()) {
            return Err(Why::Mismatch.into());
        }
        proof::in_time(timestamp, request)?;
        Ok(Verified::default())
    }

    fn sign(&self, _: &Keys<'_>, _: i64, _: &mut HeaderMap, _: &[u8]) -> Result<(), String> {
        Err("only SendGrid can sign for its public key: send a mail through it instead".to_owned())
    }
}
