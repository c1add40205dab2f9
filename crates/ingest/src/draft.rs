//! Builds an event, the same way for every provider.

use serde_json::{Map, Value};

use crate::{Address, Direction, Event, Kind, crypt};

/// Longer ids are stored as their digest, because the size of an index entry is limited.
const LONGEST_ID: usize = 255;

/// An inbound text event, to be completed by the caller.
pub fn message(kind: Kind, content: impl Into<String>) -> Event {
    let mut raw_data = Map::new();
    raw_data.insert("source_type".to_owned(), "text".into());
    raw_data.insert("content".to_owned(), Value::String(content.into()));
    Event {
        kind,
        direction: Direction::Inbound,
        raw_data,
        metadata: Map::new(),
        external_id: String::new(),
        sender: None,
        sender_name: None,
        recall: None,
        attachments: Vec::new(),
    }
}

/// Turns the event into one whose content is to be fetched.
pub fn at_url(event: &mut Event, url: impl Into<String>, format: Option<&str>) {
    event.raw_data.insert("source_type".to_owned(), "url".into());
    event.raw_data.insert("content".to_owned(), Value::String(url.into()));
    if let Some(format) = format {
        event.raw_data.insert("format".to_owned(), format.into());
    }
}

/// Adds a metadata entry, unless the value is empty.
pub fn note(event: &mut Event, name: &str, value: impl Into<Value>) {
    let value = value.into();
    if !(value.is_null() || value.as_str() == Some("")) {
        event.metadata.insert(name.to_owned(), value);
    }
}

/// Sets the sender: `from` for display and for contact matching alike.
pub fn sent_by(event: &mut Event, from: &str, sender: Option<Address>, name: Option<&str>) {
    note(event, "from", from);
    if !from.is_empty() {
        event.raw_data.insert("sender".to_owned(), from.into());
    }
    event.sender = sender;
    event.sender_name = name.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
}

/// Sets the event's id, and removes what PostgreSQL cannot store.
#[must_use]
pub fn finished(mut event: Event, external_id: &str) -> Event {
    event.external_id = stored_id(external_id);
    event.metadata.insert("external_id".to_owned(), event.external_id.clone().into());
    event.cleaned()
}

/// An id as it is stored: printable, short, and different for different ids.
pub fn stored_id(id: &str) -> String {
    if id.len() <= LONGEST_ID && !id.contains('\0') { id.to_owned() } else { digest(id.as_bytes()) }
}

/// The fallback id.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", crypt::fingerprint(bytes))
}
