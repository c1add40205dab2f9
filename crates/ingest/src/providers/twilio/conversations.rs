//! Messages of Twilio Conversations, whose webhooks are sent as a form or as JSON.

use serde_json::{Map, json};

use super::fields::{Fields, Source};
use super::parties::Parties;
use super::signature::signed_fields;
use crate::crypt::fingerprint;
use crate::{Address, Direction, Event, Inbound, Kind, Refusal};

/// The only `EventType` with a message. The others report changes of the conversation.
pub(super) const MESSAGE_ADDED: &str = "onMessageAdded";

pub(super) fn read(fields: &Fields, body: &[u8], region: &str) -> Result<Inbound, Refusal> {
    let id = fields.id("MessageSid", &["IM"])?;
    let parties = Parties::new(fields.text("Author"), None);
    let source = fields.text("Source").unwrap_or_default();
    let kind = if parties.are_on("whatsapp") || source.eq_ignore_ascii_case("whatsapp") {
        Kind::Whatsapp
    } else if source.eq_ignore_ascii_case("sms") {
        Kind::Sms
    } else {
        Kind::Other
    };

    let mut metadata = Map::new();
    parties.describe(&mut metadata);
    let known = [("message_sid", id), ("conversation_sid", fields.id("ConversationSid", &["CH"])?), ("media", fields.text("Media"))];
    for (name, value) in known.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        metadata.insert(name.into(), json!(value));
    }
    let raw_data = json!({"source_type": "text", "content": fields.text("Body").unwrap_or_default()});
    // Without an id, the signed content serves as the id. Of a form not the bytes are signed, only the fields.
    let external_id = id.map(str::to_owned).unwrap_or_else(|| match fields.source {
        Source::Json => fingerprint(body),
        Source::Form | Source::Query => fingerprint(signed_fields(fields.pairs()).as_bytes()),
    });
    let event = Event {
        kind,
        direction: Direction::Inbound,
        raw_data: raw_data.as_object().cloned().unwrap_or_default(),
        metadata,
        external_id,
        sender: parties.from.and_then(|author| author.address(region)).filter(is_reachable),
        sender_name: None,
        recall: None,
        attachments: Vec::new(),
    };
    Ok(Inbound::Events { events: vec![event.cleaned()], remember: Vec::new() })
}

/// An author may be a chat identity, which is not an address.
fn is_reachable(address: &Address) -> bool {
    matches!(address, Address::Phone(number) if number.starts_with('+')) || matches!(address, Address::Other(_))
}
