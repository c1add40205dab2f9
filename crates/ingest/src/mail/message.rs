//! Parses a mail from its raw bytes.
//!
//! The parser reads headers; the parts are walked here. A parser that follows nested messages to the end drops them by recursion,
//! and 700 KB of nested messages were measured to crash the process. Here a mail inside a mail is a file.

use encoding_rs::{Encoding, UTF_8};
use mail_parser::decoders::{base64::base64_decode, quoted_printable::quoted_printable_decode};
use mail_parser::{Address, ContentType, MessageParser, MessagePart, MimeHeaders};

use super::{Enclosure, Mail};

/// Nested multiparts are followed this far. Genuine mail stays below five levels.
const DEEPEST: usize = 20;
/// The most parts that are read. Genuine mail stays below a hundred.
const MOST_PARTS: usize = 1000;

impl Mail {
    /// Parses an RFC 5322 message; `None` when these bytes are not one. `message_id` is left to the provider, which has its own id.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let message = MessageParser::default().parse_headers(bytes)?;
        let mut mail = Self {
            rfc_message_id: message.message_id().map(|id| format!("<{id}>")).unwrap_or_default(),
            subject: message.subject().unwrap_or_default().to_owned(),
            to: addresses(message.to()),
            cc: addresses(message.cc()),
            headers: message.headers_raw().map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect(),
            ..Self::default()
        };
        if let Some(from) = message.from().and_then(Address::first) {
            mail.from = from.address().unwrap_or_default().to_owned();
            mail.from_name = from.name().unwrap_or_default().to_owned();
        }
        mail.read_parts(bytes);
        Some(mail)
    }

    /// Depth first, in the order of the mail, without recursion.
    fn read_parts(&mut self, bytes: &[u8]) {
        let mut waiting = vec![(bytes, 0)];
        for _ in 0..MOST_PARTS {
            let Some((part, depth)) = waiting.pop() else { return };
            let (head, body) = split_head(part);
            let head =
                MessageParser::default().parse_headers(head).and_then(|message| message.parts.into_iter().next()).unwrap_or_default();
            let kind = head.content_type();
            match kind.and_then(|kind| kind.attribute("boundary")) {
                Some(boundary) if kind.is_some_and(|kind| kind.ctype() == "multipart") && depth < DEEPEST => {
                    waiting.extend(split_parts(body, boundary).into_iter().rev().map(|part| (part, depth + 1)));
                }
                _ => self.read_part(&head, body),
            }
        }
    }

    fn read_part(&mut self, head: &MessagePart<'_>, body: &[u8]) {
        let kind = head.content_type();
        let media_type = kind.map_or_else(|| "text/plain".to_owned(), media_type);
        let is_file = head.attachment_name().is_some() || head.content_disposition().is_some_and(|disposition| disposition.is_attachment());
        let bytes = decode(head, body);
        let text = match media_type.as_str() {
            "text/plain" if !is_file => &mut self.text,
            "text/html" if !is_file => &mut self.html,
            _ => {
                self.enclosures.push(Enclosure {
                    name: head.attachment_name().unwrap_or_default().to_owned(),
                    content_id: head.content_id().map(str::to_owned),
                    length: bytes.len() as u64,
                    bytes: Some(bytes),
                    content_type: media_type,
                });
                return;
            }
        };
        if !text.is_empty() {
            text.push('\n');
        }
        let charset = kind.and_then(|kind| kind.attribute("charset")).and_then(|label| Encoding::for_label(label.as_bytes()));
        text.push_str(&charset.unwrap_or(UTF_8).decode(&bytes).0);
    }
}

fn addresses(list: Option<&Address<'_>>) -> Vec<String> {
    list.map(|list| list.iter().filter_map(|one| one.address().map(str::to_owned)).collect()).unwrap_or_default()
}

fn media_type(kind: &ContentType<'_>) -> String {
    let whole = kind.subtype().map_or_else(|| kind.ctype().to_owned(), |subtype| format!("{}/{subtype}", kind.ctype()));
    whole.to_ascii_lowercase()
}

/// Decodes the transfer encoding. What cannot be decoded is kept as received.
fn decode(head: &MessagePart<'_>, body: &[u8]) -> Vec<u8> {
    let encoding = head.content_transfer_encoding().map(str::to_ascii_lowercase);
    let decoded = match encoding.as_deref() {
        Some("base64") => base64_decode(body),
        Some("quoted-printable") => quoted_printable_decode(body),
        _ => None,
    };
    decoded.unwrap_or_else(|| body.to_vec())
}

/// Headers, with the empty line that ends them, and what follows.
fn split_head(part: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    for line in part.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        if matches!(line, b"\n" | b"\r\n") {
            return part.split_at(at);
        }
    }
    (part, &[])
}

/// The parts between the lines `--boundary`, without the line break that belongs to the next boundary.
fn split_parts<'a>(body: &'a [u8], boundary: &str) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let (mut at, mut start) = (0, None);
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let rest = line.strip_prefix(b"--").and_then(|line| line.strip_prefix(boundary.as_bytes())).map(<[u8]>::trim_ascii_end);
        let is_last = rest == Some(b"--");
        if is_last || rest == Some(b"") {
            parts.extend(start.map(|start| without_break(&body[start..at])));
            start = (!is_last).then_some(at + line.len());
        }
        at += line.len();
        if is_last {
            break;
        }
    }
    // The last boundary may be missing because the mail was cut off.
    parts.extend(start.map(|start| &body[start..]));
    parts
}

fn without_break(part: &[u8]) -> &[u8] {
    let part = part.strip_suffix(b"\n").unwrap_or(part);
    part.strip_suffix(b"\r").unwrap_or(part)
}

#[cfg(test)]
mod tests {
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
}
