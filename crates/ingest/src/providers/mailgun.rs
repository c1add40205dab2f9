//! Mailgun routes: mail as a form, with or without files, or as JSON.

mod fields;

use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::sendgrid::is_spam_verdict;
use crate::mail::Mail;
use crate::provider::{Message, Outcome, Sample, Setting, Verified};
use crate::scheme::{Keys, Scheme};
use crate::schemes::mailgun::{self as scheme, Signed};
use crate::{Answer, Channel, Inbound, Provider, Refusal, Request, draft, providers};
use fields::Fields;

#[derive(Debug)]
pub struct Mailgun;

const SETTINGS: &[Setting] =
    &[Setting { name: "signing_key", secret: true, required: true, about: "HTTP webhook signing key, under API security" }];

fn keys(channel: &Channel) -> Keys<'_> {
    Keys::new(channel.settings.both("signing_key"))
}

/// The mail in the fields. Mailgun repeats its headers as fields of their own, with the original spelling.
fn described(fields: &Fields) -> Mail {
    let text = |names: &[&str]| names.iter().find_map(|name| fields.text(name).filter(|text| !text.is_empty())).unwrap_or_default();
    Mail {
        from: text(&["from", "From", "sender"]),
        to: vec![text(&["To", "to", "recipient"])],
        cc: vec![text(&["Cc", "cc"])],
        subject: text(&["subject", "Subject"]),
        text: text(&["body-plain"]),
        html: text(&["body-html"]),
        stripped_text: text(&["stripped-text"]),
        rfc_message_id: text(&["Message-Id", "Message-ID", "message-id"]),
        headers: fields.headers(),
        enclosures: fields.enclosures(),
        ..Mail::default()
    }
}

/// Adds what Mailgun itself says about the mail.
fn remarks(mail: &mut Mail, fields: &Fields) {
    for name in ["recipient", "domain", "message-url"] {
        if let Some(value) = fields.text(name).filter(|value| !value.is_empty()) {
            mail.metadata.insert(name.replace('-', "_"), value.into());
        }
    }
    // A spam verdict in the mail comes from its author. Mailgun's own has other names.
    mail.headers.retain(|(name, _)| !is_spam_verdict(name));
    for (given, usual) in [("X-Mailgun-Sflag", "X-Spam-Status"), ("X-Mailgun-Sscore", "X-Spam-Score")] {
        let verdict = mail.header(given).map(str::to_owned).or_else(|| fields.text(given));
        mail.headers.extend(verdict.map(|value| (usual.to_owned(), value)));
    }
}

impl Provider for Mailgun {
    fn code(&self) -> &'static str {
        "mailgun"
    }

    fn title(&self) -> &'static str {
        "Mailgun"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn check(&self, channel: &Channel) -> Vec<String> {
        providers::not_text(channel, &["signing_key"])
    }

    fn body_limit(&self, _: &Channel) -> usize {
        // Mailgun accepts mails of 25 MB. A raw one is encoded once more in the request.
        64 * 1024 * 1024
    }

    fn verify(&self, channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal> {
        scheme::Mailgun.verify(&keys(channel), request)
    }

    fn normalise(&self, _: &Channel, request: &Request<'_>) -> Result<Inbound, Refusal> {
        let fields = Fields::read(request)?;
        if fields.is_delivery_event() {
            let warning = "an event about mail that was sent, not a mail: this URL belongs into a route's forward() action";
            return Ok(Inbound::Nothing { remember: Vec::new(), warning: Some(warning.to_owned()) });
        }
        let mut mail = match fields.bytes("body-mime") {
            Some(raw) => Mail::parse(&raw).ok_or_else(|| Refusal::Unusable("body-mime is no mail".to_owned()))?,
            None => described(&fields),
        };
        let says_something = !(mail.text.is_empty() && mail.html.is_empty() && mail.subject.is_empty() && mail.enclosures.is_empty());
        if mail.from.trim().is_empty() && !says_something {
            return Err(Refusal::Unusable("neither a sender nor a text, a subject or a file".to_owned()));
        }
        remarks(&mut mail, &fields);
        // A retry has a new token with the same mail.
        let id = Some(mail.rfc_message_id.trim()).filter(|id| !id.is_empty()).map(str::to_owned);
        let id = draft::stored_id(&id.or_else(|| mail.header("message-id").map(str::to_owned)).unwrap_or_else(|| fields.digest()));
        mail.message_id.clone_from(&id);
        Ok(Inbound::Events { events: vec![draft::finished(mail.into_event(), &id)], remember: Vec::new() })
    }

    /// Mailgun counts 200 as success.
    fn acknowledge(&self, outcome: &Outcome<'_>) -> Answer {
        Answer { status: StatusCode::OK, ..providers::accepted(outcome) }
    }

    /// Mailgun retries whatever is refused, except with 406.
    fn refuse(&self, refusal: &Refusal) -> Answer {
        let answer = providers::refused(refusal);
        match refusal {
            Refusal::Unusable(_) => Answer { status: StatusCode::NOT_ACCEPTABLE, ..answer },
            _ => answer,
        }
    }

    fn compose(&self, channel: &Channel, url: &str, unix_now: i64, message: &Message<'_>) -> Result<Sample, String> {
        let Signed { timestamp, token, signature } = scheme::signed_fields(&keys(channel), unix_now)?;
        let id = format!("<gleaner-sample-{}@example.com>", message.id(unix_now));
        let from = format!("{} <{}>", message.name(), message.email());
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("timestamp", timestamp), ("token", token), ("signature", signature), ("Message-Id", id)])
            .extend_pairs([("recipient", "inbox@example.com"), ("sender", message.email())])
            .extend_pairs([("from", from.as_str()), ("subject", message.subject())])
            .extend_pairs([("body-plain", message.text())])
            .finish();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/x-www-form-urlencoded"));
        Ok(Sample { method: Method::POST, url: url.to_owned(), headers, body: body.into_bytes() })
    }
}
