//! Mail, whoever brings it.

use serde_json::json;

use crate::address::email;
use crate::{Address, Attachment, Channel, Event, Kind, draft};

/// A mail as a provider hands it over.
#[derive(Debug, Default)]
pub struct Mail {
    pub message_id: Option<String>,
    pub rfc_message_id: Option<String>,
    pub from: Option<String>,
    pub to: Vec<String>,
    pub cc: Vec<String>,
    pub subject: Option<String>,
    pub text: Option<String>,
    pub html: Option<String>,
    pub stripped_text: Option<String>,
    pub headers: Vec<(String, String)>,
    pub spam: Option<bool>,
    pub spam_score: Option<String>,
    pub attachments: Vec<Attachment>,
}

pub fn event(mail: Mail, channel: &Channel, external_id: &str) -> Event {
    let _ = channel;
    let mut event = draft::message(Kind::Email, mail.text.or(mail.html).unwrap_or_default());
    if let Some(subject) = mail.subject {
        event.raw_data.insert("subject".to_owned(), subject.into());
    }
    let from = mail.from.unwrap_or_default();
    let bare = email::normalise(&from);
    draft::sent_by(&mut event, bare.as_deref().unwrap_or(&from), bare.clone().map(Address::Email), None);
    draft::note(&mut event, "message_id", mail.message_id);
    draft::note(&mut event, "rfc_message_id", mail.rfc_message_id);
    draft::note(&mut event, "to", mail.to.first().cloned());
    draft::note(&mut event, "cc", mail.cc);
    draft::note(&mut event, "stripped_text", mail.stripped_text);
    draft::note(&mut event, "spam", mail.spam);
    draft::note(&mut event, "spam_score", mail.spam_score);
    draft::note(&mut event, "attachments_count", mail.attachments.len());
    let listed = mail.attachments.iter().map(|one| json!({"name": one.name, "content_type": one.content_type, "length": one.bytes.len()}));
    let listed: Vec<_> = listed.collect();
    draft::note(&mut event, "attachments", listed);
    event.attachments = mail.attachments;
    draft::finished(event, external_id)
}
