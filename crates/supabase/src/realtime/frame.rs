//! Frames of the socket, in both serialisations that clients use, and the binary form of broadcasts.

use serde_json::{Value, json};

/// `vsn` of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// Objects. The default of older clients and of clients in other languages.
    One,
    /// Arrays. The default of current clients.
    Two,
}

/// What a client sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    pub join_ref: Option<String>,
    pub reference: Option<String>,
    pub topic: String,
    pub event: String,
    pub payload: Value,
}

/// References are strings or null. Some clients send a number where they mean a string.
fn reference(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(super) fn decode(version: Version, text: &str) -> Option<Frame> {
    let value: Value = serde_json::from_str(text).ok()?;
    let (join_ref, own_ref, topic, event, payload) = match version {
        Version::Two => {
            let parts = value.as_array().filter(|parts| parts.len() == 5)?;
            (&parts[0], &parts[1], &parts[2], &parts[3], &parts[4])
        }
        Version::One => (
            value.get("join_ref").unwrap_or(&Value::Null),
            value.get("ref")?,
            value.get("topic")?,
            value.get("event")?,
            value.get("payload")?,
        ),
    };
    Some(Frame {
        join_ref: reference(Some(join_ref)),
        reference: reference(Some(own_ref)),
        topic: topic.as_str()?.to_owned(),
        event: event.as_str()?.to_owned(),
        payload: payload.clone(),
    })
}

/// A broadcast in binary: the byte 3, five lengths, the encoding, then the strings and the payload.
pub(super) fn decode_binary(bytes: &[u8]) -> Option<Frame> {
    let [3, join_ref, own_ref, topic, event, metadata, encoding, rest @ ..] = bytes else {
        return None;
    };
    let mut rest = rest;
    let mut take = |length: u8| -> Option<&str> {
        let (text, left) = rest.split_at_checked(length.into())?;
        rest = left;
        std::str::from_utf8(text).ok()
    };
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (join_ref, own_ref, topic, event) =
        (some(take(*join_ref)?), some(take(*own_ref)?), take(*topic)?.to_owned(), take(*event)?.to_owned());
    take(*metadata)?;
    // A payload that is not JSON cannot be put in the text frames its receivers get.
    let payload: Value = if *encoding == 1 { serde_json::from_slice(rest).ok()? } else { return None };
    Some(Frame {
        join_ref,
        reference: own_ref,
        topic,
        event: "broadcast".into(),
        payload: json!({"type": "broadcast", "event": event, "payload": payload}),
    })
}

/// A frame that we send. `payload` is already JSON, so that one text can be sent to many sockets.
pub(super) fn encode(version: Version, join_ref: Option<&str>, reference: Option<&str>, topic: &str, event: &str, payload: &str) -> String {
    let text = |value: &str| Value::from(value).to_string();
    let optional = |value: Option<&str>| value.map_or_else(|| "null".to_owned(), text);
    match version {
        Version::Two => format!("[{},{},{},{},{payload}]", optional(join_ref), optional(reference), text(topic), text(event)),
        Version::One => format!(
            "{{\"topic\":{},\"event\":{},\"payload\":{payload},\"ref\":{},\"join_ref\":{}}}",
            text(topic),
            text(event),
            optional(reference),
            optional(join_ref)
        ),
    }
}

#[cfg(test)]
mod tests;
