//! What the schemes share: signature comparison in constant time, and the replay window.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::refusal::Why;
use crate::scheme::Keys;
use crate::{Request, crypt};

/// How far a signed time may differ from ours, in either direction.
pub(super) const TOLERANCE_SECONDS: i64 = 300;

/// More signatures than any honest sender lists. A longer list is refused.
pub(super) const MOST_SIGNATURES: usize = 16;

/// Whether any signature matches any key. Every pair is computed, so that the time reveals nothing. An empty key matches nothing.
pub(super) fn any_hmac<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>, parts: &[&[u8]], signatures: &[[u8; 32]]) -> bool {
    let expected = |key: K| if key.as_ref().is_empty() { Vec::new() } else { crypt::hmac_sha256(key.as_ref(), parts).to_vec() };
    let expected: Vec<_> = keys.into_iter().map(expected).collect();
    signatures.iter().fold(false, |found, signature| crypt::any_same(signature, &expected) | found)
}

/// 64 lower-case hexadecimal digits, as every sender writes them. Any other form is refused.
pub(super) fn lower_hex(text: &str) -> Option<[u8; 32]> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// Checks that a signed time, given as text, is near ours. Invalid and overflowing times are refused.
pub(super) fn in_time(timestamp: &str, request: &Request<'_>) -> Result<(), Why> {
    let digits = timestamp.strip_prefix('-').unwrap_or(timestamp);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Why::Stale);
    }
    let near = |signed: i64| signed.checked_sub(request.unix_now()).and_then(i64::checked_abs).is_some_and(|off| off <= TOLERANCE_SECONDS);
    timestamp.parse().ok().filter(|signed| near(*signed)).map(|_: i64| ()).ok_or(Why::Stale)
}

/// The header that a scheme uses: the channel's own setting, else the first of the usual ones that was sent.
pub(super) fn signature_header<'a>(keys: &Keys<'_>, usual: &[&str], request: &Request<'a>) -> Result<&'a str, Why> {
    let value = match keys.header {
        Some(name) => request.header(name),
        None => usual.iter().find(|name| request.headers.contains_key(**name)).and_then(|name| request.header(name)),
    };
    value.ok_or(Why::Unsigned)
}

/// Fails when no key is configured.
pub(super) fn configured(keys: &Keys<'_>) -> Result<(), Why> {
    if keys.is_empty() { Err(Why::Unconfigured) } else { Ok(()) }
}

/// The checks of every scheme with a shared secret.
pub(super) fn secret_missing(keys: &Keys<'_>, what: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if keys.is_empty() {
        wrong.push(format!("secret is missing: {what}"));
    }
    if let Some(name) = keys.header
        && HeaderName::try_from(name).is_err()
    {
        wrong.push("header is no name of a header; write one like X-Webhook-Signature".to_owned());
    }
    wrong
}

pub(super) fn set_header(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), String> {
    let name = HeaderName::try_from(name).map_err(|_| "header is no name of a header".to_owned())?;
    let mut value = HeaderValue::try_from(value).map_err(|_| "the secret has characters that no header can carry".to_owned())?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

#[cfg(test)]
mod tests;
