//! The envelope a sender may use: `type`, `direction`, `content` or `url`, `subject`, `from` or `sender`, `to`, `external_id`, `metadata`.

use serde_json::{Map, Value};

use super::shape::Shape;
use crate::address::{email, phone};
use crate::{Address, Channel, Direction, Event, Kind, Refusal, draft};

/// Metadata names with a meaning in our system: a sender that could write them could fake a match, an error, or a file that is not
/// its own.
const RESERVED: &[&str] = &[
    "attachments",
    "attachments_count",
    "error",
    "external_id",
    "match",
    "media",
    "media_urls",
    "num_media",
    "recovery_count",
    "retry_count",
];

/// The event in the body, and the id that the body gives itself. A body that is not an envelope is kept whole, as text.
pub(super) fn read(shape: &Shape, channel: &Channel) -> Result<(Event, Option<String>), Refusal> {
    let fields = &shape.fields;
    let (content, url) = (text_of(fields, "content"), text_of(fields, "url"));
    if content.is_none() && url.is_none() {
        return Ok((draft::message(Kind::Other, shape.text.as_str()), external_id(fields)?));
    }

    let kind = word(fields, "type", "email, call, sms, meeting, note, task, whatsapp or other")?.unwrap_or(Kind::Other);
    let mut event = draft::message(kind, content.unwrap_or_default());
    event.direction = word(fields, "direction", "inbound or outbound")?.unwrap_or_default();
    event.metadata = metadata(fields)?;
    if let Some(url) = url {
        if !(url.starts_with("https://") || url.starts_with("http://")) {
            return Err(Refusal::Malformed("url must begin with https:// or http://".to_owned()));
        }
        match content {
            None => draft::at_url(&mut event, url, text_of(fields, "format")),
            Some(_) => draft::note(&mut event, "url", url),
        }
    }
    if let Some(subject) = optional(fields, "subject")? {
        event.raw_data.insert("subject".to_owned(), subject.into());
    }
    recipients(&mut event, fields)?;

    let sender = optional(fields, "from")?.or(optional(fields, "sender")?).map(str::to_owned);
    let from = sender.or_else(|| text_of(&event.metadata, "from").map(str::to_owned)).unwrap_or_default();
    let to = text_of(&event.metadata, "to").unwrap_or_default().to_owned();
    // The contact is the other party: the recipient, when the message is outbound.
    let other_end = if event.direction == Direction::Outbound && !to.is_empty() { &to } else { &from };
    let (address, name) = (address(other_end, channel), display_name(other_end));
    draft::sent_by(&mut event, &from, address, name.as_deref());
    Ok((event, external_id(fields)?))
}

fn text_of<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}

/// A text that may be missing but may not have another type.
fn optional<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Refusal> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Refusal::Malformed(format!("{name} must be text"))),
    }
}

/// One of the known values. Any other is an error that is reported to the sender, and is never stored.
fn word<T: serde::de::DeserializeOwned>(fields: &Map<String, Value>, name: &str, known: &str) -> Result<Option<T>, Refusal> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => serde_json::from_value(value.clone()).map(Some).map_err(|_| Refusal::Malformed(format!("{name} must be {known}"))),
    }
}

fn metadata(fields: &Map<String, Value>) -> Result<Map<String, Value>, Refusal> {
    match fields.get("metadata") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(given)) => {
            // Storing removes NUL, so a name with a NUL in it would become another name.
            let ours = |name: &str| RESERVED.contains(&name.replace('\0', "").as_str());
            Ok(given.iter().filter(|(name, _)| !ours(name)).map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        Some(_) => Err(Refusal::Malformed("metadata must be an object".to_owned())),
    }
}

/// `to`: one address, or a list whose first entry is treated as one.
fn recipients(event: &mut Event, fields: &Map<String, Value>) -> Result<(), Refusal> {
    match fields.get("to") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(one)) => {
            draft::note(event, "to", one.as_str());
            Ok(())
        }
        Some(Value::Array(all)) if all.iter().all(Value::is_string) => {
            draft::note(event, "to", all.first().cloned().unwrap_or_default());
            if all.len() > 1 {
                draft::note(event, "recipients", all.clone());
            }
            Ok(())
        }
        Some(_) => Err(Refusal::Malformed("to must be text or a list of texts".to_owned())),
    }
}

fn external_id(fields: &Map<String, Value>) -> Result<Option<String>, Refusal> {
    match fields.get("external_id") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => Ok(Some(id.trim().to_owned()).filter(|id| !id.is_empty())),
        Some(Value::Number(id)) => Ok(Some(id.to_string())),
        Some(_) => Err(Refusal::Malformed("external_id must be text or a number".to_owned())),
    }
}

fn address(text: &str, channel: &Channel) -> Option<Address> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let found = email::normalise(text).map(Address::Email);
    let found = found.or_else(|| phone::normalise(text, channel.default_region()).map(Address::Phone));
    // An address that cannot be parsed may still be the same one next time. A sentence is not an address.
    found.or_else(|| (text.len() <= 255 && !text.contains(char::is_whitespace)).then(|| Address::Other(text.replace('\0', ""))))
}

/// `John` of `John <john@example.com>`.
fn display_name(text: &str) -> Option<String> {
    let (name, _) = text.split_once('<')?;
    Some(name.trim().trim_matches('"').to_owned()).filter(|name| !name.is_empty())
}
