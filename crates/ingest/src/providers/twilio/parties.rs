//! The two parties: numbers, WhatsApp users without one, Messenger ids, SIP addresses, and withheld callers.

use serde_json::{Map, Value, json};

use crate::address::phone;
use crate::{Address, Direction};

/// Channel prefixes that are not part of the address.
const CHANNELS: [&str; 3] = ["whatsapp", "messenger", "rcs"];
/// Prefixes that are part of the address: the rest has no meaning without them.
const SCHEMES: [&str; 2] = ["client", "sip"];

/// A party of a message or a call as Twilio writes it: `whatsapp:+14155550111`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Party<'a> {
    /// `whatsapp`, `messenger` or `rcs`; empty for the telephone network.
    pub channel: &'a str,
    /// The address without the channel.
    pub bare: &'a str,
}

impl<'a> Party<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        match text.split_once(':') {
            Some((channel, bare)) if CHANNELS.contains(&channel) => Self { channel, bare },
            _ => Self { channel: "", bare: text },
        }
    }

    /// `None` when the caller withheld their number: Twilio then sends a word spelt on a keypad, which may be another subscriber's
    /// number.
    pub(super) fn known(text: Option<&'a str>) -> Option<Self> {
        text.map(Self::of).filter(|party| !party.bare.is_empty() && !phone::is_withheld(party.bare))
    }

    /// For contact matching. A WhatsApp user who hides their number has an id that is not a phone number, even if it looks like
    /// one.
    pub(super) fn address(&self, region: &str) -> Option<Address> {
        let scheme = self.bare.split_once(':').map_or("", |(scheme, _)| scheme);
        if self.channel == "messenger" {
            return Some(Address::Other(format!("messenger:{}", self.bare)));
        }
        if SCHEMES.contains(&scheme) {
            return Some(Address::Other(self.bare.to_owned()));
        }
        match phone::normalise(self.bare, region) {
            Some(number) => Some(Address::Phone(number)),
            None if self.channel.is_empty() => None,
            None => Some(Address::Other(format!("{}:{}", self.channel, self.bare))),
        }
    }
}

/// Both parties, by role.
#[derive(Debug)]
pub(super) struct Parties<'a> {
    pub from: Option<Party<'a>>,
    pub to: Option<Party<'a>>,
    /// The number was withheld on purpose, which is different from a missing number.
    pub is_withheld: bool,
}

impl<'a> Parties<'a> {
    pub(super) fn new(from: Option<&'a str>, to: Option<&'a str>) -> Self {
        let known = Party::known(from);
        Self { from: known, to: Party::known(to), is_withheld: from.is_some() && known.is_none() }
    }

    /// The party that is not us.
    pub(super) fn other_end(&self, direction: Direction) -> Option<Party<'a>> {
        match direction {
            Direction::Inbound => self.from,
            Direction::Outbound => self.to,
        }
    }

    /// Whether either party is on this channel.
    pub(super) fn are_on(&self, channel: &str) -> bool {
        [self.from, self.to].into_iter().flatten().any(|party| party.channel == channel)
    }

    pub(super) fn describe(&self, metadata: &mut Map<String, Value>) {
        if let Some(from) = self.from {
            metadata.insert("from".into(), json!(from.bare));
        }
        if let Some(to) = self.to {
            metadata.insert("to".into(), json!(to.bare));
        }
        if self.is_withheld {
            metadata.insert("caller_id".into(), json!("withheld"));
        }
    }
}

#[cfg(test)]
mod tests;
