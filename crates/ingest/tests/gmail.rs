//! Messages as the Gmail API returns them, and the resulting events.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use gleaner_ingest::providers::gmail::{Gmail, labels, message};
use gleaner_ingest::{Address, Channel, Direction, Event, Kind, Provider as _};
use proptest::prelude::*;
use serde_json::{Value, json};

fn channel(settings: Value) -> Channel {
    Channel {
        id: uuid::Uuid::nil(),
        name: "mail".into(),
        provider_code: "gmail".into(),
        is_active: true,
        sales_id: None,
        auto_create_contacts: false,
        settings: settings.as_object().cloned().unwrap_or_default().into(),
    }
}

fn read(value: &Value) -> Option<Event> {
    message(value, &channel(json!({})))
}

fn headers() -> Value {
    json!([{"name": "from", "value": "\"Doe, John\" <John@Example.com>"}, {"name": "To", "value": "Sales <sales@acme.example>, b@acme.example"},
           {"name": "CC", "value": "c@acme.example"}, {"name": "Subject", "value": "Hello"}, {"name": "Message-Id", "value": "<a@x>"}])
}

/// A message of one part.
fn plain(data: String, content_type: &str) -> Value {
    let mut all = headers();
    all.as_array_mut().unwrap().push(json!({"name": "Content-Type", "value": content_type}));
    json!({"id": "m1", "threadId": "t1", "labelIds": ["INBOX"], "payload": {"mimeType": "text/plain", "filename": "", "headers": all, "body": {"data": data}}})
}

fn content(value: &Value) -> String {
    read(value).expect("inbound").raw_data["content"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_message_becomes_one_inbound_mail() {
    let event = read(&plain(URL_SAFE_NO_PAD.encode("Hi there"), "text/plain; charset=UTF-8")).unwrap();
    assert_eq!((event.kind, event.direction), (Kind::Email, Direction::Inbound));
    assert_eq!(
        Value::Object(event.raw_data),
        json!({"source_type": "text", "content": "Hi there", "subject": "Hello", "sender": "john@example.com"})
    );
    assert_eq!(event.external_id, "m1");
    assert_eq!(event.sender, Some(Address::Email("john@example.com".into())));
    assert_eq!(event.sender_name.as_deref(), Some("Doe, John"));
    let metadata = Value::Object(event.metadata);
    assert_eq!(metadata["message_id"], "m1");
    assert_eq!(metadata["external_id"], "m1");
    assert_eq!(metadata["rfc_message_id"], "<a@x>");
    assert_eq!(metadata["thread_id"], "t1");
    assert_eq!(metadata["labels"], json!(["INBOX"]));
    assert_eq!(metadata["to"], "sales@acme.example");
    assert_eq!(metadata["cc"], json!(["c@acme.example"]));
    assert_eq!(metadata["attachments_count"], 0);
}

#[test]
fn the_body_is_read_in_every_form_of_base64() {
    // Bytes whose base64 contains both characters that differ between the alphabets, and needs padding.
    let text = "subjects?>> ÿþ?~~~";
    for data in [URL_SAFE_NO_PAD.encode(text), URL_SAFE.encode(text), STANDARD.encode(text), STANDARD.encode(text).replace('=', "")] {
        assert_eq!(content(&plain(data.clone(), "text/plain")), text, "{data}");
    }
    let mut folded = STANDARD.encode(text.repeat(20));
    folded.insert_str(76, "\r\n");
    assert_eq!(content(&plain(folded, "text/plain")), text.repeat(20));
    assert_eq!(content(&plain("***".into(), "text/plain")), "", "what is no base64 is no text");
}

#[test]
fn the_charset_is_used_where_the_bytes_are_not_utf_8() {
    let latin = URL_SAFE_NO_PAD.encode(b"sch\xf6n");
    assert_eq!(content(&plain(latin.clone(), "text/plain; charset=\"ISO-8859-1\"")), "schön");
    assert_eq!(content(&plain(latin.clone(), "text/plain; format=flowed; Charset=windows-1252")), "schön");
    assert_eq!(content(&plain(latin.clone(), "text/plain; charset=utf-8")), "sch\u{fffd}n");
    assert_eq!(content(&plain(latin, "text/plain; charset=made-up")), "sch\u{fffd}n");
    // The API converts most bodies itself and leaves the header unchanged.
    assert_eq!(content(&plain(URL_SAFE_NO_PAD.encode("schön"), "text/plain; charset=iso-8859-1")), "schön");
    let japanese = URL_SAFE_NO_PAD.encode(b"\x93\xfa\x96\x7b");
    assert_eq!(content(&plain(japanese, "text/plain; charset=Shift_JIS")), "日本");
}

#[test]
fn headers_are_read_decoded_or_not() {
    for (subject, from) in [("=?utf-8?q?Gr=C3=BC=C3=9Fe?=", "=?iso-8859-1?q?J=F6rg?= <j@x.org>"), ("Grüße", "Jörg <j@x.org>")] {
        let mut value = plain(URL_SAFE_NO_PAD.encode("x"), "text/plain");
        value["payload"]["headers"] = json!([{"name": "Subject", "value": subject}, {"name": "From", "value": from}]);
        let event = read(&value).unwrap();
        assert_eq!(event.raw_data["subject"], "Grüße");
        assert_eq!(event.raw_data["sender"], "j@x.org");
        assert_eq!(event.sender_name.as_deref(), Some("Jörg"));
    }
}

#[test]
fn text_is_preferred_wherever_it_stands_and_attachments_are_only_described() {
    let part = |kind: &str, name: &str, data: &str| json!({"mimeType": kind, "filename": name, "body": {"data": URL_SAFE_NO_PAD.encode(data), "size": data.len()}});
    let mut image = part("image/png", "", "");
    image["body"] = json!({"attachmentId": "ANGjd-1", "size": 900});
    image["headers"] = json!([{"name": "Content-ID", "value": "<logo@x>"}]);
    let value = json!({"id": "m1", "threadId": "t1", "labelIds": ["INBOX"], "payload": {"mimeType": "multipart/mixed", "headers": headers(), "parts": [
        part("text/plain", "notes.txt", "an attachment"),
        {"mimeType": "multipart/related", "parts": [
            {"mimeType": "multipart/alternative", "parts": [part("text/html", "", "<p>markup</p>"), part("TEXT/Plain", "", "the text"), part("text/plain", "", "later")]},
            image]},
        part("application/pdf", "=?utf-8?q?Gr=C3=BC=C3=9Fe.pdf?=", "%PDF")]}});
    let event = read(&value).unwrap();
    assert_eq!(event.raw_data["content"], "the text");
    assert!(event.attachments.is_empty(), "their bytes stay at Google");
    assert_eq!(event.metadata["attachments_count"], 3);
    assert_eq!(
        event.metadata["attachments"],
        json!([{"name": "notes.txt", "content_type": "text/plain", "length": 13},
               {"name": "", "content_type": "image/png", "length": 900, "content_id": "logo@x", "attachment_id": "ANGjd-1"},
               {"name": "Grüße.pdf", "content_type": "application/pdf", "length": 4}])
    );
}

#[test]
fn markup_is_read_where_there_is_no_text() {
    let data = URL_SAFE_NO_PAD.encode("<html><style>p{}</style><p>Dear&nbsp;John</p><script>x()</script></html>");
    let value =
        json!({"id": "m1", "labelIds": ["INBOX"], "payload": {"mimeType": "text/html", "headers": headers(), "body": {"data": data}}});
    assert_eq!(content(&value), "Dear John");
}

#[test]
fn a_raw_message_is_read_as_well() {
    let mail = "From: J <j@x.org>\r\nTo: a@b.c\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nMessage-ID: <r@x>\r\n\r\nraw text\r\n";
    let event = read(&json!({"id": "m9", "labelIds": ["INBOX"], "raw": URL_SAFE.encode(mail)})).unwrap();
    assert_eq!(event.raw_data["subject"], "Grüße");
    assert_eq!(event.raw_data["content"].as_str().map(str::trim), Some("raw text"));
    assert_eq!(event.external_id, "m9");
}

#[test]
fn only_what_came_into_the_inbox_counts() {
    let with = |labels: Value| {
        let mut value = plain(URL_SAFE_NO_PAD.encode("x"), "text/plain");
        value["labelIds"] = labels;
        read(&value).is_some()
    };
    assert!(with(json!(["INBOX"])));
    assert!(with(json!(["CATEGORY_PERSONAL", "INBOX", "UNREAD", "STARRED"])));
    for label in ["SENT", "DRAFT", "SPAM", "TRASH"] {
        assert!(!with(json!(["INBOX", label])), "{label}");
    }
    assert!(!with(json!(["CATEGORY_PERSONAL"])), "archived, or never there");
    assert!(!with(json!([])));
    assert!(!with(Value::Null));
    let mut without_id = plain(String::new(), "text/plain");
    without_id["id"] = json!("");
    assert!(read(&without_id).is_none());
}

#[test]
fn a_channel_may_want_further_labels() {
    let wanted = |settings: Value| labels(&channel(settings));
    assert_eq!(wanted(json!({})), ["INBOX"]);
    assert_eq!(wanted(json!({"labels": "Label_1, INBOX,"})), ["INBOX", "Label_1"]);
    assert_eq!(wanted(json!({"labels": ["Label_1", 7, "Label_2"]})), ["INBOX", "Label_1", "Label_2"]);
    let mut value = plain(URL_SAFE_NO_PAD.encode("x"), "text/plain");
    let picky = channel(json!({"labels": "Label_1"}));
    assert!(message(&value, &picky).is_none());
    value["labelIds"] = json!(["INBOX", "Label_1"]);
    assert!(message(&value, &picky).is_some());
}

#[test]
fn what_the_database_cannot_hold_is_taken_out() {
    let event = read(&plain(URL_SAFE_NO_PAD.encode("a\0b"), "text/plain")).unwrap();
    assert_eq!(event.raw_data["content"].as_str().map(|text| text.contains('\0')), Some(false));
}

#[test]
fn settings_that_would_never_work_are_told() {
    let wrong = |settings: Value| Gmail.check(&channel(settings)).join("; ");
    assert_eq!(wrong(json!({"topic": "projects/p/topics/t", "audience": "a", "service_account": "b", "poll_minutes": "5"})), "");
    assert!(wrong(json!({"topic": "my-topic"})).contains("projects/PROJECT/topics/TOPIC"));
    assert!(wrong(json!({"audience": "a"})).contains("service_account"));
    assert!(wrong(json!({"poll_minutes": "often"})).contains("poll_minutes"));
    assert!(wrong(json!({"quota_per_minute": 0})).contains("quota_per_minute"));
    assert!(wrong(json!({"first_sync_days": -1})).contains("first_sync_days"));
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        Just(json!("INBOX")),
        Just(json!("SGk"))
    ];
    let names = prop_oneof!["id|labelIds|payload|parts|headers|name|value|body|data|filename|mimeType|raw|attachmentId|size", "[a-z]{0,4}"];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(names.clone(), inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_answer_of_the_api_upsets_us(payload in anything(), value in anything()) {
        read(&value);
        read(&json!({"id": "m1", "labelIds": ["INBOX"], "payload": payload}));
    }
}

#[test]
fn parts_within_parts_end() {
    let mut part = json!({"mimeType": "text/plain", "body": {"data": "SGk"}});
    for _ in 0..100 {
        part = json!({"mimeType": "multipart/mixed", "parts": [part]});
    }
    assert_eq!(content(&json!({"id": "m1", "labelIds": ["INBOX"], "payload": part})), "");
}
