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
mod tests;
