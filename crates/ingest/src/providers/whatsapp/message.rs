//! One message, of any of many kinds.

use serde_json::{Value, json};

use crate::address::phone;
use crate::{Address, Channel, Event, Kind, draft};

/// Kinds of message whose content stays at Meta until it is fetched by its id.
const MEDIA: &[&str] = &["image", "audio", "video", "document", "sticker", "voice"];

/// Converts a message to an event. `value` is the change that contains it, which has names and our own number.
pub(super) fn event(message: &Value, value: &Value, channel: &Channel) -> Event {
    let kind = message["type"].as_str().unwrap_or_default();
    let mut event = draft::message(Kind::Whatsapp, content(kind, message));
    from(&mut event, message, value, channel);
    draft::note(&mut event, "to", international(value["metadata"]["display_phone_number"].as_str().unwrap_or_default()));
    draft::note(&mut event, "phone_number_id", value["metadata"]["phone_number_id"].clone());
    draft::note(&mut event, "message_type", kind);
    draft::note(&mut event, "timestamp", message["timestamp"].clone());
    draft::note(&mut event, "reply_to", message["context"]["id"].clone());
    if kind == "reaction" {
        draft::note(&mut event, "reply_to", message["reaction"]["message_id"].clone());
    }
    if kind == "location" {
        draft::note(&mut event, "latitude", message["location"]["latitude"].clone());
        draft::note(&mut event, "longitude", message["location"]["longitude"].clone());
    }
    media(&mut event, kind, message);

    let id = message["id"].as_str().filter(|id| !id.is_empty());
    draft::note(&mut event, "message_id", id.unwrap_or_default());
    // Without an id (Meta always gives one) a digest of the message identifies it.
    let id = id.map_or_else(|| draft::digest(message.to_string().as_bytes()), str::to_owned);
    draft::finished(event, &id)
}

/// The content as text.
fn content(kind: &str, message: &Value) -> String {
    let part = &message[kind];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match kind {
        "text" => text(&part["body"]),
        "button" => text(&part["text"]),
        "interactive" => {
            let reply = &part[part["type"].as_str().unwrap_or_default()];
            // A completed form is sent as JSON in a text. A pressed button or a chosen list row has a title.
            [&reply["title"], &reply["body"], &reply["response_json"]].into_iter().find_map(Value::as_str).unwrap_or_default().to_owned()
        }
        "reaction" => text(&part["emoji"]),
        "location" => location(part),
        "contacts" => part.as_array().into_iter().flatten().map(contact).collect::<Vec<_>>().join("\n"),
        "system" => text(&part["body"]),
        _ if MEDIA.contains(&kind) => text(&part["caption"]),
        _ => String::new(),
    }
}

fn location(part: &Value) -> String {
    let mut lines: Vec<_> = [&part["name"], &part["address"]].into_iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if part["latitude"].is_number() && part["longitude"].is_number() {
        lines.push(format!("{},{}", part["latitude"], part["longitude"]));
    }
    lines.join("\n")
}

/// A forwarded contact card: name and numbers.
fn contact(card: &Value) -> String {
    let name = card["name"]["formatted_name"].as_str().into_iter();
    let numbers = card["phones"].as_array().into_iter().flatten().filter_map(|phone| phone["phone"].as_str());
    name.chain(numbers).collect::<Vec<_>>().join(" ")
}

/// Lists the files that the server can fetch with the access token. A message without text has the file as its content.
fn media(event: &mut Event, kind: &str, message: &Value) {
    let part = &message[kind];
    let Some(id) = part["id"].as_str().filter(|_| MEDIA.contains(&kind)) else { return };
    let mut listed = json!({"id": id, "kind": kind});
    for (name, value) in [("content_type", &part["mime_type"]), ("name", &part["filename"]), ("sha256", &part["sha256"])] {
        if !value.is_null() {
            listed[name] = value.clone();
        }
    }
    draft::note(event, "num_media", 1);
    draft::note(event, "media", json!([listed]));
    if event.raw_data["content"] == "" {
        let format = part["mime_type"].as_str();
        draft::at_url(event, format!("whatsapp-media:{id}"), format);
    }
}

/// Sets the sender: the number, or the id of a user who hides it.
fn from(event: &mut Event, message: &Value, value: &Value, channel: &Channel) {
    let number = message["from"].as_str().filter(|from| !from.is_empty());
    let user_id = message["from_user_id"].as_str().filter(|id| !id.is_empty());
    let is_theirs = |contact: &&Value| {
        let same = |name: &str, id: Option<&str>| id.is_some() && contact[name].as_str() == id;
        same("wa_id", number) || same("user_id", user_id)
    };
    let contact = value["contacts"].as_array().and_then(|contacts| contacts.iter().find(is_theirs));
    let name = contact.and_then(|contact| contact["profile"]["name"].as_str());
    draft::note(event, "profile_name", name.unwrap_or_default());
    draft::note(event, "wa_id", contact.map(|contact| contact["wa_id"].clone()).unwrap_or_default());
    draft::note(event, "external_user_id", user_id.unwrap_or_default());

    // Meta writes numbers as digits alone. A business-scoped id (`US.1349…`) in their place is not a number.
    let number = number.map(international);
    let phone = number.as_deref().filter(|number| number.starts_with('+'));
    let phone = phone.and_then(|number| phone::normalise(number, channel.default_region()));
    let other = number.as_deref().or(user_id).map(|id| Address::Other(format!("whatsapp:{id}")));
    let from = number.as_deref().or(user_id).unwrap_or_default();
    draft::sent_by(event, from, phone.map(Address::Phone).or(other), name);
}

/// Adds `+` to a number that starts with its country code. Anything else stays as it is.
fn international(number: &str) -> String {
    let is_plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { format!("+{number}") } else { number.to_owned() }
}
