//! Checks that must hold for any input: no panic, no 5xx response, and nothing that PostgreSQL cannot store.
//!
//! The property tests and the fuzz targets call these functions, so that every input found by fuzzing is also tested on every
//! build.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::form::Form;
use crate::mail::Mail;
use crate::provider::{Outcome, Stored};
use crate::scheme::Keys;
use crate::{Address, Channel, Event, Inbound, Provider, Refusal, Request, address, json, mail, providers, schemes, text};

/// An untrusted request and the settings of its channel.
#[derive(Debug, Clone)]
pub struct Anything {
    pub settings: Map<String, Value>,
    pub method: Method,
    pub target: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub now: SystemTime,
}

impl Anything {
    /// Settings in JSON on the first line, method and target on the second, headers, an empty line, the body. Other lines are
    /// ignored, so that any bytes are valid input.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut rest = bytes;
        let settings = text::parse_json(line(&mut rest)).ok().and_then(|value| value.as_object().cloned()).unwrap_or_default();
        let start = String::from_utf8_lossy(line(&mut rest)).into_owned();
        let (method, target) = start.split_once(' ').unwrap_or(("POST", &start));
        let mut headers = HeaderMap::new();
        loop {
            let header = line(&mut rest);
            if header.is_empty() {
                break;
            }
            let colon = header.iter().position(|byte| *byte == b':').unwrap_or(header.len());
            let value = header.get(colon + 1..).unwrap_or_default().trim_ascii();
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&header[..colon]), HeaderValue::from_bytes(value)) {
                headers.append(name, value);
            }
        }
        Self {
            settings,
            method: Method::from_bytes(method.as_bytes()).unwrap_or(Method::POST),
            target: target.to_owned(),
            headers,
            body: rest.to_vec(),
            now: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        }
    }

    pub fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            target: &self.target,
            headers: &self.headers,
            body: &self.body,
            client: None,
            now: self.now,
            public_base: "https://hooks.acme.example",
        }
    }

    pub fn channel(&self, provider: &dyn Provider) -> Channel {
        Channel {
            id: Uuid::nil(),
            name: "Hostile".to_owned(),
            provider_code: provider.code().to_owned(),
            is_active: true,
            sales_id: None,
            auto_create_contacts: false,
            settings: self.settings.clone().into(),
        }
    }
}

fn line<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let line = &rest[..end];
    *rest = rest.get(end + 1..).unwrap_or_default();
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Runs everything a provider does on any input. The body is parsed even when verification failed, because a sender that knows the
/// secret may be hostile too.
pub fn probe(provider: &dyn Provider, anything: &Anything) {
    let (channel, request) = (anything.channel(provider), anything.request());
    providers::check(provider, &channel);
    provider.cautions(&channel);
    assert!(provider.body_limit(&channel) > 0, "nothing could come in");
    let sample = provider.sample(&channel, "https://hooks.acme.example/functions/v1/ingest-activity?key=k", request.unix_now());
    drop(sample);

    if let Err(refusal) = provider.verify(&channel, &request) {
        blames_the_sender(provider, &refusal);
    }
    match provider.normalise(&channel, &request) {
        Ok(Inbound::Events { events, .. }) => {
            events.iter().for_each(storable);
            let stored: Vec<_> = events.iter().map(|_| Stored { id: Uuid::nil(), fresh: true }).collect();
            assert!(provider.acknowledge(&Outcome { stored: &stored }).status.is_success());
        }
        Ok(Inbound::Reply(answer)) => assert_eq!(answer.status, StatusCode::OK),
        Ok(Inbound::Nothing { .. } | Inbound::Fetch) => assert!(provider.acknowledge(&Outcome { stored: &[] }).status.is_success()),
        Err(refusal) => blames_the_sender(provider, &refusal),
    }
}

fn blames_the_sender(provider: &dyn Provider, refusal: &Refusal) {
    let status = provider.refuse(refusal).status;
    assert!(status.is_client_error(), "{refusal:?} is answered with {status}");
}

/// PostgreSQL accepts it, and a redelivery is recognised.
fn storable(event: &Event) {
    assert!(!event.external_id.is_empty(), "two events without an id would be one");
    // The size that an index of PostgreSQL can hold, with a margin.
    assert!(event.external_id.len() <= 1000, "an id of {} bytes", event.external_id.len());
    if let Some(Address::Email(address) | Address::Phone(address) | Address::Other(address)) = &event.sender {
        assert!(!address.is_empty() && address.len() <= 1000, "an address of {} bytes", address.len());
    }
    let sender = event.sender.as_ref().map(|sender| serde_json::json!(sender));
    let all = serde_json::json!([event.raw_data, event.metadata, event.external_id, event.sender_name, sender]);
    // Only a NUL is escaped in this way by the writer. A backslash in the text itself is doubled.
    let written = all.to_string().replace(r"\\", "");
    assert!(!written.contains(r"\u0000"), "NUL in {written}");
}

/// [`probe`] with the bytes of a fuzzer.
pub fn provider(code: &str, bytes: &[u8]) {
    probe(providers::find(code).expect("a provider"), &Anything::from_bytes(bytes));
}

/// For any keys and any request a scheme accepts or refuses. Without keys it never accepts, except for the scheme that is meant to.
pub fn scheme(code: &str, bytes: &[u8]) {
    let scheme = schemes::find(code).expect("a scheme");
    let anything = Anything::from_bytes(bytes);
    let channel_settings = crate::Settings::from(anything.settings.clone());
    let request = anything.request();
    let keys = Keys::new(channel_settings.both("secret")).with_header(channel_settings.text("header"));
    scheme.check(&keys);
    let _ = scheme.verify(&keys, &request);
    let _ = scheme.signed_id(&request);
    let _ = scheme.sign(&keys, request.unix_now(), &mut HeaderMap::new(), &anything.body);
    assert!(code == "none" || scheme.verify(&Keys::default(), &request).is_err(), "{code} believes without a key");
}

/// Forms of both kinds. The first line is the content type of the second kind.
pub fn form(bytes: &[u8]) {
    let mut body = bytes;
    let content_type = String::from_utf8_lossy(line(&mut body)).into_owned();
    for form in [Form::multipart(&content_type, body), Form::urlencoded(bytes)].into_iter().flatten() {
        form.digest();
        for field in form.fields() {
            field.text(None);
            field.text(Some(&content_type));
            assert!(form.get(&field.name).is_some());
        }
    }
}

pub fn json(bytes: &[u8]) {
    if let Ok(mut value) = json::read(bytes) {
        text::clean(&mut value);
        assert!(!value.to_string().replace(r"\\", "").contains(r"\u0000"));
    }
}

/// A mail as it is, and the HTML and the addresses in one.
pub fn mail(bytes: &[u8]) {
    if let Some(mail) = Mail::parse(bytes) {
        let event = Mail { message_id: "hostile".to_owned(), ..mail }.into_event();
        storable(&event);
    }
    let text = String::from_utf8_lossy(bytes);
    mail::html_to_text(&text);
    mail::mailboxes(&text);
    mail::decode_words(&text);
}

/// Every parsed address has the parts of an address.
pub fn address(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(email) = address::email::normalise(&text) {
        let plain = !email.contains(|c: char| c.is_control() || c.is_whitespace());
        assert!(plain && email.len() <= 320 && email.contains('@'), "{email:?}");
    }
    for region in ["US", "DE", "", "no region"] {
        if let Some(phone) = address::phone::normalise(&text, region) {
            assert!(phone.contains(char::is_numeric), "{phone:?}");
        }
    }
}
