use base64::Engine;
use proptest::prelude::*;

use super::*;
use crate::crypt::BASE64;

const MAIL: &str = "Return-Path: <bounce@x.org>\r\nMessage-ID: <id-1@x.org>\r\nFrom: =?utf-8?q?J=C3=B6rg?= <J@X.org>\r\n\
        To: \"Sales, all\" <sales@acme.example>, b@acme.example\r\nCc: c@acme.example\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\
        X-Spam-Status: No\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
        --b\r\nContent-Type: text/html; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>sch=F6n</p>\r\n\
        --b\r\nContent-Type: application/PDF; name=\"a.pdf\"\r\nContent-Disposition: attachment\r\n\
        Content-Transfer-Encoding: base64\r\n\r\nJVBERg==\r\n--b--\r\n";

#[test]
fn a_raw_mail_is_read_like_a_described_one() {
    let mail = Mail { message_id: "m1".into(), ..Mail::parse(MAIL.as_bytes()).expect("a mail") };
    let event = mail.into_event();
    assert_eq!(event.raw_data["content"], "schön");
    assert_eq!(event.raw_data["subject"], "Grüße");
    assert_eq!(event.raw_data["sender"], "j@x.org");
    assert_eq!(event.sender_name.as_deref(), Some("Jörg"));
    assert_eq!(event.metadata["rfc_message_id"], "<id-1@x.org>");
    assert_eq!(event.metadata["to"], "sales@acme.example");
    assert_eq!(event.metadata["cc"], serde_json::json!(["c@acme.example"]));
    assert_eq!(event.metadata["spam"], false);
    assert_eq!(event.attachments.len(), 1);
    assert_eq!((event.attachments[0].name.as_str(), event.attachments[0].content_type.as_str()), ("a.pdf", "application/pdf"));
    assert_eq!(event.attachments[0].bytes, b"%PDF");
}

#[test]
fn the_parts_of_a_mail_are_distinguished() {
    let mail = "Subject: s\nContent-Type: multipart/mixed; boundary=\"o o\"\n\npreamble\n--o o\n\
            Content-Type: multipart/alternative; boundary=i\n\n--i\n\none\n--ix\ntwo\n--i\nContent-Type: TEXT/HTML\n\n<p>one</p>\n--i--\n--o o \n\
            Content-Type: text/plain; name=notes.txt\n\nnotes\n--o o\nContent-Type: message/rfc822\n\nSubject: inner\n\ninside\n--o o--\nepilogue";
    let mail = Mail::parse(mail.as_bytes()).expect("a mail");
    assert_eq!((mail.text.as_str(), mail.html.as_str()), ("one\n--ix\ntwo", "<p>one</p>"));
    let files: Vec<_> = mail.enclosures.iter().map(|file| (file.name.as_str(), file.bytes.as_deref().unwrap_or_default())).collect();
    assert_eq!(files, [("notes.txt", &b"notes"[..]), ("", b"Subject: inner\n\ninside")]);
    let cut = Mail::parse(b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\ncut off").expect("a mail");
    assert_eq!(cut.text, "cut off");
    let plain = Mail::parse(b"Subject: s\r\n\r\njust text\r\n").expect("a mail");
    assert_eq!(plain.text, "just text\r\n");
}

#[test]
fn mail_inside_mail_without_end_does_not_end_the_process() {
    let nested = "Content-Type: message/rfc822\r\n\r\n".repeat(100_000);
    assert!(Mail::parse(nested.as_bytes()).is_some());
    let deeper: String = (0..100_000).map(|n| format!("Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n")).collect();
    let deeper = Mail::parse(deeper.as_bytes()).expect("a mail");
    assert_eq!(deeper.enclosures.len(), 1, "what lies too deep is kept as a file");
    assert_eq!(deeper.enclosures[0].content_type, "multipart/mixed");
    let wider = format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n{}", "--b\r\nX: y\r\n\r\n".repeat(100_000));
    assert!(Mail::parse(wider.as_bytes()).is_some());
    assert!(Mail::parse(b"").is_none());
    let hidden = format!("Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n{}", BASE64.encode(&nested));
    assert!(Mail::parse(hidden.as_bytes()).is_some());
}

proptest! {
    #[test]
    fn any_bytes_are_a_mail_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Some(mail) = Mail::parse(&bytes) {
            mail.into_event();
        }
    }
}
