//! Text messages, with media and locations, over SMS, WhatsApp, RCS and Messenger.

use serde_json::{Map, json};

use super::fields::Fields;
use super::parties::{Parties, Party};
use crate::{Address, Direction, Event, Inbound, Kind, Memory, Refusal};

/// The names under which Twilio sends the same id, the newest first.
pub(super) const IDS: [&str; 3] = ["MessageSid", "SmsSid", "SmsMessageSid"];

/// The most media files. Twilio allows ten today.
const MOST_MEDIA: usize = 32;

pub(super) fn read(fields: &Fields, region: &str) -> Result<Inbound, Refusal> {
    let mut id = None;
    for name in IDS {
        id = id.or(fields.id(name, &["SM", "MM"])?);
    }
    let id = id.ok_or_else(|| Refusal::Malformed("MessageSid is missing".to_owned()))?;
    // The delivery status of a message we sent is not a message. Old accounts send it in SmsStatus alone.
    let status = fields.text("MessageStatus").or(fields.text("SmsStatus"));
    if status.is_some_and(|status| !matches!(status, "received" | "receiving")) {
        return Ok(Inbound::Nothing { remember: status.map(|status| receipt(fields, id, status)).into_iter().collect(), warning: None });
    }
    // Every message names both ends. A WhatsApp user who hides their number may be named by an id alone.
    fields.require_one(if fields.text("ExternalUserId").is_some() { &["To"] } else { &["From", "To"] })?;
    Ok(Inbound::Events { events: vec![event(fields, id, region)], remember: Vec::new() })
}

/// What became of a message we sent. Its final states are not left again; 21610 says that the recipient has opted out.
fn receipt(fields: &Fields, id: &str, status: &str) -> Memory {
    let code = fields.text("ErrorCode");
    let value = json!({
        "status": status,
        "detail": code.map(|code| format!("Twilio error {code}")),
        "final": matches!(status, "delivered" | "undelivered" | "failed" | "read" | "canceled"),
        "unwanted": code == Some("21610"),
    });
    Memory::receipt(id, value)
}

fn event(fields: &Fields, id: &str, region: &str) -> Event {
    let parties = Parties::new(fields.text("From"), fields.text("To"));
    // The id of a WhatsApp user who hides their number.
    let hidden = fields.text("ExternalUserId").map(|id| Party::of(id).bare);
    let kind = if parties.are_on("messenger") || parties.are_on("rcs") {
        Kind::Other
    } else if parties.are_on("whatsapp") || hidden.is_some() {
        Kind::Whatsapp
    } else {
        Kind::Sms
    };
    let sender = parties.from.and_then(|from| from.address(region)).or_else(|| Some(Address::Other(format!("whatsapp:{}", hidden?))));

    let numbered = |name: &str| (0..MOST_MEDIA).map_while(|n| fields.text(&format!("{name}{n}"))).collect::<Vec<_>>();
    let (urls, types) = (numbered("MediaUrl"), numbered("MediaContentType"));

    let mut metadata = Map::new();
    metadata.insert("message_sid".into(), json!(id));
    parties.describe(&mut metadata);
    let known = [
        ("profile_name", fields.text("ProfileName")),
        ("wa_id", fields.text("WaId")),
        ("external_user_id", hidden),
        ("button_text", fields.text("ButtonText")),
        ("button_payload", fields.text("ButtonPayload")),
        ("latitude", fields.text("Latitude")),
        ("longitude", fields.text("Longitude")),
    ];
    for (name, value) in known.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        metadata.insert(name.into(), json!(value));
    }
    let count = fields.text("NumMedia").and_then(|count| count.parse::<u32>().ok());
    metadata.insert("num_media".into(), count.map_or_else(|| json!(urls.len()), |count| json!(count)));
    metadata.insert("media_urls".into(), json!(urls));
    metadata.insert("media_types".into(), json!(types));

    let body = fields.text("Body").or(fields.text("ButtonText"));
    let raw_data = match (body, urls.first(), place(fields)) {
        (None, Some(url), _) => {
            json!({"source_type": "url", "content": url, "format": types.first().copied().unwrap_or("application/octet-stream")})
        }
        (None, None, Some(place)) => json!({"source_type": "text", "content": place}),
        (body, ..) => json!({"source_type": "text", "content": body.unwrap_or_default()}),
    };
    Event {
        kind,
        direction: Direction::Inbound,
        raw_data: raw_data.as_object().cloned().unwrap_or_default(),
        metadata,
        external_id: id.to_owned(),
        sender,
        sender_name: fields.text("ProfileName").map(str::to_owned),
        recall: None,
        attachments: Vec::new(),
    }
    .cleaned()
}

/// A shared location as text: its name, its address and its coordinates.
fn place(fields: &Fields) -> Option<String> {
    let point = format!("{},{}", fields.text("Latitude")?, fields.text("Longitude")?);
    let parts = [fields.text("Label"), fields.text("Address"), Some(point.as_str())];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join("\n"))
}
