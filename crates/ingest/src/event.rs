//! The content of a request, in the one form that the rest of the system uses.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One event, which becomes one `raw` activity.
#[derive(Debug, Clone)]
pub struct Event {
    pub kind: Kind,
    pub direction: Direction,
    /// `{source_type, content, subject?, sender?, format?}`
    pub raw_data: Map<String, Value>,
    pub metadata: Map<String, Value>,
    /// A redelivery of the same event has the same id. Unique within its channel.
    pub external_id: String,
    /// The other party, for contact matching.
    pub sender: Option<Address>,
    /// The name the sender gave, for a contact created from it.
    pub sender_name: Option<String>,
    /// Key of an earlier [`Memory`] that may have what this event lacks (`from`, `to`, `direction` of a recorded call).
    pub recall: Option<String>,
    /// Attached files. Their bytes go to the file store, never into the row.
    pub attachments: Vec<Attachment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Email,
    Call,
    Sms,
    Meeting,
    Note,
    Task,
    Whatsapp,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    #[default]
    Inbound,
    Outbound,
}

/// An address as the sender wrote it, by its type; `address` is normalised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "address", rename_all = "lowercase")]
pub enum Address {
    Email(String),
    Phone(String),
    /// An id that only its provider understands (a Telegram chat, a business-scoped WhatsApp user): `telegram:123`.
    Other(String),
}

/// A file inside a message.
#[derive(Debug, Clone)]
pub struct Attachment {
    pub name: String,
    pub content_type: String,
    pub content_id: Option<String>,
    pub bytes: Vec<u8>,
}

/// Data that a later event of the same channel will need (the parties of a call whose recording arrives separately).
#[derive(Debug, Clone)]
pub struct Memory {
    pub key: String,
    pub value: Value,
    pub lifetime: Duration,
}

impl Memory {
    /// What a provider reports about the message that it knows under this id: `{status, detail?, final, unwanted}`. The database
    /// keeps it with the message.
    pub(crate) fn receipt(id: &str, value: Value) -> Self {
        Self { key: format!("receipt:{id}"), value, lifetime: Duration::from_secs(30 * 24 * 3600) }
    }
}
