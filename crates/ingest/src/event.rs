//! What a request says, in the one shape the rest of the system knows.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One thing that happened, to become one `raw` activity.
#[derive(Debug, Clone)]
pub struct Event {
    pub kind: Kind,
    pub direction: Direction,
    /// `{source_type, content, subject?, sender?, format?}`
    pub raw_data: Map<String, Value>,
    pub metadata: Map<String, Value>,
    /// The same event delivered again has the same one; unique within its channel.
    pub external_id: String,
    /// Who is on the other end, for contact matching.
    pub sender: Option<Address>,
    /// Name the sender gave themselves, for a contact made from it.
    pub sender_name: Option<String>,
    /// Key of an earlier [`Memory`] that may know what this event lacks (`from`, `to`, `direction` of a recorded call).
    pub recall: Option<String>,
    /// Files that came with it; their bytes go to the file store, never into the row.
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

/// Somebody's address as the sender wrote it, sorted by what it is; `address` in normalised form.
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

/// Something a later event of the same channel will need (who was on a call whose recording comes by itself).
#[derive(Debug, Clone)]
pub struct Memory {
    pub key: String,
    pub value: Value,
    pub lifetime: Duration,
}
