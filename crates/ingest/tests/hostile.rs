//! Any bytes, for every provider, every scheme and every parser: a response, never a panic and never a 5xx.

use std::path::Path;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gleaner_ingest::hostile::{self, Anything};
use gleaner_ingest::scheme::Keys;
use gleaner_ingest::{providers, schemes};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

/// The requests of the test vectors: nearly valid input reaches more code than random bytes.
fn requests() -> Vec<(String, Anything)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let files = std::fs::read_dir(folder).expect("the vectors").map(|entry| entry.expect("an entry").path());
    let vectors = files.flat_map(|path| -> Vec<Value> {
        serde_json::from_slice(&std::fs::read(&path).expect("a file")).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    });
    vectors.map(|vector| (vector["provider"].as_str().expect("a provider").to_owned(), request(&vector))).collect()
}

fn request(vector: &Value) -> Anything {
    let mut headers = HeaderMap::new();
    for (name, value) in vector["headers"].as_object().into_iter().flatten() {
        let value = HeaderValue::try_from(value.as_str().expect("a text")).expect("a value");
        headers.append(HeaderName::try_from(name).expect("a name"), value);
    }
    let body = match vector["body_base64"].as_str() {
        Some(encoded) => BASE64_STANDARD.decode(encoded).expect("base64"),
        None => vector["body"].as_str().unwrap_or_default().as_bytes().to_vec(),
    };
    Anything {
        settings: vector["settings"].as_object().cloned().unwrap_or_default(),
        method: Method::try_from(vector["method"].as_str().unwrap_or("POST")).expect("a method"),
        target: vector["target"].as_str().unwrap_or_default().to_owned(),
        headers,
        body,
        now: SystemTime::UNIX_EPOCH + Duration::from_secs(vector["now"].as_u64().unwrap_or(1_700_000_000)),
    }
}

/// Input that has broken parsers before.
fn nasty() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        select(vec![
            b"\0".to_vec(),
            b"\\u0000".to_vec(),
            b"\\ud800".to_vec(),
            b"\xed\xa0\x80".to_vec(),
            b"\xff\xfe".to_vec(),
            b"\r\n\r\n".to_vec(),
            b"--".to_vec(),
            b"%00%".to_vec(),
            b"=?utf-8?b?".to_vec(),
            b"1e400".to_vec(),
            b"-9223372036854775808".to_vec(),
            b"9999999999999999999999".to_vec(),
            b"null".to_vec(),
            b"[]".to_vec(),
            b"{}".to_vec(),
            b"\"".to_vec(),
            "\u{202e}\u{feff}".as_bytes().to_vec(),
        ]),
        proptest::collection::vec(any::<u8>(), 0..12),
    ]
}

/// One change to some bytes.
fn changed(bytes: &[u8], at: Index, length: usize, piece: &[u8]) -> Vec<u8> {
    let start = at.index(bytes.len() + 1);
    let end = (start + length).min(bytes.len());
    [&bytes[..start], piece, &bytes[end..]].concat()
}

fn mutated() -> impl Strategy<Value = (String, Anything)> {
    let change = (any::<Index>(), 0..40_usize, nasty(), 0..6_u8);
    (select(requests()), proptest::collection::vec(change, 1..5), any::<Index>()).prop_map(|((code, mut request), changes, which)| {
        for (at, length, piece, part) in changes {
            match part {
                0 => change_a_header(&mut request.headers, which, at, length, &piece),
                1 => {
                    let target = changed(request.target.as_bytes(), at, length, &piece);
                    request.target = String::from_utf8_lossy(&target).into_owned();
                }
                2 => {
                    let text = changed(json!(request.settings).to_string().as_bytes(), at, length, &piece);
                    request.settings = serde_json::from_slice(&text).unwrap_or(request.settings);
                }
                _ => request.body = changed(&request.body, at, length, &piece),
            }
        }
        (code, request)
    })
}

fn change_a_header(headers: &mut HeaderMap, which: Index, at: Index, length: usize, piece: &[u8]) {
    let Some((name, value)) = headers.iter().nth(which.index(headers.len().max(1))).map(|(n, v)| (n.clone(), v.clone())) else { return };
    if let Ok(value) = HeaderValue::from_bytes(&changed(value.as_bytes(), at, length, piece)) {
        // Sometimes added next to the old one.
        if length.is_multiple_of(2) {
            headers.append(name, value)
        } else {
            headers.insert(name, value).is_some()
        };
    }
}

/// JSON of any shape, with names that some provider uses.
fn shape() -> impl Strategy<Value = Value> {
    let name = select(vec![
        "type",
        "content",
        "url",
        "from",
        "to",
        "sender",
        "metadata",
        "external_id",
        "direction",
        "object",
        "entry",
        "changes",
        "value",
        "messages",
        "contacts",
        "field",
        "id",
        "text",
        "image",
        "location",
        "update_id",
        "message",
        "chat",
        "photo",
        "callback_query",
        "signature",
        "timestamp",
        "token",
        "event-data",
        "From",
        "FromFull",
        "Headers",
        "Attachments",
        "MessageID",
        "data",
        "subscription",
        "whatsapp_business_account",
        "messages\0",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        name.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())),
        ]
    })
}

fn with_body(body: &[u8], content_type: &'static str, settings: &Value) -> Anything {
    let mut anything = Anything::from_bytes(b"");
    anything.headers.insert("content-type", HeaderValue::from_static(content_type));
    anything.settings = settings.as_object().cloned().unwrap_or_default();
    anything.body = body.to_vec();
    anything
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_request_that_was_nearly_right_is_answered((code, request) in mutated()) {
        if let Some(provider) = providers::find(&code) {
            hostile::probe(provider, &request);
        }
    }

    #[test]
    fn settings_and_bodies_of_any_shape_are_answered(body in shape(), settings in shape()) {
        for provider in providers::all() {
            hostile::probe(*provider, &with_body(body.to_string().as_bytes(), "application/json", &settings));
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered_by_every_provider(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        for provider in providers::all() {
            hostile::provider(provider.code(), &bytes);
            for kind in ["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "text/plain", "image/png"] {
                hostile::probe(*provider, &with_body(&bytes, kind, &json!({"scheme": "none"})));
            }
        }
    }

    #[test]
    fn any_bytes_are_judged_by_every_scheme(bytes in proptest::collection::vec(any::<u8>(), 0..400), secret in ".{0,40}", header in "[a-zA-Z-]{0,20}") {
        for scheme in schemes::all() {
            hostile::scheme(scheme.code(), &bytes);
            let start = json!({"secret": secret, "secret_previous": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "header": header});
            let text = [start.to_string().as_bytes(), b"\nPOST /\n", &bytes].concat();
            hostile::scheme(scheme.code(), &text);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused_by_every_parser(bytes in proptest::collection::vec(any::<u8>(), 0..400), text in "\\PC{0,60}") {
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            hostile::form(bytes);
            hostile::form(&[b"multipart/form-data; boundary=b\n--b\r\n", bytes, b"\r\n--b--\r\n"].concat());
            hostile::json(bytes);
            hostile::mail(bytes);
            hostile::address(bytes);
        }
    }

    /// Any signed body is accepted; with one bit changed it is refused.
    #[test]
    fn a_signature_fits_one_body_only(body in proptest::collection::vec(any::<u8>(), 1..200), at in any::<Index>(), bit in 0..8_u8) {
        for code in ["standard-webhooks", "hub-sha256", "timestamped", "slack-v0", "raw-hex"] {
            let scheme = schemes::find(code).expect("a scheme");
            let keys = Keys::new(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]);
            let mut anything = with_body(&body, "application/octet-stream", &json!({}));
            scheme.sign(&keys, 1_700_000_000, &mut anything.headers, &body).expect("signed");
            prop_assert!(scheme.verify(&keys, &anything.request()).is_ok(), "{}", code);
            anything.body[at.index(body.len())] ^= 1 << bit;
            prop_assert!(scheme.verify(&keys, &anything.request()).is_err(), "{}", code);
        }
    }
}

#[test]
fn monsters_are_answered() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(5000), close.repeat(5000)).into_bytes();
    let part = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n";
    let monsters: Vec<Vec<u8>> = vec![
        Vec::new(),
        vec![0; 1000],
        vec![0xff; 1000],
        deep("[", "]"),
        deep("{\"entry\":", "}"),
        deep("{\"metadata\":[", "]}"),
        br#"{"content":"\u0000\ud800","from":"\u0000","external_id":"\u0000","metadata":{"\u0000":"\u0000"}}"#.to_vec(),
        br#"{"update_id":1,"message":{"chat":{"id":-9223372036854775808},"text":"\udfff","date":1e308}}"#.to_vec(),
        br#"{"update_id":18446744073709551615,"callback_query":{}}"#.to_vec(),
        br#"{"content":"x","external_id":123456789012345678901234567890}"#.to_vec(),
        br#"{"content":"x","external_id":1e400}"#.to_vec(),
        "a=".repeat(100_000).into_bytes(),
        "&".repeat(100_000).into_bytes(),
        "%".repeat(100_000).into_bytes(),
        "a=b&".repeat(100_000).into_bytes(),
        part.repeat(5000).into_bytes(),
        format!("--b\r\n{}\r\n\r\n\r\n--b--\r\n", "X: y\r\n".repeat(5000)).into_bytes(),
    ];
    let long = "x".repeat(10_000);
    let long = [
        json!({"content": "x", "external_id": long, "from": long}),
        json!({"content": "x", "from": format!("{long}@example.com")}),
        json!({"content": "x", "from": format!("a@{}example.com", "x.".repeat(5000))}),
        json!({"content": "x", "from": format!("+{}", "1".repeat(10_000))}),
        json!({"content": "x", "from": "1".repeat(10_000)}),
        json!({"MessageID": long, "From": format!("{long}@example.com"), "TextBody": "x"}),
        json!({"MessageID": "m", "FromFull": {"Email": format!("{long}@example.com")}, "TextBody": "x"}),
        json!({"object": "whatsapp_business_account", "entry": [{"changes": [{"field": "messages", "value": {"messages": [
            {"id": long, "from": long, "type": long, long.as_str(): {}},
            {"id": "m", "from_user_id": long, "type": "text"},
            {"id": "m", "from": "1".repeat(10_000), "type": "text"},
        ]}}]}]}),
        json!({"update_id": 1, "message": {"chat": {"id": 1, "title": long}, "from": {"first_name": long}}}),
        json!({"Message-Id": long, "from": format!("{long}@example.com"), "body-plain": "x"}),
    ];
    let forms = long.iter().map(|fields| {
        let texts = fields.as_object().into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_str()?)));
        form_urlencoded::Serializer::new(String::new()).extend_pairs(texts).finish().into_bytes()
    });
    let monsters = || monsters.iter().cloned().chain(forms.clone()).chain(long.iter().map(|value| value.to_string().into_bytes()));
    for provider in providers::all() {
        for body in monsters() {
            for kind in ["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "text/plain"] {
                let mut anything = with_body(&body, kind, &json!({"scheme": "none"}));
                hostile::probe(*provider, &anything);
                anything.method = Method::GET;
                anything.target = "?".repeat(1000) + "&hub.mode=subscribe&hub.challenge=%00%ff&hub.challenge&=";
                anything.now = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
                hostile::probe(*provider, &anything);
            }
        }
    }
}

/// Each of them also has a fuzz target of its own name.
#[test]
fn every_provider_and_every_scheme_has_a_fuzz_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("the fuzz crate");
    let providers = providers::all().iter().map(|provider| ("provider", provider.code()));
    for (kind, code) in providers.chain(schemes::all().iter().map(|scheme| ("scheme", scheme.code()))) {
        let name = format!("{kind}_{}", code.replace('-', "_"));
        let target = std::fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs"))).unwrap_or_default();
        assert!(target.contains(&format!("hostile::{kind}(\"{code}\", data)")), "{name} is missing");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not in fuzz/Cargo.toml");
    }
}
