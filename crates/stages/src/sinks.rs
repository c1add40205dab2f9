//! Where a message to a person goes: an HTTP endpoint, mail, Telegram, Twilio, or a command.
//!
//! A sink says not only whether it failed but whether the message may have been sent all the same: a lost answer is not a refusal.

mod command;
mod http;
mod smtp;
mod telegram;
mod twilio;

use std::time::Duration;

use async_trait::async_trait;
use gleaner::Failure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::command::Command;
pub use self::http::Http;
pub use self::smtp::Smtp;
pub use self::telegram::Telegram;
pub use self::twilio::Twilio;

/// Failures of sending.
pub const SENDING: &str = "SendingError";
/// It is unknown whether the message was sent.
pub const UNKNOWN: &str = "OutcomeUnknown";

/// What is sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    /// The name of the sink.
    pub sink: String,
    /// The address, as the sink understands it.
    pub to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub text: String,
    /// The channel it is sent through, if it is one that messages come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// What else a sink understands: `in_reply_to` of a mail, `url` of an HTTP endpoint, `content_sid` of a template.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Message {
    fn extra(&self, name: &str) -> Option<&str> {
        self.extra.get(name).and_then(Value::as_str)
    }
}

/// The other side has the message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sent {
    /// Its id there.
    pub message_id: Option<String>,
    /// The id under which receipts come back, if it is another.
    pub receipt_id: Option<String>,
    /// What else the other side said.
    pub answer: Value,
}

/// Why a message was not sent, as far as one can tell.
#[derive(Debug, Clone, PartialEq)]
pub enum NotSent {
    /// It certainly was not. The failure says whether to try again.
    Refused(Failure),
    /// Unknown: the connection broke, or the time was up, after the message had been handed over.
    Unknown(Failure),
    /// It was not, and never will be: the person has blocked us or opted out.
    Unwanted(String),
}

#[async_trait]
pub trait Sink: std::fmt::Debug + Send + Sync {
    /// Sends the message. `key` is the same for every try of the same message.
    async fn send(&self, key: &str, message: &Message, within: Duration) -> Result<Sent, NotSent>;

    /// Whether the other side recognises a repeated key, so that a second try cannot become a second message.
    fn knows_keys(&self) -> bool {
        false
    }
}

fn refused(message: impl Into<String>) -> NotSent {
    NotSent::Refused(Failure::new(message).category(SENDING))
}

/// Refused, and a second try would be too.
fn refused_for_good(message: impl Into<String>) -> NotSent {
    NotSent::Refused(Failure::new(message).category(SENDING).for_good())
}

fn unknown(message: impl Into<String>) -> NotSent {
    NotSent::Unknown(Failure::new(message).category(UNKNOWN))
}

/// A request that was not answered. Only a connection that was never made is certain.
fn unanswered(what: &str, error: reqwest::Error) -> NotSent {
    let never = error.is_connect() || error.is_builder();
    let failure = crate::failure::of_request(SENDING, what, error);
    if never { NotSent::Refused(failure) } else { NotSent::Unknown(failure.category(UNKNOWN)) }
}

/// A response that is no success. What a proxy or a failing server says leaves open what became of the message.
fn answered(what: &str, status: ::http::StatusCode, headers: &::http::HeaderMap, body: &str) -> NotSent {
    let failure = crate::failure::of_status(SENDING, what, status, headers, body);
    match status.as_u16() {
        500 | 502 | 504 | 520..=530 | 408 => NotSent::Unknown(failure.category(UNKNOWN)),
        _ => NotSent::Refused(failure),
    }
}

/// The body of a response, up to a bound; what is beyond is of no use in a result.
async fn read(mut response: reqwest::Response) -> String {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece);
        if body.len() > 64 * 1024 {
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}
