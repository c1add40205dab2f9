//! What all mail has in common, whichever provider delivered it: the author, the body to use, the attachments.
//!
//! A provider fills a [`Mail`] with what it received, unchanged, and turns it into an event. [`Mail::parse`] fills one from the raw
//! message, for providers that deliver it raw.

mod address;
mod html;
mod message;

pub use address::{Mailbox, decode_words, mailboxes};
pub use html::html_to_text;

use serde_json::{Map, Value, json};

use crate::address::email;
use crate::{Address, Attachment, Direction, Event, Kind};

/// A mail as its provider describes it. Missing fields stay empty.
#[derive(Debug, Clone, Default)]
pub struct Mail {
    /// The provider's own id, which identifies a redelivery.
    pub message_id: String,
    /// Its `Message-ID`; looked up in the headers when left empty.
    pub rfc_message_id: String,
    /// A bare address, or one with a display name.
    pub from: String,
    pub from_name: String,
    /// Each a bare address, one with a display name, or a list.
    pub to: Vec<String>,
    pub cc: Vec<String>,
    pub subject: String,
    pub text: String,
    pub html: String,
    /// The reply without quoted text, if the provider extracted it.
    pub stripped_text: String,
    /// In the order of the mail: the topmost were added last, by the servers nearest to us.
    pub headers: Vec<(String, String)>,
    pub enclosures: Vec<Enclosure>,
    /// Data that only this provider has, for the event's metadata.
    pub metadata: Map<String, Value>,
}

/// A file attached to a mail, with its bytes if they were delivered.
#[derive(Debug, Clone, Default)]
pub struct Enclosure {
    pub name: String,
    pub content_type: String,
    pub content_id: Option<String>,
    /// The length as the provider gives it. If there are bytes, their length counts.
    pub length: u64,
    pub bytes: Option<Vec<u8>>,
}

impl Mail {
    /// The first header of this name. Providers put their own on top, so a forged one further down is ignored.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The content: the plain text, else the text of the HTML, else nothing.
    pub fn content(&self) -> String {
        if self.text.trim().is_empty() { html_to_text(&self.html) } else { self.text.clone() }
    }

    pub fn into_event(mut self) -> Event {
        // The n-th stored file is the n-th in the list. Those without bytes are listed after them.
        self.enclosures.sort_by_key(|enclosure| enclosure.bytes.is_none());
        let author = mailboxes(&self.from).into_iter().next();
        let sender = email::normalise(&self.from);
        let written = sender.clone().or_else(|| author.as_ref().map(|author| author.address.to_lowercase()));

        let mut raw_data = Map::new();
        raw_data.insert("source_type".into(), json!("text"));
        raw_data.insert("content".into(), json!(self.content()));
        raw_data.insert("subject".into(), json!(decode_words(&self.subject)));
        if let Some(written) = &written {
            raw_data.insert("sender".into(), json!(written));
        }

        let metadata = self.describe(written);
        let name = Some(std::mem::take(&mut self.from_name)).filter(|name| !name.trim().is_empty());
        Event {
            kind: Kind::Email,
            direction: Direction::Inbound,
            raw_data,
            metadata,
            external_id: self.message_id,
            sender: sender.map(Address::Email),
            sender_name: name.or_else(|| author.and_then(|author| author.name)).map(|name| decode_words(name.trim())),
            recall: None,
            attachments: self.enclosures.into_iter().filter_map(Enclosure::into_attachment).collect(),
        }
        .cleaned()
    }

    /// Whether a program wrote it: a bounce, an absence note, a mailing list (RFC 3834). No person has answered then.
    fn is_automatic(&self) -> bool {
        let says = |name: &str, words: &[&str]| {
            self.header(name).is_some_and(|value| words.iter().any(|word| value.to_ascii_lowercase().starts_with(word)))
        };
        self.header("auto-submitted").is_some_and(|value| !value.is_empty() && !value.to_ascii_lowercase().starts_with("no"))
            || says("precedence", &["bulk", "list", "junk", "auto_reply"])
            || says("x-autoreply", &["yes"])
            || self.header("x-auto-response-suppress").is_some_and(|value| !value.is_empty())
            || self.header("return-path") == Some("<>")
            || says("content-type", &["multipart/report"])
    }

    fn describe(&mut self, from: Option<String>) -> Map<String, Value> {
        let mut metadata = std::mem::take(&mut self.metadata);
        let mut put = |name: &str, value: Value| {
            metadata.insert(name.to_owned(), value);
        };
        put("message_id", json!(self.message_id));
        let rfc_message_id = Some(self.rfc_message_id.trim()).filter(|id| !id.is_empty()).or_else(|| self.header("message-id"));
        if let Some(id) = rfc_message_id.filter(|id| !id.is_empty()) {
            put("rfc_message_id", json!(id));
        }
        if let Some(from) = from {
            put("from", json!(from));
        }
        if let Some(to) = bare(&self.to).into_iter().next() {
            put("to", json!(to));
        }
        put("cc", json!(bare(&self.cc)));
        if !self.stripped_text.trim().is_empty() {
            put("stripped_text", json!(self.stripped_text));
        }
        if let Some(status) = self.header("x-spam-status").filter(|status| !status.is_empty()) {
            put("spam", json!(status.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("yes"))));
        }
        if self.is_automatic() {
            put("automatic", json!(true));
        }
        if let Some(score) = self.header("x-spam-score").filter(|score| !score.is_empty()) {
            put("spam_score", json!(score));
        }
        put("attachments_count", json!(self.enclosures.len()));
        put("attachments", self.enclosures.iter().map(Enclosure::describe).collect());
        metadata
    }
}

impl Enclosure {
    fn describe(&self) -> Value {
        let length = self.bytes.as_ref().map_or(self.length, |bytes| bytes.len() as u64);
        let mut described = json!({"name": self.name, "content_type": self.content_type, "length": length});
        if let Some(id) = &self.content_id {
            described["content_id"] = json!(id);
        }
        described
    }

    fn into_attachment(self) -> Option<Attachment> {
        let Self { name, content_type, content_id, bytes, .. } = self;
        bytes.map(|bytes| Attachment { name, content_type, content_id, bytes })
    }
}

/// Every address of these lists without its display name.
fn bare(lists: &[String]) -> Vec<String> {
    lists.iter().flat_map(|list| mailboxes(list)).map(|mailbox| mailbox.address).collect()
}

#[cfg(test)]
mod tests;
