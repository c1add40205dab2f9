//! The trait of a sender. To add one, add a file under [`crate::providers`] and its test vectors.

use http::{HeaderMap, Method};
use uuid::Uuid;

use crate::{Answer, Channel, Event, Memory, Refusal, Request};

pub trait Provider: std::fmt::Debug + Send + Sync {
    /// The value of `ingestion_providers.provider_code`.
    fn code(&self) -> &'static str;

    /// For display: `Twilio`.
    fn title(&self) -> &'static str;

    /// The settings of a channel of this provider, in addition to those every channel has.
    fn settings(&self) -> &'static [Setting];

    /// What is wrong with these settings, each with how to correct it; empty when they will work.
    /// Unknown and missing names are found by [`crate::providers::check`], which calls this.
    fn check(&self, channel: &Channel) -> Vec<String> {
        let _ = channel;
        Vec::new()
    }

    /// Warnings about settings that work but have a risk. They are shown when the channel is created or displayed.
    fn cautions(&self, channel: &Channel) -> Vec<String> {
        let _ = channel;
        Vec::new()
    }

    /// The largest body in bytes.
    fn body_limit(&self, channel: &Channel) -> usize {
        let _ = channel;
        1024 * 1024
    }

    /// Whether the request comes from the provider. Does not interpret the body. Fails closed.
    fn verify(&self, channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal>;

    /// Parses the request. Called only after [`Self::verify`], with the same bytes, and again when an event is replayed.
    fn normalise(&self, channel: &Channel, request: &Request<'_>) -> Result<Inbound, Refusal>;

    /// The response once everything is durable.
    fn acknowledge(&self, outcome: &Outcome<'_>) -> Answer {
        crate::providers::accepted(outcome)
    }

    /// The response to a refused request.
    fn refuse(&self, refusal: &Refusal) -> Answer {
        crate::providers::refused(refusal)
    }

    /// A small event, signed as the provider would sign it for `url` at this time. `gleaner channels test` sends it.
    fn sample(&self, channel: &Channel, url: &str, unix_now: i64) -> Result<Sample, String> {
        self.compose(channel, url, unix_now, &Message::default())
    }

    /// The same with a message. `gleaner up --demo` sends some.
    fn compose(&self, channel: &Channel, url: &str, unix_now: i64, message: &Message<'_>) -> Result<Sample, String>;
}

/// What a sample says, and who says it. Each provider sends the parts that it knows, and fills in those that are missing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Message<'a> {
    pub name: Option<&'a str>,
    pub email: Option<&'a str>,
    /// In E.164.
    pub phone: Option<&'a str>,
    pub subject: Option<&'a str>,
    pub text: Option<&'a str>,
    /// Distinguishes messages of the same second.
    pub id: Option<&'a str>,
}

impl Message<'_> {
    pub(crate) fn name(&self) -> &str {
        self.name.unwrap_or("Gleaner sample")
    }

    pub(crate) fn email(&self) -> &str {
        self.email.unwrap_or("sample@example.com")
    }

    pub(crate) fn subject(&self) -> &str {
        self.subject.unwrap_or("Sample")
    }

    pub(crate) fn text(&self) -> &str {
        self.text.unwrap_or("A sample from Gleaner: this channel works.")
    }

    /// What makes the event's id its own.
    pub(crate) fn id(&self, unix_now: i64) -> String {
        self.id.map_or_else(|| unix_now.to_string(), |id| format!("{unix_now}-{id}"))
    }
}

/// One setting of a channel.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub name: &'static str,
    /// Encrypted at rest and masked when displayed.
    pub secret: bool,
    pub required: bool,
    /// One line for `gleaner channels providers`.
    pub about: &'static str,
}

/// The request is authentic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// A signed one-time token that must not have been used before, and for how long to remember it.
    pub once: Option<(String, std::time::Duration)>,
    /// A hash of the content, where the signature does not cover it: with the same token, only the same content may be sent again.
    pub said: Option<String>,
    /// A message for the operator although the request was accepted.
    pub warning: Option<String>,
}

/// The result of parsing a request.
#[derive(Debug, Clone)]
pub enum Inbound {
    /// Events to store. One request may contain several.
    Events { events: Vec<Event>, remember: Vec<Memory> },
    /// Authentic, with nothing to queue (a status callback, the provider's own check).
    Nothing { remember: Vec<Memory>, warning: Option<String> },
    /// The provider expects exactly this response (a subscription handshake).
    Reply(Answer),
    /// There is something to fetch from the provider.
    Fetch,
}

/// The result of an accepted request.
#[derive(Debug, Clone)]
pub struct Outcome<'a> {
    pub stored: &'a [Stored],
}

/// One event that is durably stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub id: Uuid,
    /// False for a redelivery. The id is then that of the first delivery.
    pub fresh: bool,
}

/// A request ready to be sent to our own webhook endpoint.
#[derive(Debug, Clone)]
pub struct Sample {
    pub method: Method,
    /// The full URL, as given or with what the provider appends to it.
    pub url: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}
