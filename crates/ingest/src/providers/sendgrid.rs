//! SendGrid Inbound Parse: mail as a multipart form, in parts or raw.

use std::collections::HashMap;

use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;

use crate::form::{self, Field, Form};
use crate::mail::{Enclosure, Mail};
use crate::provider::{Message, Sample, Setting, Verified};
use crate::scheme::{Keys, Scheme};
use crate::schemes::basic::{self, Basic};
use crate::schemes::none::KEY_ALONE;
use crate::schemes::sendgrid_ecdsa::SendgridEcdsa;
use crate::{Answer, Channel, Inbound, Provider, Refusal, Request, draft, json, providers};

#[derive(Debug)]
pub struct Sendgrid;

const SETTINGS: &[Setting] = &[
    Setting { name: "public_key", secret: false, required: false, about: "verification key of the parse webhook's security policy" },
    Setting { name: "public_key_previous", secret: false, required: false, about: "the verification key before the last change" },
    Setting {
        name: "basic_auth.username",
        secret: false,
        required: false,
        about: "user name in the URL given to SendGrid, when it cannot sign",
    },
    Setting { name: "basic_auth.password", secret: true, required: false, about: "password in the URL given to SendGrid" },
];

/// How mail of this channel is authenticated.
enum Proof<'a> {
    Signature(Keys<'a>),
    Password(Keys<'a>),
    /// Only the key in the URL.
    Nothing,
}

/// A configured proof is required, also when it is empty or broken: a key that was cleared by mistake must not disable
/// verification.
fn proof(channel: &Channel) -> Proof<'_> {
    let given = |name: &str| channel.settings.get(name).is_some_and(|value| !value.is_null());
    if given("public_key") || given("public_key_previous") {
        Proof::Signature(Keys::new(channel.settings.both("public_key")))
    } else if given("basic_auth") {
        Proof::Password(Keys::new(basic::pairs(&channel.settings)))
    } else {
        Proof::Nothing
    }
}

/// The mail in the fields of the form, each in the charset that `charsets` gives for it.
fn described(form: &Form) -> Mail {
    let charsets: HashMap<String, String> = form.text("charsets").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let text = |name: &str| form.get(name).map(|field| field.text(charsets.get(name).map(String::as_str))).unwrap_or_default();
    let mut mail = Mail {
        from: text("from"),
        to: vec![text("to")],
        cc: vec![text("cc")],
        subject: text("subject"),
        text: text("text"),
        html: text("html"),
        ..Mail::default()
    };
    // The block of headers is itself the beginning of a mail.
    if let Some(parsed) = Mail::parse(format!("{}\r\n\r\n", text("headers").trim_end()).as_bytes()) {
        mail.headers = parsed.headers;
        mail.rfc_message_id = parsed.rfc_message_id;
    }
    let info: Value = serde_json::from_str(&text("attachment-info")).unwrap_or_default();
    let content_ids = form::content_ids(form.text("content-ids"));
    mail.enclosures = form.files().map(|file| enclosure(file, &content_ids, &info[file.name.as_str()])).collect();
    mail
}

/// A file, with its entry in the list of files: the name in the part may have been altered by another program.
fn enclosure(file: &Field, content_ids: &HashMap<String, String>, said: &Value) -> Enclosure {
    let mut enclosure = file.enclosure(content_ids);
    if let Some(name) = said["filename"].as_str() {
        name.clone_into(&mut enclosure.name);
    }
    if enclosure.content_id.is_none() {
        enclosure.content_id = said["content-id"].as_str().map(str::to_owned);
    }
    enclosure
}

/// Adds what SendGrid itself says about the mail.
fn remarks(mail: &mut Mail, form: &Form) {
    let envelope: Value = form.text("envelope").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    if mail.from.trim().is_empty() {
        mail.from = envelope["from"].as_str().unwrap_or_default().to_owned();
    }
    if mail.to.iter().all(|to| to.trim().is_empty()) {
        mail.to = envelope["to"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    }
    if let Some(recipients) = envelope["to"].as_array() {
        mail.metadata.insert("envelope_to".to_owned(), recipients.clone().into());
    }
    for (field, name) in [("SPF", "spf"), ("dkim", "dkim"), ("sender_ip", "sender_ip")] {
        if let Some(value) = form.text(field).filter(|value| !value.is_empty()) {
            mail.metadata.insert(name.to_owned(), value.into());
        }
    }
    // A spam verdict in the mail comes from its author. SendGrid's own is in a separate field.
    mail.headers.retain(|(name, _)| !is_spam_verdict(name));
    if let Some(score) = form.text("spam_score").filter(|score| !score.trim().is_empty()) {
        mail.headers.insert(0, ("X-Spam-Score".to_owned(), score));
    }
}

/// Headers with the verdict of a spam filter.
pub(super) fn is_spam_verdict(header: &str) -> bool {
    ["x-spam-status", "x-spam-score"].iter().any(|name| header.eq_ignore_ascii_case(name))
}

impl Provider for Sendgrid {
    fn code(&self) -> &'static str {
        "sendgrid"
    }

    fn title(&self) -> &'static str {
        "SendGrid"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn check(&self, channel: &Channel) -> Vec<String> {
        match proof(channel) {
            Proof::Signature(keys) => SendgridEcdsa.check(&keys),
            Proof::Password(keys) => Basic.check(&keys),
            Proof::Nothing => Vec::new(),
        }
    }

    fn cautions(&self, channel: &Channel) -> Vec<String> {
        match proof(channel) {
            Proof::Nothing => vec![format!("{KEY_ALONE}; set public_key or basic_auth")],
            Proof::Signature(_) | Proof::Password(_) => Vec::new(),
        }
    }

    fn body_limit(&self, _: &Channel) -> usize {
        // SendGrid accepts mails of 30 MB. Attachments are not encoded in a form; raw mails are.
        64 * 1024 * 1024
    }

    fn verify(&self, channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal> {
        match proof(channel) {
            Proof::Signature(keys) => SendgridEcdsa.verify(&keys, request),
            Proof::Password(keys) => Basic.verify(&keys, request),
            Proof::Nothing => Ok(Verified { warning: Some(KEY_ALONE.to_owned()), ..Verified::default() }),
        }
    }

    fn normalise(&self, _: &Channel, request: &Request<'_>) -> Result<Inbound, Refusal> {
        if request.content_type().as_deref() == Some("application/json") {
            json::read(request.body)?;
            let warning = "an event about mail that was sent, not a mail: this URL belongs under Inbound Parse";
            return Ok(Inbound::Nothing { remember: Vec::new(), warning: Some(warning.to_owned()) });
        }
        let form = Form::read(request)?;
        let mut mail = match form.get("email") {
            Some(raw) => Mail::parse(&raw.bytes).ok_or_else(|| Refusal::Malformed("email is no mail".to_owned()))?,
            None => described(&form),
        };
        let is_mail = ["email", "from", "text", "html", "headers", "envelope"].iter().any(|name| form.get(name).is_some());
        if !is_mail {
            return Err(Refusal::Malformed("none of the fields of a mail is there".to_owned()));
        }
        remarks(&mut mail, &form);
        // SendGrid gives no id of its own. A retry repeats the mail with another boundary.
        let id = Some(mail.rfc_message_id.trim()).filter(|id| !id.is_empty());
        let id = draft::stored_id(&id.map_or_else(|| format!("sha256:{}", form.digest()), str::to_owned));
        mail.message_id.clone_from(&id);
        Ok(Inbound::Events { events: vec![draft::finished(mail.into_event(), &id)], remember: Vec::new() })
    }

    /// Some clients send the credentials of a URL only after a 401 asks for them.
    fn refuse(&self, refusal: &Refusal) -> Answer {
        let answer = providers::refused(refusal);
        match refusal {
            Refusal::Unauthentic(_) => answer.with("www-authenticate", "Basic realm=\"gleaner\""),
            _ => answer,
        }
    }

    fn compose(&self, channel: &Channel, url: &str, unix_now: i64, message: &Message<'_>) -> Result<Sample, String> {
        const BOUNDARY: &str = "gleaner-sample";
        let from = format!("{} <{}>", message.name(), message.email());
        let fields = [
            ("headers", format!("Message-ID: <gleaner-sample-{}@example.com>\nFrom: {from}", message.id(unix_now))),
            ("from", from),
            ("to", "inbox@example.com".to_owned()),
            ("subject", message.subject().to_owned()),
            ("text", message.text().to_owned()),
        ];
        let part =
            |(name, value): &(&str, String)| format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        let body = format!("{}--{BOUNDARY}--\r\n", fields.iter().map(part).collect::<String>()).into_bytes();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("multipart/form-data; boundary=gleaner-sample"));
        match proof(channel) {
            Proof::Signature(keys) => SendgridEcdsa.sign(&keys, unix_now, &mut headers, &body)?,
            Proof::Password(keys) => Basic.sign(&keys, unix_now, &mut headers, &body)?,
            Proof::Nothing => {}
        }
        Ok(Sample { method: Method::POST, url: url.to_owned(), headers, body })
    }
}
