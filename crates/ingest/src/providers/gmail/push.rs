//! A push of Pub/Sub: verifies its signature and parses its notification.
//!
//! The keys come with the channel, as its setting `jwks`: the caller that opened the channel fetched them, since nothing here does
//! I/O.

use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::Value;
use subtle::ConstantTimeEq as _;

use super::part;
use crate::provider::{Inbound, Verified};
use crate::refusal::Why;
use crate::text::parse_json;
use crate::{Channel, Refusal, Request};

const ISSUER: &str = "https://accounts.google.com";
/// The clocks of honest machines differ by less.
const LEEWAY_SECONDS: i64 = 30;

/// The id of the key that a push claims to be signed with. It is not verified yet, and only says which key to fetch.
pub fn key_id(request: &Request<'_>) -> Option<String> {
    jsonwebtoken::decode_header(bearer(request)?).ok()?.kid
}

pub(super) fn verify(channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal> {
    let (Some(audience), Some(account)) = (channel.settings.text("audience"), channel.settings.text("service_account")) else {
        return Err(Why::Unconfigured.into());
    };
    let token = bearer(request).ok_or(Why::Unsigned)?;
    let claims = signed_claims(channel, token)?;
    let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
    let same = |a: &str, b: &str| bool::from(a.as_bytes().ct_eq(b.as_bytes()));
    if text("iss") != ISSUER || !same(text("aud"), audience) {
        return Err(Why::Mismatch.into());
    }
    if !same(text("email"), account) || claims.get("email_verified") != Some(&Value::Bool(true)) {
        return Err(Why::Account.into());
    }
    let now = request.unix_now();
    let time = |name: &str| claims.get(name).and_then(Value::as_f64);
    // Seconds as floating point: a hostile number may lose precision, but that does not extend its validity.
    let is_over = time("exp").is_none_or(|exp| exp + LEEWAY_SECONDS as f64 <= now as f64);
    let is_ahead = ["iat", "nbf"].into_iter().filter_map(time).any(|at| at > (now + LEEWAY_SECONDS) as f64);
    if is_over || is_ahead {
        return Err(Why::Stale.into());
    }
    Ok(Verified::default())
}

/// The claims, if one of the keys signed them. Times are checked here, by the request's clock.
fn signed_claims(channel: &Channel, token: &str) -> Result<Value, Refusal> {
    let keys = keys(channel).ok_or(Why::Unconfigured)?;
    let header = jsonwebtoken::decode_header(token).map_err(|_| Why::Mismatch)?;
    if header.alg != Algorithm::RS256 {
        return Err(Why::Mismatch.into());
    }
    let mut validation = Validation::new(Algorithm::RS256);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    let key: &Jwk = header.kid.as_deref().and_then(|id| keys.find(id)).ok_or(Why::Mismatch)?;
    let key = DecodingKey::from_jwk(key).map_err(|_| Why::Mismatch)?;
    Ok(jsonwebtoken::decode::<Value>(token, &key, &validation).map_err(|_| Why::Mismatch)?.claims)
}

/// The keys, as an object or as its text. A key of an unknown kind must not invalidate the others.
fn keys(channel: &Channel) -> Option<JwkSet> {
    let parsed;
    let set = match channel.settings.get("jwks")? {
        Value::String(text) => {
            parsed = serde_json::from_str::<Value>(text).ok()?;
            &parsed
        }
        other => other,
    };
    let keys: Vec<Jwk> = set.get("keys")?.as_array()?.iter().filter_map(|key| serde_json::from_value(key.clone()).ok()).collect();
    (!keys.is_empty()).then_some(JwkSet { keys })
}

fn bearer<'a>(request: &Request<'a>) -> Option<&'a str> {
    let (scheme, token) = request.header("authorization")?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Something changed in the mailbox. The details of the push are not used: notifications are dropped, duplicated and reordered, but
/// the history is complete.
pub(super) fn normalise(request: &Request<'_>) -> Result<Inbound, Refusal> {
    let malformed = |what: &str| Refusal::Malformed(format!("{what} is not what Pub/Sub sends"));
    let body = parse_json(request.body).map_err(|_| malformed("the body"))?;
    let notice = match body.get("message") {
        // A subscription with payload unwrapping sends the data alone.
        None => body,
        Some(message) => {
            let data = message.get("data").and_then(Value::as_str).ok_or_else(|| malformed("message.data"))?;
            let bytes = part::base64_any(data).ok_or_else(|| malformed("message.data"))?;
            serde_json::from_slice(&bytes).map_err(|_| malformed("message.data"))?
        }
    };
    if notice.get("emailAddress").is_none_or(|address| !address.is_string()) {
        return Err(malformed("the notification"));
    }
    Ok(Inbound::Fetch)
}
