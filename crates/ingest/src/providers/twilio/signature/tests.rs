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
