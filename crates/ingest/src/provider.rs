//! The contract of a sender. Adding one is adding a file under [`crate::providers`] and its vectors.

use http::{HeaderMap, Method};
use uuid::Uuid;

use crate::{Answer, Channel, Event, Memory, Refusal, Request};

pub trait Provider: std::fmt::Debug + Send + Sync {
    /// What `ingestion_providers.provider_code` says.
    fn code(&self) -> &'static str;

    /// For people: `Twilio`.
    fn title(&self) -> &'static str;

    /// The settings of a channel of this provider, beside those every channel has.
    fn settings(&self) -> &'static [Setting];

    /// What is wrong with these settings, each with what to write instead; nothing when they will work.
    /// Unknown and missing names are found by [`crate::providers::check`], which calls this.
    fn check(&self, channel: &Channel) -> Vec<String> {
        let _ = channel;
        Vec::new()
    }

    /// What works and should yet be known before it is relied on: told to whoever makes or looks at the channel.
    fn cautions(&self, channel: &Channel) -> Vec<String> {
        let _ = channel;
        Vec::new()
    }

    /// Bytes of body to read at most.
    fn body_limit(&self, channel: &Channel) -> usize {
        let _ = channel;
        1024 * 1024
    }

    /// Does this come from the provider? Reads nothing of the body's meaning, fails closed.
    fn verify(&self, channel: &Channel, request: &Request<'_>) -> Result<Verified, Refusal>;

    /// What does it say? Called only after [`Self::verify`], with the same bytes; and again when an event is replayed.
    fn normalise(&self, channel: &Channel, request: &Request<'_>) -> Result<Inbound, Refusal>;

    /// What the provider needs to hear once everything is durable.
    fn acknowledge(&self, outcome: &Outcome<'_>) -> Answer {
        crate::providers::accepted(outcome)
    }

    /// What the provider needs to hear when the request is refused.
    fn refuse(&self, refusal: &Refusal) -> Answer {
        crate::providers::refused(refusal)
    }

    /// A small event, signed as the provider would sign it for `url` at this time; `gleaner channels test` sends it.
    fn sample(&self, channel: &Channel, url: &str, unix_now: i64) -> Result<Sample, String>;
}

/// One setting of a channel.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub name: &'static str,
    /// Sealed at rest and masked when read.
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
    /// What the request said, as a hash, where the signature does not cover it: with the same token, only the same may come again.
    pub said: Option<String>,
    /// Something the operator should know although the request was let in.
    pub warning: Option<String>,
}

/// What a request amounts to.
#[derive(Debug, Clone)]
pub enum Inbound {
    /// To be stored; one request may bring several.
    Events { events: Vec<Event>, remember: Vec<Memory> },
    /// Authentic, and nothing to queue (a status callback, the provider's own check).
    Nothing { remember: Vec<Memory>, warning: Option<String> },
    /// The provider expects this very answer (a subscription handshake).
    Reply(Answer),
    /// Something is waiting at the provider: fetch it.
    Fetch,
}

/// What became of a request that was let in.
#[derive(Debug, Clone)]
pub struct Outcome<'a> {
    pub stored: &'a [Stored],
}

/// One event, durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub id: Uuid,
    /// False for a redelivery: the id is then the first one's.
    pub fresh: bool,
}

/// A request ready to be sent to our own door.
#[derive(Debug, Clone)]
pub struct Sample {
    pub method: Method,
    /// The full URL, as given or with what the provider appends to it.
    pub url: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}
