//! `mailgun`: time, token and signature inside the body. Only time and token are signed, so a token must not be accepted twice,
//! except for the very same message: Mailgun retries when our response may have come too late.

use std::time::Duration;

use http::HeaderMap;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::proof;
use crate::form::Form;
use crate::provider::Verified;
use crate::refusal::Why;
use crate::scheme::{Keys, Scheme};
use crate::{Refusal, Request, crypt, json};

/// Longer than a token can be valid: the time window extends as far ahead as back.
const REMEMBER: Duration = Duration::from_secs(900);

#[derive(Debug)]
pub struct Mailgun;

/// The signed values, and the signature.
#[derive(Debug, PartialEq, Eq)]
pub struct Signed {
    pub timestamp: String,
    pub token: String,
    pub signature: String,
}

/// The three fields, and a hash of the whole content. JSON has the three under `signature`, forms at the top level; each occurs
/// once.
fn fields(request: &Request<'_>) -> Option<(Signed, String)> {
    if request.content_type().as_deref() == Some("application/json") {
        let body = json::read(request.body).ok()?;
        let signature = body.get("signature")?;
        let text = |name: &str| match signature.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let signed = Signed { timestamp: text("timestamp")?, token: text("token")?, signature: text("signature")? };
        return Some((signed, hex::encode(Sha256::digest(body.to_string()))));
    }
    let form = Form::read(request).ok()?;
    let signed = Signed { timestamp: form.only("timestamp")?, token: form.only("token")?, signature: form.only("signature")? };
    Some((signed, form.digest()))
}

impl Scheme for Mailgun {
    fn code(&self) -> &'static str {
        "mailgun"
    }

    fn about(&self) -> &'static str {
        "Mailgun: timestamp, token and signature are fields of the body; the secret is the webhook signing key"
    }

    fn check(&self, keys: &Keys<'_>) -> Vec<String> {
        proof::secret_missing(keys, "the HTTP webhook signing key, under Sending, Webhooks")
    }

    fn verify(&self, keys: &Keys<'_>, request: &Request<'_>) -> Result<Verified, Refusal> {
        proof::configured(keys)?;
        // A body without parsable fields has no signature.
        let (Signed { timestamp, token, signature }, said) = fields(request).ok_or(Why::Unsigned)?;
        let signature = proof::lower_hex(&signature).ok_or(Why::Mismatch)?;
        // Time and token are signed without a separator, so the end of one must not be readable as the start of the other.
        let is_token = !token.is_empty() && token.len() <= 128 && token.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !proof::any_hmac(keys.secrets(), &[timestamp.as_bytes(), token.as_bytes()], &[signature]) || !is_token {
            return Err(Why::Mismatch.into());
        }
        proof::in_time(&timestamp, request)?;
        Ok(Verified { once: Some((token, REMEMBER)), said: Some(said), warning: None })
    }

    /// The signature is inside the body already: see [`signed_body`].
    fn sign(&self, keys: &Keys<'_>, _: i64, _: &mut HeaderMap, _: &[u8]) -> Result<(), String> {
        keys.current().map(|_| ())
    }
}

/// The three fields for a body that is about to be sent. The token is as unique as Mailgun's.
pub fn signed_fields(keys: &Keys<'_>, unix_now: i64) -> Result<Signed, String> {
    let timestamp = unix_now.to_string();
    let token = hex::encode(rand::random::<[u8; 25]>());
    let signature = hex::encode(crypt::hmac_sha256(keys.current()?.as_bytes(), &[timestamp.as_bytes(), token.as_bytes()]));
    Ok(Signed { timestamp, token, signature })
}

/// A JSON object with the three fields added where Mailgun has them.
pub fn signed_body(keys: &Keys<'_>, unix_now: i64, body: &[u8]) -> Result<Vec<u8>, String> {
    let Signed { timestamp, token, signature } = signed_fields(keys, unix_now)?;
    let mut body: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    body["signature"] = serde_json::json!({"timestamp": timestamp, "token": token, "signature": signature});
    Ok(body.to_string().into_bytes())
}
