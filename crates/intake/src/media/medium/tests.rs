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
