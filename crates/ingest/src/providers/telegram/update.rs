//! One update: a message of some kind, or nothing that we use.

use serde_json::{Value, json};

use crate::{Address, Event, Kind, draft};

/// Where an update has its message, and whether that is an edit of an earlier one.
const MESSAGES: &[(&str, bool)] = &[
    ("message", false),
    ("edited_message", true),
    ("channel_post", false),
    ("edited_channel_post", true),
    ("business_message", false),
    ("edited_business_message", true),
];

/// Kinds of message whose content stays at Telegram until it is fetched by its `file_id`.
const MEDIA: &[(&str, &str)] = &[
    ("animation", "video/mp4"),
    ("audio", "audio/mpeg"),
    ("document", "application/octet-stream"),
    ("photo", "image/jpeg"),
    ("sticker", "image/webp"),
    ("video", "video/mp4"),
    ("video_note", "video/mp4"),
    ("voice", "audio/ogg"),
];

pub(super) fn event(update: &Value, update_id: u64) -> Option<Event> {
    let found = MESSAGES.iter().find(|(name, _)| update[*name].is_object());
    let (message, from, mut event) = match found {
        Some((name, is_edited)) => {
            let message = &update[*name];
            let mut event = draft::message(Kind::Other, content(message));
            if *is_edited {
                draft::note(&mut event, "edited", true);
            }
            media(&mut event, message);
            (message, &message["from"], event)
        }
        None => {
            // A pressed button: its text is what the person chose.
            let query = update.get("callback_query").filter(|query| query.is_object())?;
            let data = query["data"].as_str().or(query["game_short_name"].as_str()).unwrap_or_default();
            let mut event = draft::message(Kind::Other, data);
            draft::note(&mut event, "callback_query_id", query["id"].clone());
            (&query["message"], &query["from"], event)
        }
    };
    // A button under a message sent inline through us has no chat. The private chat of the user who pressed it has that user's id.
    let chat = if message["chat"]["id"].is_i64() { &message["chat"] } else { from };
    let chat_id = chat["id"].as_i64();
    draft::note(&mut event, "channel", "telegram");
    draft::note(&mut event, "update_id", update_id);
    draft::note(&mut event, "chat_id", chat_id);
    draft::note(&mut event, "chat_type", chat["type"].clone());
    draft::note(&mut event, "chat_title", chat["title"].clone());
    draft::note(&mut event, "message_id", message["message_id"].clone());
    draft::note(&mut event, "timestamp", message["date"].clone());
    draft::note(&mut event, "username", from["username"].clone());
    draft::note(&mut event, "user_id", from["id"].clone());
    draft::note(&mut event, "language", from["language_code"].clone());
    draft::note(&mut event, "reply_to", message["reply_to_message"]["message_id"].clone());

    let name = name(from).or_else(|| name(chat));
    let address = chat_id.map(|id| format!("telegram:{id}"));
    draft::sent_by(&mut event, address.as_deref().unwrap_or_default(), address.clone().map(Address::Other), name.as_deref());
    Some(draft::finished(event, &update_id.to_string()))
}

fn name(person: &Value) -> Option<String> {
    let parts: Vec<_> = [&person["first_name"], &person["last_name"]].into_iter().filter_map(Value::as_str).collect();
    let name = if parts.is_empty() { person["title"].as_str()?.to_owned() } else { parts.join(" ") };
    Some(name)
}

/// The content as text.
fn content(message: &Value) -> String {
    if let Some(text) = message["text"].as_str().or(message["caption"].as_str()) {
        return text.to_owned();
    }
    let (location, contact) = (&message["location"], &message["contact"]);
    let mut lines: Vec<String> = Vec::new();
    lines.extend([&message["venue"]["title"], &message["venue"]["address"]].into_iter().filter_map(Value::as_str).map(str::to_owned));
    if location["latitude"].is_number() && location["longitude"].is_number() {
        lines.push(format!("{},{}", location["latitude"], location["longitude"]));
    }
    lines.extend(name(contact));
    lines.extend(contact["phone_number"].as_str().map(str::to_owned));
    lines.join("\n")
}

/// Lists the files that the server can fetch with the bot's token. A message without text has the file as its content.
fn media(event: &mut Event, message: &Value) {
    // An animation is also sent as a document, for old clients. The first kind found is the message's own.
    let Some((kind, usual)) = MEDIA.iter().find(|(name, _)| !message[*name].is_null()) else { return };
    let file = match &message[*kind] {
        // A picture is sent in several sizes, the largest last.
        Value::Array(sizes) => sizes.last().unwrap_or(&Value::Null),
        file => file,
    };
    let Some(id) = file["file_id"].as_str() else { return };
    let content_type = file["mime_type"].as_str().unwrap_or(usual);
    let mut listed = json!({"id": id, "kind": kind, "content_type": content_type});
    for (name, value) in [("name", &file["file_name"]), ("length", &file["file_size"]), ("duration", &file["duration"])] {
        if !value.is_null() {
            listed[name] = value.clone();
        }
    }
    draft::note(event, "num_media", 1);
    draft::note(event, "media", json!([listed]));
    if event.raw_data["content"] == "" {
        draft::at_url(event, format!("telegram-file:{id}"), Some(content_type));
    }
}
