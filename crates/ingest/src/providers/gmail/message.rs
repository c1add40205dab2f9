//! Converts a message of the API to an event.

use serde_json::{Value, json};

use super::{labels, part};
use crate::mail::{Enclosure, Mail};
use crate::{Channel, Event};

/// Mail that was sent by us, is a draft, is spam or was deleted is not inbound.
const NOT_INBOUND: [&str; 4] = ["SENT", "DRAFT", "SPAM", "TRASH"];

/// The inbound mail, from `messages.get` with `format=full` or `format=raw`. `None` for what is not inbound mail of this channel,
/// and for what is not a message at all.
pub fn message(message: &Value, channel: &Channel) -> Option<Event> {
    let id = message["id"].as_str().filter(|id| !id.is_empty())?;
    let on: Vec<&str> = message["labelIds"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let wanted = labels(channel).iter().all(|label| on.contains(&label.as_str()));
    if !wanted || on.iter().any(|label| NOT_INBOUND.contains(label)) {
        return None;
    }

    let mut references = Vec::new();
    let mut mail = match message["raw"].as_str() {
        Some(raw) => Mail::parse(&part::base64_any(raw)?)?,
        None => described(&message["payload"], &mut references),
    };
    mail.message_id = id.to_owned();
    mail.metadata.insert("labels".into(), json!(on));
    if let Some(thread) = message["threadId"].as_str() {
        mail.metadata.insert("thread_id".into(), json!(thread));
    }
    let mut event = mail.into_event();
    event.metadata.insert("external_id".into(), json!(event.external_id));
    // Attachments stay at Google. These are the ids under which they can be fetched later.
    if let Some(Value::Array(listed)) = event.metadata.get_mut("attachments") {
        for (attachment, reference) in listed.iter_mut().zip(references) {
            if let Some(reference) = reference {
                attachment["attachment_id"] = json!(reference);
            }
        }
    }
    Some(event)
}

/// The mail, from the parts that the API returns.
fn described(payload: &Value, references: &mut Vec<Option<String>>) -> Mail {
    let headers: Vec<(String, String)> = payload["headers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|header| Some((header["name"].as_str()?.to_owned(), header["value"].as_str()?.to_owned())))
        .collect();
    let all = |name: &str| -> Vec<String> {
        headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone()).collect()
    };
    let first = |name: &str| all(name).into_iter().next().unwrap_or_default();
    let parts = part::walk(payload);
    let enclosures = parts.files.into_iter().map(|file| {
        references.push(file.attachment_id);
        Enclosure { name: file.name, content_type: file.content_type, content_id: file.content_id, length: file.length, bytes: None }
    });
    Mail {
        from: first("from"),
        to: all("to"),
        cc: all("cc"),
        subject: first("subject"),
        text: parts.text.unwrap_or_default(),
        html: parts.html.unwrap_or_default(),
        enclosures: enclosures.collect(),
        headers,
        ..Mail::default()
    }
}
