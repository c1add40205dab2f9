//! Calls and their recordings. A recording arrives separately and does not name its parties, so the parties of a call are
//! remembered from the call's own webhooks.

use std::time::Duration;

use serde_json::{Map, json};

use super::fields::{Fields, is_id};
use super::parties::Parties;
use crate::crypt::fingerprint;
use crate::{Direction, Event, Inbound, Kind, Memory, Refusal};

/// Recordings of long conferences and retried callbacks can arrive days later.
const REMEMBERED_FOR: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// A call that rings, is answered or ends is acknowledged and remembered. Only a recording is processed.
pub(super) fn read_call(fields: &Fields, region: &str) -> Result<Inbound, Refusal> {
    let id = fields.id("CallSid", &["CA"])?.ok_or_else(|| Refusal::Malformed("CallSid is missing".to_owned()))?;
    fields.require_one(&["From", "To"])?;
    Ok(Inbound::Nothing { remember: remember(fields, id, region), warning: None })
}

pub(super) fn read_recording(fields: &Fields, region: &str) -> Result<Inbound, Refusal> {
    let call = fields.id("CallSid", &["CA"])?;
    let conference = fields.id("ConferenceSid", &["CF"])?;
    let recording = fields.id("RecordingSid", &["RE"])?;
    let remember = call.map(|call| remember(fields, call, region)).unwrap_or_default();
    // In progress, failed, or of silence ("absent"): there is nothing to listen to.
    if fields.text("RecordingStatus").is_some_and(|status| status != "completed") {
        return Ok(Inbound::Nothing { remember, warning: None });
    }
    let url = fields.text("RecordingUrl").filter(|url| url.starts_with("https://") || url.starts_with("http://"));
    let url = url.ok_or_else(|| Refusal::Malformed("RecordingUrl is missing or no URL".to_owned()))?;
    let path = url.split(['?', '#']).next().unwrap_or(url);

    let parties = Parties::new(fields.text("From"), fields.text("To"));
    let mut metadata = Map::new();
    parties.describe(&mut metadata);
    let known = [
        ("call_sid", call),
        ("conference_sid", conference),
        ("recording_sid", recording),
        ("duration", fields.text("RecordingDuration")),
        // Decrypting needs the customer's private key, together with these details.
        ("encryption", fields.text("EncryptionDetails")),
    ];
    for (name, value) in known.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        metadata.insert(name.into(), json!(value));
    }
    let format = if path.to_ascii_lowercase().ends_with(".mp3") { "audio/mpeg" } else { "audio/wav" };
    let raw_data = json!({"source_type": "url", "content": url, "format": format});
    let is_told = ["From", "To", "Direction"].iter().all(|name| fields.text(name).is_some());
    let direction = direction(fields);
    let event = Event {
        kind: Kind::Call,
        direction,
        raw_data: raw_data.as_object().cloned().unwrap_or_default(),
        metadata,
        external_id: recording.map_or_else(|| recording_of(path), str::to_owned),
        sender: parties.other_end(direction).and_then(|party| party.address(region)),
        sender_name: None,
        recall: call.filter(|_| !is_told).map(key),
        attachments: Vec::new(),
    };
    Ok(Inbound::Events { events: vec![event.cleaned()], remember })
}

/// The id in the recording's own URL, or the URL itself.
fn recording_of(path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or(path);
    let name = last.split('.').next().unwrap_or(last);
    if is_id(name, &["RE"]) { name.to_owned() } else { fingerprint(path.as_bytes()) }
}

fn remember(fields: &Fields, call: &str, region: &str) -> Vec<Memory> {
    // A bare recording callback has no parties, and must not replace those of the call.
    if fields.text("From").is_none() && fields.text("To").is_none() {
        return Vec::new();
    }
    let parties = Parties::new(fields.text("From"), fields.text("To"));
    let direction = direction(fields);
    let mut value = Map::new();
    parties.describe(&mut value);
    value.insert("direction".into(), json!(direction));
    if let Some(sender) = parties.other_end(direction).and_then(|party| party.address(region)) {
        value.insert("sender".into(), json!(sender));
    }
    crate::text::clean_map(&mut value);
    vec![Memory { key: key(call), value: value.into(), lifetime: REMEMBERED_FOR }]
}

fn key(call: &str) -> String {
    format!("call:{call}")
}

fn direction(fields: &Fields) -> Direction {
    let is_outbound = fields.text("Direction").is_some_and(|direction| direction.starts_with("outbound"));
    if is_outbound { Direction::Outbound } else { Direction::Inbound }
}
