//! Postmark's JSON. Any part of it may be missing or empty.

use base64::Engine;
use serde_json::{Map, Value, json};

use crate::crypt::{BASE64, fingerprint};
use crate::mail::{Enclosure, Mail};
use crate::{Inbound, Memory, Refusal};

pub(super) fn read(mut body: Map<String, Value>, bytes: &[u8]) -> Result<Inbound, Refusal> {
    if let Some(receipt) = receipt(&body) {
        return Ok(Inbound::Nothing { remember: vec![receipt], warning: None });
    }
    if let Some(kind) = body.get("RecordType").and_then(Value::as_str).filter(|kind| *kind != "Inbound") {
        let kind: String = kind.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
        let warning = format!("Postmark sent a {kind} event: this URL belongs under Inbound, not under another webhook");
        return Ok(Inbound::Nothing { remember: Vec::new(), warning: Some(warning) });
    }
    if !["MessageID", "From", "FromFull", "Subject", "TextBody", "HtmlBody"].iter().any(|name| body.contains_key(*name)) {
        return Err(Refusal::Unusable("nothing in it says that it is a mail".to_owned()));
    }
    let mut mail = describe(&mut body);
    // The Check button of the dashboard sends the same mail each time, with an id of zeros. It has no real sender. The operator
    // who pressed it is shown that it arrived.
    if !mail.message_id.is_empty() && mail.message_id.chars().all(|digit| matches!(digit, '0' | '-')) {
        let arrived = "Postmark's Check button was pressed, and its mail arrived: the URL and its password are correct. It is not stored";
        return Ok(Inbound::Nothing { remember: Vec::new(), warning: Some(arrived.to_owned()) });
    }
    if mail.message_id.is_empty() {
        mail.message_id = mail.header("message-id").filter(|id| !id.is_empty()).map_or_else(|| fingerprint(bytes), str::to_owned);
    }
    Ok(Inbound::Events { events: vec![mail.into_event()], remember: Vec::new() })
}

/// What became of a mail we sent: a bounce, a delivery or a complaint.
fn receipt(body: &Map<String, Value>) -> Option<Memory> {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let id = text("MessageID").filter(|id| !id.is_empty())?;
    let value = match text("RecordType")? {
        "Delivery" => json!({"status": "delivered", "final": false}),
        "SpamComplaint" => json!({"status": "complaint", "detail": "marked as spam", "final": true, "unwanted": true}),
        "Bounce" => {
            // 1: a hard bounce; 16: unsubscribed; 2 and 4096: full mailboxes and the like. An answer by machine is no bounce.
            let hard = matches!(body.get("TypeCode").and_then(Value::as_i64), Some(1 | 16));
            let status = if hard { "bounced" } else { "deferred" };
            json!({"status": status, "detail": text("Details").or(text("Type")), "final": hard, "unwanted": hard})
        }
        _ => return None,
    };
    Some(Memory::receipt(id, value))
}

fn describe(body: &mut Map<String, Value>) -> Mail {
    let from = body.remove("FromFull").unwrap_or_default();
    let recipients = list(body, "ToFull");
    let mut mail = Mail {
        message_id: text(body, "MessageID").trim().to_owned(),
        from: first([inner(&from, "Email"), text(body, "From")]),
        from_name: first([inner(&from, "Name"), text(body, "FromName")]),
        to: first_list([
            emails(&recipients),
            vec![text(body, "To")],
            vec![text(body, "OriginalRecipient")],
            emails(&list(body, "BccFull")),
        ]),
        cc: first_list([emails(&list(body, "CcFull")), vec![text(body, "Cc")]]),
        subject: text(body, "Subject"),
        text: text(body, "TextBody"),
        html: text(body, "HtmlBody"),
        stripped_text: text(body, "StrippedTextReply"),
        headers: list(body, "Headers").iter().map(|header| (inner(header, "Name"), inner(header, "Value"))).collect(),
        enclosures: list(body, "Attachments").into_iter().map(enclosure).collect(),
        ..Mail::default()
    };
    let hash = first([text(body, "MailboxHash"), recipients.first().map(|first| inner(first, "MailboxHash")).unwrap_or_default()]);
    if !hash.is_empty() {
        mail.metadata.insert("mailbox_hash".into(), json!(hash));
    }
    mail
}

/// The Check button writes `Data` where real mail has `Content`.
fn enclosure(mut value: Value) -> Enclosure {
    let content = [value["Content"].take(), value["Data"].take()].into_iter().find_map(|content| match content {
        Value::String(text) => Some(text),
        _ => None,
    });
    let kind = inner(&value, "ContentType");
    Enclosure {
        name: inner(&value, "Name"),
        content_type: if kind.is_empty() { "application/octet-stream".to_owned() } else { kind },
        content_id: Some(inner(&value, "ContentID")).filter(|id| !id.is_empty()),
        length: value.get("ContentLength").and_then(Value::as_u64).unwrap_or_default(),
        // A file that cannot be decoded is still listed.
        bytes: content.and_then(|content| BASE64.decode(content.as_bytes()).ok()),
    }
}

/// Removes a text and returns it; empty when it is missing or not a text.
fn text(body: &mut Map<String, Value>, name: &str) -> String {
    match body.remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

fn list(body: &mut Map<String, Value>, name: &str) -> Vec<Value> {
    match body.remove(name) {
        // Only objects have fields.
        Some(Value::Array(values)) => values.into_iter().filter(Value::is_object).collect(),
        _ => Vec::new(),
    }
}

fn emails(people: &[Value]) -> Vec<String> {
    people.iter().map(|person| inner(person, "Email")).collect()
}

/// A text inside an object; empty when it is missing or not a text.
fn inner(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The first text that is not empty.
fn first<const N: usize>(texts: [String; N]) -> String {
    texts.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default()
}

fn first_list<const N: usize>(lists: [Vec<String>; N]) -> Vec<String> {
    lists.into_iter().find(|list| list.iter().any(|text| !text.trim().is_empty())).unwrap_or_default()
}
