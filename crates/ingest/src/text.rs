//! Text as PostgreSQL can store it: `text` and `jsonb` refuse NUL, and `jsonb` refuses half a surrogate pair. A message with either
//! is still authentic and must be stored, so NUL is dropped and the half pair becomes U+FFFD.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::{Address, Event, draft};

/// Longer than any real address: 320 bytes for mail, 128 for a WhatsApp id.
const LONGEST_ADDRESS: usize = 512;

/// Drops NUL.
pub fn clean_text(text: &mut String) {
    if text.contains('\0') {
        text.retain(|character| character != '\0');
    }
}

/// Drops NUL from all texts and names in the value.
pub fn clean(value: &mut Value) {
    match value {
        Value::String(text) => clean_text(text),
        Value::Array(values) => values.iter_mut().for_each(clean),
        Value::Object(map) => clean_map(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// [`clean`] for the fields of an object.
pub fn clean_map(map: &mut Map<String, Value>) {
    map.values_mut().for_each(clean);
    if map.keys().any(|name| name.contains('\0')) {
        *map = std::mem::take(map)
            .into_iter()
            .map(|(mut name, value)| {
                clean_text(&mut name);
                (name, value)
            })
            .collect();
    }
}

impl Event {
    /// Makes all its texts storable.
    #[must_use]
    pub fn cleaned(mut self) -> Self {
        clean_map(&mut self.raw_data);
        clean_map(&mut self.metadata);
        // Both are indexed, and the size of an index entry is limited. A long id is replaced by its digest; a long address is not
        // real and is dropped.
        self.external_id = draft::stored_id(&self.external_id);
        self.sender = self.sender.filter(|sender| {
            let (Address::Email(text) | Address::Phone(text) | Address::Other(text)) = sender;
            !text.is_empty() && text.len() <= LONGEST_ADDRESS && !text.contains('\0')
        });
        self.sender_name.iter_mut().for_each(clean_text);
        for attachment in &mut self.attachments {
            clean_text(&mut attachment.name);
            clean_text(&mut attachment.content_type);
            attachment.content_id.iter_mut().for_each(clean_text);
        }
        self
    }
}

/// Parses JSON as senders write it. The parser refuses an escaped half of a surrogate pair (`"\ud83d"`, half an emoji cut off by a
/// length limit); here it becomes U+FFFD. It also refuses a byte order mark, which some senders write first; here it is skipped.
/// Everything else that is not JSON is an error, deep nesting included.
pub fn parse_json(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(&mend_surrogates(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)))
}

/// Replaces `\uD800`–`\uDFFF` escapes that are not part of a pair by `\ufffd`; borrowed when there are none.
fn mend_surrogates(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut mended = Cow::Borrowed(bytes);
    let mut at = 0;
    while let Some(offset) = bytes[at..].iter().position(|byte| *byte == b'\\') {
        at += offset;
        match escaped_unit(&bytes[at..]) {
            // A complete pair is left unchanged.
            Some(0xD800..=0xDBFF) if matches!(escaped_unit(&bytes[at + 6..]), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                mended.to_mut()[at..at + 6].copy_from_slice(b"\\ufffd");
                at += 6;
            }
            // Skips the backslash and what it escapes, which may be another backslash.
            _ => at = (at + 2).min(bytes.len()),
        }
    }
    mended
}

/// The UTF-16 unit of a `\uXXXX` escape at the start of these bytes.
fn escaped_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests;
