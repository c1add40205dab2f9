//! Postmark inbound: mail as JSON, attachments included.
//!
//! Postmark does not sign. A mail is authenticated by the key in the URL, the user and password in it, and the address it comes
//! from ([`guard`]).

mod guard;
mod json;

use base64::Engine;
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::crypt::BASE64;
use crate::provider::Setting;
use crate::text::parse_json;
use crate::{Answer, Channel, Inbound, Message, Outcome, Provider, Refusal, Request, Sample, Verified};

const MEGABYTE: usize = 1024 * 1024;
/// 35 MB of attachments are 47 MB of base64; with the raw mail included it may be twice that.
const LEAST_MEGABYTES: usize = 64;
const MOST_MEGABYTES: usize = 256;

const SETTINGS: &[Setting] = &[
    Setting {
        name: "basic_auth.username", secret: false, required: false, about: "user in the webhook URL, https://USER:password@host/…"
    },
    Setting {
        name: "basic_auth.password",
        secret: true,
        required: false,
        about: "password in the webhook URL; recommended, demanded once set",
    },
    Setting { name: "ip_mode", secret: false, required: false, about: "enforce, monitor or off: must the sender's address be Postmark's" },
    Setting { name: "ip_allow", secret: false, required: false, about: "addresses and networks instead of those Postmark publishes" },
    Setting {
        name: "body_limit_mb",
        secret: false,
        required: false,
        about: "largest mail in megabytes, 64 to 256; 100 with the raw mail included",
    },
];

#[derive(Debug)]
pub struct Postmark;

impl Provider for Postmark {
    fn code(&self) -> &'static str {
        "postmark"
    }

    fn title(&self) -> &'static str {
        "Postmark"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn check(&self, channel: &Channel) -> Vec<String> {
        let mut wrong = guard::check(channel);
        if channel.settings.get("body_limit_mb").is_some_and(|value| !whole(value).is_some_and(|size| allowed().contains(&size))) {
            wrong.push(format!("body_limit_mb is a number from {LEAST_MEGABYTES} to {MOST_MEGABYTES}"));
        }
        wrong
    }

    fn cautions(&self, channel: &Channel) -> Vec<String> {
        let named = channel.settings.text("basic_auth.password").is_some();
        let caution = "Postmark signs nothing: without basic_auth, anyone who has the URL with its key and sends from an accepted address can store events";
        (!named).then(|| caution.to_owned()).into_iter().collect()
    }

    fn body_limit(&self, channel: &Channel) -> usize {
        let size = channel.settings.get("body_limit_mb").and_then(whole).unwrap_or(LEAST_MEGABYTES);
        size.clamp(LEAST_MEGABYTES, MOST_MEGABYTES) * MEGABYTE
    }

    fn verify(&self, channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal> {
        guard::verify_credentials(channel, request)?;
        let warning = guard::verify_address(channel, request)?;
        Ok(Verified { warning, ..Verified::default() })
    }

    fn normalise(&self, _channel: &Channel, request: &Request<'_>) -> Result<Inbound, Refusal> {
        if let Some(kind @ ("multipart/form-data" | "application/x-www-form-urlencoded")) = request.content_type().as_deref() {
            return Err(Refusal::Unsupported(format!("{kind}; Postmark sends JSON")));
        }
        let value = parse_json(request.body).map_err(|error| Refusal::Malformed(format!("not JSON: {error}")))?;
        let Value::Object(body) = value else { return Err(Refusal::Malformed("not a JSON object".to_owned())) };
        json::read(body, request.body)
    }

    /// Postmark accepts only 200 as success.
    fn acknowledge(&self, outcome: &Outcome<'_>) -> Answer {
        Answer { status: StatusCode::OK, ..crate::providers::accepted(outcome) }
    }

    fn refuse(&self, refusal: &Refusal) -> Answer {
        let answer = crate::providers::refused(refusal);
        match refusal {
            // HTTP requires a 401 to name the authentication scheme.
            Refusal::Unauthentic(_) => answer.with(WWW_AUTHENTICATE.as_str(), "Basic realm=\"ingest\""),
            _ => answer,
        }
    }

    fn compose(&self, channel: &Channel, url: &str, _unix_now: i64, message: &Message<'_>) -> Result<Sample, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(password) = channel.settings.text("basic_auth.password") {
            let credentials = format!("{}:{password}", channel.settings.text("basic_auth.username").unwrap_or_default());
            let basic = format!("Basic {}", BASE64.encode(credentials));
            let mut basic = HeaderValue::from_str(&basic).map_err(|error| error.to_string())?;
            basic.set_sensitive(true);
            headers.insert(AUTHORIZATION, basic);
        }
        let (name, email) = (message.name.unwrap_or("Gleaner"), message.email.unwrap_or("test@gleaner.example"));
        let body = json!({
            "FromName": name,
            "From": email,
            "FromFull": {"Email": email, "Name": name, "MailboxHash": ""},
            "ToFull": [{"Email": "inbound@gleaner.example", "Name": "", "MailboxHash": ""}],
            "MessageStream": "inbound",
            "Subject": message.subject.unwrap_or("A test mail from Gleaner"),
            "TextBody": message.text.unwrap_or("Sent by gleaner channels test."),
            "MessageID": Uuid::new_v4(),
            "Headers": [],
            "Attachments": [],
        });
        Ok(Sample { method: Method::POST, url: url.to_owned(), headers, body: body.to_string().into_bytes() })
    }
}

fn allowed() -> std::ops::RangeInclusive<usize> {
    LEAST_MEGABYTES..=MOST_MEGABYTES
}

/// A whole number, also when written as text.
fn whole(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_u64().and_then(|number| usize::try_from(number).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Why;

    #[test]
    fn large_mail_fits_and_the_limit_can_be_raised() {
        let limit = |settings| Postmark.body_limit(&channel(settings)) / MEGABYTE;
        assert_eq!(limit(json!({})), 64);
        assert_eq!(limit(json!({"body_limit_mb": "100"})), 100);
        assert_eq!(limit(json!({"body_limit_mb": 100})), 100);
        assert_eq!(limit(json!({"body_limit_mb": 1})), 64, "never below what Postmark sends");
        assert_eq!(limit(json!({"body_limit_mb": 1_000_000})), 256);
    }

    #[test]
    fn a_refusal_says_how_to_do_better() {
        let answer = Postmark.refuse(&Why::Unsigned.into());
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert!(answer.headers.iter().any(|(name, value)| *name == "www-authenticate" && value.starts_with("Basic")));
        assert_eq!(Postmark.refuse(&Refusal::Unusable(String::new())).status, StatusCode::FORBIDDEN);
    }

    #[test]
    fn settings_that_cannot_work_are_reported_with_what_to_write() {
        let wrong = |settings| crate::providers::check(&Postmark, &channel(settings));
        assert_eq!(wrong(json!({})), [""; 0]);
        let fine = json!({"basic_auth": {"username": "u", "password": "p"}, "ip_mode": "enforce", "ip_allow": "10.0.0.0/8 ::1", "body_limit_mb": 64});
        assert_eq!(wrong(fine), [""; 0]);
        let each = json!({"basic_auth": {"username": "a:b"}, "ip_mode": "on", "ip_allow": ["10.0.0.0/33", 7], "body_limit_mb": "much"});
        let message = wrong(each).join("; ");
        for part in ["no password", "colon", "enforce, monitor or off", "10.0.0.0/33", "64 to 256"] {
            assert!(message.contains(part), "{part} in {message}");
        }
    }

    fn channel(settings: Value) -> Channel {
        Channel {
            id: Uuid::nil(),
            name: String::new(),
            provider_code: "postmark".into(),
            is_active: true,
            sales_id: None,
            auto_create_contacts: false,
            settings: settings.as_object().cloned().unwrap_or_default().into(),
        }
    }
}
