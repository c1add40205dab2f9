//! `X-Twilio-Signature`: HMAC-SHA1 with the Auth Token over the URL and the posted fields.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::fields::{Fields, is_form};
use crate::crypt::{any_same, hmac_sha1, sha256};
use crate::refusal::Why;
use crate::{Channel, Request};

/// Fails closed: a missing token, a missing signature, or a body that the signature does not cover is refused.
pub(super) fn verify(channel: &Channel, request: &Request<'_>) -> Result<(), Why> {
    let tokens = channel.settings.both("auth_token");
    if tokens.is_empty() {
        return Err(Why::Unconfigured);
    }
    let given = request.header("x-twilio-signature").ok_or(Why::Unsigned)?;
    let given = BASE64_STANDARD.decode(given).map_err(|_| Why::Mismatch)?;
    let fields = covered_fields(request)?;

    let base = channel.settings.text("public_url").unwrap_or(request.public_base);
    let urls = signed_urls(base, request.target);
    let candidates = tokens.iter().flat_map(|token| urls.iter().map(|url| sign(token, url, &fields)));
    if any_same(&given, candidates) { Ok(()) } else { Err(Why::Mismatch) }
}

pub(super) fn sign(token: &str, url: &str, fields: &str) -> [u8; 20] {
    hmac_sha1(token.as_bytes(), &[url.as_bytes(), fields.as_bytes()])
}

/// What is signed besides the URL. A body that is neither hashed into the URL nor made of signed fields is not covered: without
/// this check, the signature of any empty request would also authenticate an arbitrary JSON body.
fn covered_fields(request: &Request<'_>) -> Result<String, Why> {
    let query = request.query().unwrap_or_default();
    let hashes: Vec<_> = query.split('&').filter_map(|pair| pair.strip_prefix("bodySHA256=")).collect();
    match hashes[..] {
        [] if is_form(request) => Ok(signed_fields(Fields::form(request.body).pairs())),
        [] if request.body.is_empty() => Ok(String::new()),
        [hash] => {
            let hash = hex::decode(hash).map_err(|_| Why::Mismatch)?;
            if any_same(&hash, [sha256(request.body)]) { Ok(String::new()) } else { Err(Why::Mismatch) }
        }
        _ => Err(Why::Uncovered),
    }
}

/// Names and values without separators, sorted by name and then by value, each pair once. Sorting the joined strings would give
/// another order where one name is a prefix of another.
pub(super) fn signed_fields<T: AsRef<str>>(pairs: &[(T, T)]) -> String {
    let mut sorted: Vec<_> = pairs.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.into_iter().flat_map(|(name, value)| [name, value]).collect()
}

/// Every form of the URL that Twilio may have signed for this request: with and without port, and with an apostrophe in the query
/// as received, plain, or escaped.
fn signed_urls(base: &str, target: &str) -> Vec<String> {
    let target = target.split('#').next().unwrap_or(target);
    let mut targets = vec![Cow::Borrowed(target)];
    if let Some((path, query)) = target.split_once('?') {
        if query.contains('\'') {
            targets.push(Cow::Owned(format!("{path}?{}", query.replace('\'', "%27"))));
        }
        if query.contains("%27") {
            targets.push(Cow::Owned(format!("{path}?{}", query.replace("%27", "'"))));
        }
    }
    targets.iter().flat_map(|target| port_forms(&join(base, target))).collect()
}

/// The configured base URL and the requested target. An operator may also have configured the whole webhook URL.
fn join(base: &str, target: &str) -> String {
    let base = base.split(['?', '#']).next().unwrap_or(base).trim_end_matches('/');
    let path = target.split('?').next().unwrap_or(target);
    match base.strip_suffix(path) {
        Some(start) if path.len() > 1 => format!("{start}{target}"),
        _ => format!("{base}{target}"),
    }
}

/// Without port, and with the given or default port: Twilio signs either. The rest of the URL is unchanged.
fn port_forms(url: &str) -> [String; 2] {
    let Some((scheme, rest)) = url.split_once("://") else { return [url.to_owned(), url.to_owned()] };
    let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(user, host)| (&authority[..=user.len()], host));
    let usual = if scheme.eq_ignore_ascii_case("http") { "80" } else { "443" };
    // The colons of an IPv6 address are inside its brackets.
    let (host, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => (name, port),
        _ => (host, usual),
    };
    [format!("{scheme}://{user}{host}{rest}"), format!("{scheme}://{user}{host}:{port}{rest}")]
}

#[cfg(test)]
mod tests;
