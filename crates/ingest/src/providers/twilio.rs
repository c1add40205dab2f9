//! Twilio: text messages, WhatsApp, calls and their recordings.
//!
//! Every webhook is signed over the URL that Twilio was given and the fields it posts ([`signature`]). The signature has no time
//! and no separators, so an accepted request must also name our account and carry well-formed ids; redeliveries are recognised by
//! those ids.

mod calls;
mod conversations;
mod fields;
mod folding;
mod messages;
mod parties;
mod signature;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use uuid::Uuid;

use self::fields::{Fields, Source};
use crate::provider::Setting;
use crate::refusal::Why;
use crate::{Answer, Channel, Inbound, Message, Outcome, Provider, Refusal, Request, Sample, Verified};

/// Anything but TwiML is an error to Twilio, and a caller would hear an error message. This response does nothing.
const DO_NOTHING: &str = r#"<?xml version="1.0" encoding="UTF-8"?><Response/>"#;

const SETTINGS: &[Setting] = &[
    Setting { name: "auth_token", secret: true, required: true, about: "Auth Token of the account, which signs its webhooks" },
    Setting { name: "account_sid", secret: false, required: false, about: "AC…; webhooks of any other account are refused" },
];

#[derive(Debug)]
pub struct Twilio;

/// The kind of webhook, by the fields it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Webhook {
    Message,
    Recording,
    Call,
    Conversation,
    /// A kind that never becomes an activity.
    Unknown,
}

impl Webhook {
    fn of(fields: &Fields) -> Self {
        let has = |name| fields.text(name).is_some();
        if fields.text("EventType") == Some(conversations::MESSAGE_ADDED) {
            Self::Conversation
        } else if has("RecordingUrl") || has("RecordingSid") || has("RecordingStatus") {
            Self::Recording
        } else if messages::IDS.iter().any(|name| has(name)) {
            Self::Message
        } else if has("CallStatus") {
            Self::Call
        } else {
            Self::Unknown
        }
    }
}

impl Provider for Twilio {
    fn code(&self) -> &'static str {
        "twilio"
    }

    fn title(&self) -> &'static str {
        "Twilio"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn cautions(&self, channel: &Channel) -> Vec<String> {
        let missing = channel.settings.text("account_sid").is_none();
        let caution = "without account_sid it is not checked whose event it is, and pictures cannot be fetched";
        missing.then(|| caution.to_owned()).into_iter().collect()
    }

    fn check(&self, channel: &Channel) -> Vec<String> {
        let mut wrong = Vec::new();
        if channel.settings.text("auth_token").is_some_and(|token| token.len() == 34 && token.starts_with("SK")) {
            wrong.push("auth_token is an API key; webhooks are signed with the account's Auth Token".to_owned());
        }
        if channel.settings.text("public_url").is_some_and(|url| !url.starts_with("https://") && !url.starts_with("http://")) {
            wrong.push("public_url has no scheme; write it as Twilio was given it: https://host".to_owned());
        }
        wrong
    }

    /// A form of text fields, ten media links at most.
    fn body_limit(&self, _channel: &Channel) -> usize {
        256 * 1024
    }

    fn verify(&self, channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal> {
        signature::verify(channel, request)?;
        verify_account(channel, &Fields::read(request)?)?;
        Ok(Verified::default())
    }

    fn normalise(&self, channel: &Channel, request: &Request<'_>) -> Result<Inbound, Refusal> {
        let fields = Fields::read(request)?;
        let region = channel.default_region();
        let webhook = Webhook::of(&fields);
        folding::refuse_folded(&fields, webhook)?;
        match webhook {
            Webhook::Message => messages::read(&fields, region),
            Webhook::Recording => calls::read_recording(&fields, region),
            Webhook::Call => calls::read_call(&fields, region),
            Webhook::Conversation => conversations::read(&fields, request.body, region),
            Webhook::Unknown => Ok(Inbound::Nothing {
                remember: Vec::new(),
                warning: Some("Twilio sent something that is neither a message, a call nor a recording".to_owned()),
            }),
        }
    }

    fn acknowledge(&self, outcome: &Outcome<'_>) -> Answer {
        let answer = Answer::text(StatusCode::OK, "text/xml", DO_NOTHING);
        match outcome.stored.first() {
            Some(first) => answer.with("x-activity-id", first.id.to_string()),
            None => answer,
        }
    }

    fn compose(&self, channel: &Channel, url: &str, _unix_now: i64, message: &Message<'_>) -> Result<Sample, String> {
        let token = channel.settings.text("auth_token").ok_or("auth_token is missing")?;
        // The fragment configures Twilio's retries. It is neither sent nor signed.
        let url = url.split('#').next().unwrap_or(url);
        let id = format!("SM{}", Uuid::new_v4().simple());
        let account = channel.settings.text("account_sid").unwrap_or("AC00000000000000000000000000000000");
        let fields = [
            ("AccountSid", account),
            ("Body", message.text.unwrap_or("A test message from Gleaner")),
            ("From", message.phone.unwrap_or("+15005550006")),
            ("MessageSid", &id),
            ("NumMedia", "0"),
            ("SmsStatus", "received"),
            ("To", "+15005550009"),
        ];
        let signed = signature::sign(token, url, &signature::signed_fields(&fields));
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let signed = HeaderValue::from_str(&BASE64_STANDARD.encode(signed)).map_err(|error| error.to_string())?;
        headers.insert("x-twilio-signature", signed);
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish().into_bytes();
        Ok(Sample { method: Method::POST, url: url.to_owned(), headers, body })
    }
}

/// The signed string has no separators: characters can be moved between names and values without changing it. So every stored
/// request must name the configured account. JSON is covered byte by byte and may omit the account.
fn verify_account(channel: &Channel, fields: &Fields) -> Result<(), Why> {
    let Some(account) = channel.settings.text("account_sid") else { return Ok(()) };
    let mut named = fields.every("AccountSid").peekable();
    let must_name = fields.source != Source::Json && Webhook::of(fields) != Webhook::Unknown;
    if (must_name && named.peek().is_none()) || named.any(|named| named != account) {
        return Err(Why::Account);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Stored;

    #[test]
    fn twilio_hears_twiml_and_we_name_the_activity_beside_it() {
        let id = Uuid::from_u128(7);
        let answer = Twilio.acknowledge(&Outcome { stored: &[Stored { id, fresh: false }] });
        assert_eq!((answer.status, answer.content_type, answer.body.as_str()), (StatusCode::OK, "text/xml", DO_NOTHING));
        assert_eq!(answer.headers, [("x-activity-id", id.to_string())]);
        assert_eq!(Twilio.acknowledge(&Outcome { stored: &[] }).headers, []);
    }

    #[test]
    fn a_header_sent_twice_proves_nothing() {
        let channel = channel(json!({"auth_token": "t0ken"}));
        let target = "/x?key=k";
        let mut sample = Twilio.sample(&channel, "https://h/x?key=k#rc=3&rp=all", 0).expect("a sample");
        let verify = |headers: &HeaderMap| {
            let request = Request {
                method: &Method::POST,
                target,
                headers,
                body: &sample.body,
                client: None,
                now: std::time::SystemTime::UNIX_EPOCH,
                public_base: "https://h",
            };
            Twilio.verify(&channel, &request)
        };
        assert_eq!(verify(&sample.headers), Ok(Verified::default()));
        let signature = sample.headers["x-twilio-signature"].clone();
        sample.headers.append("x-twilio-signature", signature);
        assert_eq!(verify(&sample.headers), Err(Why::Unsigned.into()));
        sample.headers.remove("x-twilio-signature");
        assert_eq!(verify(&sample.headers), Err(Why::Unsigned.into()));
    }

    #[test]
    fn settings_that_cannot_work_are_reported_with_what_to_write() {
        let wrong = |settings| crate::providers::check(&Twilio, &channel(settings));
        assert_eq!(wrong(json!({"auth_token": "t", "auth_token_previous": "o", "account_sid": "AC1"})), [""; 0]);
        assert_eq!(wrong(json!({"public_url": "hooks.acme.example", "auth_tokn": "t"})).len(), 3);
        assert!(wrong(json!({"auth_token": "SK00000000000000000000000000000000"}))[0].contains("Auth Token"));
    }

    fn channel(settings: serde_json::Value) -> Channel {
        Channel {
            id: Uuid::nil(),
            name: String::new(),
            provider_code: "twilio".into(),
            is_active: true,
            sales_id: None,
            auto_create_contacts: false,
            settings: settings.as_object().cloned().unwrap_or_default().into(),
        }
    }
}
