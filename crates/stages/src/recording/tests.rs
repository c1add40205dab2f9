use serde_json::json;

use super::*;

fn item(kind: &str, payload: Value) -> Item {
    let hour = Duration::from_secs(3600);
    Item {
        key: "k".into(),
        lease: 1,
        kind: Some(kind.into()),
        owner: None,
        attempts: 0,
        payload,
        partial: None,
        lease_for: hour,
        deadline_in: hour,
    }
}

fn found(kind: &str, payload: Value, metadata: Value) -> Option<(usize, String)> {
    find(&item(kind, payload), Some(&json!({"metadata": metadata}))).map(|medium| (medium.n, medium.address))
}

#[test]
fn sound_is_found_where_the_server_counts_it() {
    let recording = json!({"source_type": "url", "content": "https://a/RE1", "format": "audio/wav"});
    assert_eq!(found("call", recording, json!({})), Some((0, "https://a/RE1".into())));
    let pictures = json!({"media_urls": ["https://a/1", "https://a/2"], "media_types": ["image/jpeg", "audio/ogg"]});
    assert_eq!(found("whatsapp", json!({"source_type": "text", "content": "hi"}), pictures), Some((1, "https://a/2".into())));
    let attached = json!({"attachments": [{"name": "a.pdf", "content_type": "application/pdf", "file": "f/0"}, {"content_type": "audio/mpeg", "file": "f/1"}]});
    assert_eq!(found("email", json!({"source_type": "text", "content": "hi"}), attached), Some((1, "f/1".into())));
}

#[test]
fn text_and_pictures_are_no_sound() {
    assert_eq!(found("sms", json!({"source_type": "text", "content": "https://a/RE1"}), json!({})), None);
    assert_eq!(found("sms", json!({"source_type": "url", "content": "https://a/1", "format": "image/jpeg"}), json!({})), None);
    assert_eq!(found("call", Value::Null, Value::Null), None);
}
