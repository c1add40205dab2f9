use super::*;

fn mail() -> Mail {
    Mail { message_id: "m1".into(), from: "\"Doe, John\" <John@Example.com>".into(), ..Mail::default() }
}

#[test]
fn plain_text_is_preferred_and_markup_is_read_when_there_is_none() {
    let both = Mail { text: " plain\n".into(), html: "<p>markup</p>".into(), ..mail() };
    assert_eq!(both.into_event().raw_data["content"], " plain\n");
    let markup = Mail { text: " \r\n".into(), html: "<style>p{}</style><p>markup</p>".into(), ..mail() };
    assert_eq!(markup.into_event().raw_data["content"], "markup");
    assert_eq!(mail().into_event().raw_data["content"], "");
}

#[test]
fn the_sender_is_bare_and_in_lower_case() {
    let event = mail().into_event();
    assert_eq!(event.raw_data["sender"], "john@example.com");
    assert_eq!(event.metadata["from"], "john@example.com");
    assert_eq!(event.sender, Some(Address::Email("john@example.com".into())));
    assert_eq!(event.sender_name.as_deref(), Some("Doe, John"));
}

#[test]
fn a_mail_without_sender_is_still_an_event() {
    let event = Mail { from: String::new(), ..mail() }.into_event();
    assert_eq!(event.sender, None);
    assert!(!event.raw_data.contains_key("sender"));
}

#[test]
fn only_the_topmost_verdict_on_spam_counts() {
    let headers = vec![("X-Spam-Status".into(), "Yes, score=9".into()), ("x-spam-status".into(), "No".into())];
    let event = Mail { headers, ..mail() }.into_event();
    assert_eq!(event.metadata["spam"], true);
    assert!(!mail().into_event().metadata.contains_key("spam"));
}

#[test]
fn bytes_of_attachments_stay_out_of_the_row() {
    let file =
        Enclosure { name: "a\0.txt".into(), content_type: "text/plain".into(), bytes: Some(b"four".to_vec()), ..Enclosure::default() };
    let missing = Enclosure { name: "b".into(), length: 9, content_id: Some("cid".into()), ..Enclosure::default() };
    let event = Mail { enclosures: vec![missing, file], ..mail() }.into_event();
    assert_eq!(event.metadata["attachments_count"], 2);
    let expected = json!([{"name": "a.txt", "content_type": "text/plain", "length": 4},
                              {"name": "b", "content_type": "", "length": 9, "content_id": "cid"}]);
    assert_eq!(event.metadata["attachments"], expected);
    assert_eq!(event.attachments.len(), 1);
    assert_eq!(event.attachments[0].bytes, b"four");
}
