//! What every scheme and every provider with a secret guarantees, whatever it signs.

use std::time::{Duration, SystemTime};

use gleaner_ingest::refusal::Why;
use gleaner_ingest::{Channel, Inbound, Provider, Refusal, Request, Sample, Verified, providers, schemes};
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use uuid::Uuid;

const NOW: i64 = 1_700_000_000;

fn channel(code: &str, settings: &Value) -> Channel {
    Channel {
        id: Uuid::nil(),
        name: "Test".to_owned(),
        provider_code: code.to_owned(),
        is_active: true,
        sales_id: None,
        auto_create_contacts: false,
        settings: settings.as_object().cloned().expect("an object").into(),
    }
}

fn request(sample: &Sample) -> Request<'_> {
    Request {
        method: &sample.method,
        target: "/functions/v1/ingest-activity?key=k",
        headers: &sample.headers,
        body: &sample.body,
        client: None,
        now: SystemTime::UNIX_EPOCH + Duration::from_secs(NOW.unsigned_abs()),
        public_base: "https://hooks.acme.example",
    }
}

fn verify(provider: &dyn Provider, channel: &Channel, sample: &Sample) -> Result<Verified, Refusal> {
    provider.verify(channel, &request(sample))
}

/// Channels that can sign their own samples: the current secret, the previous one, and the name of both.
fn channels() -> Vec<(&'static dyn Provider, Value, &'static str)> {
    let generic = |scheme: &str, secret: &str| json!({"scheme": scheme, "secret": secret});
    let find = |code: &str| providers::find(code).expect("a provider");
    vec![
        (find("generic"), generic("standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "secret"),
        (find("generic"), generic("hub-sha256", "one"), "secret"),
        (find("generic"), generic("timestamped", "one"), "secret"),
        (find("generic"), generic("slack-v0", "one"), "secret"),
        (find("generic"), generic("raw-hex", "one"), "secret"),
        (find("generic"), generic("mailgun", "one"), "secret"),
        (find("generic"), generic("bearer", "one"), "secret"),
        (find("generic"), generic("basic", "user:one"), "secret"),
        (find("whatsapp"), json!({"app_secret": "one", "verify_token": "word"}), "app_secret"),
        (find("telegram"), json!({"secret_token": "one"}), "secret_token"),
        (find("mailgun"), json!({"signing_key": "one"}), "signing_key"),
    ]
}

fn sample(provider: &dyn Provider, settings: &Value) -> Sample {
    provider.sample(&channel(provider.code(), settings), "https://hooks.acme.example/x", NOW).expect("a sample")
}

#[test]
fn a_sample_is_believed_and_understood() {
    for (provider, settings, _) in channels() {
        let channel = channel(provider.code(), &settings);
        assert_eq!(providers::check(provider, &channel), Vec::<String>::new(), "{settings}");
        let sample = sample(provider, &settings);
        verify(provider, &channel, &sample).unwrap_or_else(|refusal| panic!("{settings}: {refusal}"));
        let Ok(Inbound::Events { events, .. }) = provider.normalise(&channel, &request(&sample)) else { panic!("{settings}: no event") };
        let content = events[0].raw_data["content"].as_str();
        assert!(events.len() == 1 && content.is_some_and(|content| content.contains("this channel works")), "{settings}: {content:?}");
    }
}

#[test]
fn the_previous_secret_is_believed_as_well_and_no_third_one() {
    for (provider, settings, name) in channels() {
        let sample = sample(provider, &settings);
        let other = if settings["scheme"] == "standard-webhooks" { "whsec_AAAA" } else { "user:two" };
        let mut rotated = settings.clone();
        rotated[format!("{name}_previous")] = settings[name].clone();
        rotated[name] = json!(other);
        assert!(verify(provider, &channel(provider.code(), &rotated), &sample).is_ok(), "{settings}");
        rotated[format!("{name}_previous")] = json!(other);
        assert_eq!(verify(provider, &channel(provider.code(), &rotated), &sample), Err(Why::Mismatch.into()), "{settings}");
    }
}

#[test]
fn without_a_secret_no_request_is_accepted() {
    for (provider, settings, name) in channels() {
        let sample = sample(provider, &settings);
        for nothing in [json!(""), json!(null), json!(7), json!({}), json!([])] {
            let mut settings = settings.clone();
            settings[name] = nothing;
            let channel = channel(provider.code(), &settings);
            assert_eq!(verify(provider, &channel, &sample), Err(Why::Unconfigured.into()), "{settings}");
            assert!(!providers::check(provider, &channel).is_empty(), "{settings}: nobody is told");
        }
    }
}

/// Two headers of one name: one for us and one for a proxy in front of us.
#[test]
fn a_header_sent_twice_counts_as_none() {
    for (provider, settings, _) in channels() {
        let sample = sample(provider, &settings);
        for name in sample.headers.keys().filter(|name| *name != "content-type") {
            let mut twice = sample.clone();
            twice.headers.append(name, sample.headers[name].clone());
            let refusal = verify(provider, &channel(provider.code(), &settings), &twice);
            assert_eq!(refusal, Err(Why::Unsigned.into()), "{settings} {name}");
        }
    }
}

#[test]
fn a_header_that_is_no_text_counts_as_none() {
    for (provider, settings, _) in channels() {
        let sample = sample(provider, &settings);
        for name in sample.headers.keys().filter(|name| *name != "content-type") {
            let mut strange = sample.clone();
            strange.headers.insert(name, HeaderValue::from_bytes(b"\xff\xfe").expect("bytes that a header may have"));
            let refusal = verify(provider, &channel(provider.code(), &settings), &strange);
            assert_eq!(refusal, Err(Why::Unsigned.into()), "{settings} {name}");
        }
    }
}

#[test]
fn whatever_signs_the_body_notices_a_changed_body() {
    for (provider, settings, _) in channels() {
        let covers_nothing = ["mailgun", "bearer", "basic"].iter().any(|scheme| settings["scheme"] == *scheme);
        if covers_nothing || ["telegram", "mailgun"].contains(&provider.code()) {
            continue;
        }
        let mut changed = sample(provider, &settings);
        changed.body.push(b' ');
        let refusal = verify(provider, &channel(provider.code(), &settings), &changed);
        assert_eq!(refusal, Err(Why::Mismatch.into()), "{settings}");
    }
}

#[test]
fn without_its_headers_no_sample_is_believed() {
    for (provider, settings, _) in channels() {
        let mut bare = sample(provider, &settings);
        bare.headers = HeaderMap::new();
        assert_eq!(verify(provider, &channel(provider.code(), &settings), &bare), Err(Why::Unsigned.into()), "{settings}");
    }
}

/// Mailgun signs only the token, so a token must not be accepted again with another mail.
#[test]
fn a_mailgun_token_is_for_one_use_and_remembered_longer_than_it_lasts() {
    let provider = providers::find("mailgun").expect("a provider");
    let settings = json!({"signing_key": "one"});
    let (first, second) = (sample(provider, &settings), sample(provider, &settings));
    let once = |sample: &Sample| verify(provider, &channel("mailgun", &settings), sample).expect("authentic").once.expect("a token");
    let (token, remembered) = once(&first);
    assert!(first.body.windows(token.len()).any(|window| window == token.as_bytes()));
    assert!(remembered >= Duration::from_secs(600), "the window reaches 300 s ahead and 300 s back");
    assert_ne!(token, once(&second).0);
}

#[test]
fn trusting_the_key_alone_is_possible_and_said_out_loud() {
    let (generic, sendgrid) = (providers::find("generic").expect("a provider"), providers::find("sendgrid").expect("a provider"));
    for (provider, settings) in [(generic, json!({"scheme": "none"})), (sendgrid, json!({}))] {
        let channel = channel(provider.code(), &settings);
        assert_eq!(providers::check(provider, &channel), Vec::<String>::new());
        assert!(provider.cautions(&channel).iter().any(|caution| caution.contains("nothing is signed")), "{settings}");
        let verified = verify(provider, &channel, &sample(provider, &settings)).expect("believed");
        assert!(verified.warning.is_some_and(|warning| warning.contains("nothing is signed")));
    }
    let ignored = channel("generic", &json!({"scheme": "none", "secret": "x"}));
    assert!(providers::check(generic, &ignored)[0].contains("ignores the secret"));
    let unsaid = channel("generic", &json!({}));
    assert!(providers::check(generic, &unsaid)[0].contains("scheme is missing"), "{:?}", providers::check(generic, &unsaid));
}

#[test]
fn mistakes_in_settings_are_told_with_what_to_write() {
    let check =
        |code: &str, settings: Value| providers::check(providers::find(code).expect("a provider"), &channel(code, &settings)).join("\n");
    assert!(check("generic", json!({"scheme": "md5"})).contains("standard-webhooks"));
    assert!(check("generic", json!({"scheme": "hub-sha256", "secret": "x", "header": "no name"})).contains("X-Webhook-Signature"));
    assert!(check("generic", json!({"scheme": "standard-webhooks", "secret": "***"})).contains("whsec_"));
    assert!(check("generic", json!({"scheme": "bearer", "secret": "sha256:xyz"})).contains("64"));
    assert!(check("generic", json!({"scheme": "basic", "secret": "user"})).contains("username:password"));
    assert!(check("generic", json!({"scheme": "none", "body_limit": "much"})).contains("body_limit"));
    assert!(check("generic", json!({"scheme": "none", "secrte": "x"})).contains("secrte is no setting"));
    assert!(check("sendgrid", json!({"public_key": "x"})).contains("P-256"));
    assert!(check("sendgrid", json!({"basic_auth": {"username": "u"}})).contains("basic_auth.password"));
    assert!(check("telegram", json!({"secret_token": "with space"})).contains("letters"));
    assert!(check("mailgun", json!({})).contains("signing_key is missing"));
    assert!(check("whatsapp", json!({"app_secret": "x"})).contains("verify_token is missing"));
}

#[test]
fn every_scheme_is_found_by_its_code_and_named_in_the_settings() {
    let settings = providers::find("generic").expect("a provider").settings();
    let about = settings.iter().find(|setting| setting.name == "scheme").expect("the setting").about;
    for scheme in schemes::all() {
        assert!(schemes::find(scheme.code()).is_some_and(|found| found.code() == scheme.code()));
        assert!(about.contains(scheme.code()), "{} is not told", scheme.code());
        assert!(!scheme.about().is_empty());
    }
}

#[test]
fn a_body_limit_is_what_the_channel_says_and_never_without_end() {
    let limit = |settings: Value| providers::find("generic").expect("a provider").body_limit(&channel("generic", &settings));
    assert_eq!(limit(json!({})), 1024 * 1024);
    assert_eq!(limit(json!({"body_limit": 10})), 10);
    assert_eq!(limit(json!({"body_limit": "2000000"})), 2_000_000);
    assert_eq!(limit(json!({"body_limit": -1})), 1024 * 1024);
    assert_eq!(limit(json!({"body_limit": u64::MAX})), 64 * 1024 * 1024);
}

#[test]
fn settings_of_a_channel_are_never_printed() {
    let settings = json!({"scheme": "basic", "secret": "user:hunter2", "basic_auth": {"username": "u", "password": "hunter2"}});
    let channel = channel("generic", &settings);
    let keys = gleaner_ingest::scheme::Keys::new(["user:hunter2"]);
    assert!(!format!("{channel:?} {keys:?}").contains("hunter2"));
}
