//! The files of an activity, in the order in which they are numbered: recordings and pictures first, then attachments.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One file of an activity. Its JSON is stored in `gleaner.media_reference`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Medium {
    pub place: Place,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Where the file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    /// In our own store.
    File(String),
    /// At any URL.
    Url(String),
    /// At the activity's own provider, by an id (WhatsApp, Telegram).
    Reference(String),
    /// At Google, by the id of the message and its own id.
    Gmail { message: String, attachment: String },
    /// The file no longer exists; only its description was stored.
    Nowhere,
}

pub(crate) fn media(raw_data: &Map<String, Value>, metadata: &Map<String, Value>) -> Vec<Medium> {
    let mut found = of_message(raw_data, metadata);
    let message = text(at_key(metadata, "message_id")).unwrap_or_default();
    for attachment in list(at_key(metadata, "attachments")) {
        let reference = text(&attachment["attachment_id"]);
        let place = match (text(&attachment["file"]), reference) {
            (Some(file), _) => Place::File(file),
            (None, Some(attachment)) if !message.is_empty() => Place::Gmail { message: message.clone(), attachment },
            _ => Place::Nowhere,
        };
        found.push(Medium { place, content_type: text(&attachment["content_type"]), name: text(&attachment["name"]) });
    }
    found
}

/// The recording, pictures or voice message that the message itself consists of or contains.
fn of_message(raw_data: &Map<String, Value>, metadata: &Map<String, Value>) -> Vec<Medium> {
    let content = (at_key(raw_data, "source_type") == "url").then(|| text(at_key(raw_data, "content"))).flatten();
    let types = at_key(metadata, "media_types");
    let urls = list(at_key(metadata, "media_urls")).iter().enumerate().filter_map(|(n, url)| {
        let content_type = text(&types[n]).or_else(|| text(at_key(raw_data, "format")).filter(|_| content.as_deref() == url.as_str()));
        Some(Medium { place: at(url.as_str()?), content_type, name: None })
    });
    let mut found: Vec<Medium> = urls.collect();
    let described = list(at_key(metadata, "media")).iter().filter_map(|medium| {
        Some(Medium {
            place: Place::Reference(text(&medium["id"])?),
            content_type: text(&medium["content_type"]),
            name: text(&medium["name"]),
        })
    });
    found.extend(described);
    match content {
        Some(content) if found.is_empty() => {
            vec![Medium { place: at(&content), content_type: text(at_key(raw_data, "format")), name: None }]
        }
        _ => found,
    }
}

/// Providers whose files have ids and no URLs write the id in the form of a URL.
fn at(content: &str) -> Place {
    let id = content.strip_prefix("whatsapp-media:").or_else(|| content.strip_prefix("telegram-file:"));
    id.map_or_else(|| Place::Url(content.to_owned()), |id| Place::Reference(id.to_owned()))
}

fn at_key<'a>(object: &'a Map<String, Value>, key: &str) -> &'a Value {
    object.get(key).unwrap_or(&Value::Null)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(raw_data: Value, metadata: Value) -> Vec<Medium> {
        let object = |value: Value| if let Value::Object(map) = value { map } else { Map::new() };
        media(&object(raw_data), &object(metadata))
    }

    fn places(raw_data: Value, metadata: Value) -> Vec<Place> {
        found(raw_data, metadata).into_iter().map(|medium| medium.place).collect()
    }

    #[test]
    fn a_recording_is_the_first_and_only_file() {
        let found = found(json!({"source_type": "url", "content": "https://a/RE1", "format": "audio/wav"}), json!({"call_sid": "CA1"}));
        assert_eq!(found, [Medium { place: Place::Url("https://a/RE1".into()), content_type: Some("audio/wav".into()), name: None }]);
    }

    #[test]
    fn pictures_are_counted_once_though_the_first_is_the_content_too() {
        let metadata = json!({"media_urls": ["https://a/1", "https://a/2"]});
        let raw_data = json!({"source_type": "url", "content": "https://a/1", "format": "image/jpeg"});
        assert_eq!(places(raw_data.clone(), metadata.clone()), [Place::Url("https://a/1".into()), Place::Url("https://a/2".into())]);
        assert_eq!(found(raw_data.clone(), metadata.clone())[0].content_type.as_deref(), Some("image/jpeg"));
        assert_eq!(places(json!({"source_type": "text", "content": "hi"}), metadata).len(), 2);
    }

    #[test]
    fn a_text_that_looks_like_an_address_is_no_file() {
        assert_eq!(places(json!({"source_type": "text", "content": "https://a/1"}), json!({})), []);
        assert_eq!(places(Value::Null, Value::Null), []);
    }

    #[test]
    fn files_with_ids_are_counted_once() {
        let voice = json!({"source_type": "url", "content": "telegram-file:F1"});
        assert_eq!(places(voice.clone(), json!({"media": [{"id": "F1"}]})), [Place::Reference("F1".into())]);
        assert_eq!(places(voice, json!({})), [Place::Reference("F1".into())]);
        let photo = json!({"source_type": "text", "content": "look"});
        assert_eq!(places(photo, json!({"media": [{"id": "77"}]})), [Place::Reference("77".into())]);
    }

    #[test]
    fn attachments_are_ours_or_googles_or_gone() {
        let metadata = json!({"message_id": "m1", "attachments": [
            {"name": "a.txt", "file": "activities/x/0"}, {"name": "b.pdf", "attachment_id": "A2"}, {"name": "c"}]});
        let google = Place::Gmail { message: "m1".into(), attachment: "A2".into() };
        assert_eq!(places(json!({}), metadata), [Place::File("activities/x/0".into()), google, Place::Nowhere]);
    }
}
