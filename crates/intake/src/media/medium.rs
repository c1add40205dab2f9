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
mod tests;
