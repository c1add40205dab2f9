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
mod tests {
    use http::{HeaderMap, HeaderValue, Method};
    use proptest::prelude::*;
    use proptest::sample::Index;
    use serde_json::json;

    use super::*;

    #[test]
    fn both_port_forms_are_tried_and_nothing_else_is_touched() {
        let forms = |url| port_forms(url).to_vec();
        assert_eq!(forms("https://Host.Example/a?b=c:1"), ["https://Host.Example/a?b=c:1", "https://Host.Example:443/a?b=c:1"]);
        assert_eq!(forms("http://h"), ["http://h", "http://h:80"]);
        assert_eq!(forms("https://h:1234?x"), ["https://h?x", "https://h:1234?x"]);
        assert_eq!(forms("https://u:p@h/x@y"), ["https://u:p@h/x@y", "https://u:p@h:443/x@y"]);
        assert_eq!(forms("https://[::1]:8443/x"), ["https://[::1]/x", "https://[::1]:8443/x"]);
        assert_eq!(forms("https://[::1]/x"), ["https://[::1]/x", "https://[::1]:443/x"]);
        assert_eq!(forms("no scheme"), ["no scheme", "no scheme"]);
    }

    #[test]
    fn the_public_address_may_be_a_base_a_prefix_or_the_whole_url() {
        let target = "/functions/v1/ingest-activity?key=k";
        let whole = "https://h/functions/v1/ingest-activity?key=k";
        assert_eq!(join("https://h", target), whole);
        assert_eq!(join("https://h/", target), whole);
        assert_eq!(join("https://h/functions/v1/ingest-activity?key=k#rc=3", target), whole);
        assert_eq!(join("https://h/prefix", target), "https://h/prefix/functions/v1/ingest-activity?key=k");
        assert_eq!(join("https://h/", "/"), "https://h/");
    }

    #[test]
    fn fields_are_sorted_by_name_and_not_by_the_joined_text() {
        assert_eq!(signed_fields(&[("ab", "1"), ("a", "z"), ("A", "0")]), "A0azab1");
        assert_eq!(signed_fields(&[("a", "2"), ("a", "1"), ("a", "2")]), "a1a2");
    }

    const TOKEN: &str = "00112233445566778899aabbccddeeff";
    const BASE: &str = "https://hooks.acme.example";
    const TARGET: &str = "/functions/v1/ingest-activity?key=k";

    fn is_accepted(target: &str, body: &str, signature: &[u8]) -> bool {
        let settings = json!({"auth_token": TOKEN}).as_object().cloned().unwrap_or_default();
        let channel = Channel {
            id: uuid::Uuid::nil(),
            name: String::new(),
            provider_code: "twilio".into(),
            is_active: true,
            sales_id: None,
            auto_create_contacts: false,
            settings: settings.into(),
        };
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/x-www-form-urlencoded; charset=UTF-8"));
        headers.insert("x-twilio-signature", HeaderValue::from_str(&BASE64_STANDARD.encode(signature)).expect("base64"));
        let request = Request {
            method: &Method::POST,
            target,
            headers: &headers,
            body: body.as_bytes(),
            client: None,
            now: std::time::SystemTime::UNIX_EPOCH,
            public_base: BASE,
        };
        verify(&channel, &request).is_ok()
    }

    fn form(pairs: &[(String, String)]) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
    }

    fn fields() -> impl Strategy<Value = Vec<(String, String)>> {
        // Names share prefixes and repeat; values contain characters that forms escape.
        proptest::collection::vec(("[aAb;']{1,3}", "\\PC{0,6}|[+%&= \0;']{0,4}"), 1..8)
    }

    proptest! {
        #[test]
        fn any_order_of_the_fields_verifies(pairs in fields(), shuffled in Just(()).prop_perturb(|(), rng| rng), doubled in any::<Index>()) {
            let signature = sign(TOKEN, &format!("{BASE}{TARGET}"), &signed_fields(&pairs));
            let mut other = pairs.clone();
            other.push(doubled.get(&pairs).clone());
            let mut rng = shuffled;
            for last in (1..other.len()).rev() {
                other.swap(last, rng.random_range(0..=last));
            }
            prop_assert!(is_accepted(TARGET, &form(&other), &signature));
        }

        #[test]
        fn any_change_of_a_field_is_refused(pairs in fields(), which in any::<Index>(), added in "[a-z0-9 ]{1,3}") {
            let signature = sign(TOKEN, &format!("{BASE}{TARGET}"), &signed_fields(&pairs));
            let mut longer = pairs.clone();
            which.get_mut(&mut longer).1.push_str(&added);
            let mut fewer = pairs.clone();
            fewer.remove(which.index(pairs.len()));
            let mut more = pairs.clone();
            more.push((format!("z{added}"), String::new()));
            for changed in [longer, fewer, more] {
                // Separators are not signed, so a change that keeps the signed text is not visible to the signature.
                if signed_fields(&changed) != signed_fields(&pairs) {
                    prop_assert!(!is_accepted(TARGET, &form(&changed), &signature));
                }
            }
        }

        #[test]
        fn any_change_of_the_url_or_the_signature_is_refused(pairs in fields(), at in any::<Index>(), bit in 0..8u32, added in "[a-z&=/]{1,4}") {
            let body = form(&pairs);
            let mut signature = sign(TOKEN, &format!("{BASE}{TARGET}"), &signed_fields(&pairs));
            prop_assert!(is_accepted(TARGET, &body, &signature));
            let longer = format!("{TARGET}{added}");
            prop_assert!(!is_accepted(&longer, &body, &signature));
            signature[at.index(20)] ^= 1 << bit;
            prop_assert!(!is_accepted(TARGET, &body, &signature));
            prop_assert!(!is_accepted(TARGET, &body, &signature[..at.index(20)]));
        }
    }
}
