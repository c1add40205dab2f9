//! A mail read from its own bytes.

use mail_parser::{Address, MessageParser, MessagePart, MimeHeaders, PartType};

use super::{Enclosure, Mail};

impl Mail {
    /// Reads an RFC 5322 message; none when these bytes are not one. `message_id` is left to the provider, which knows its own.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let message = MessageParser::default().parse(bytes)?;
        let mut mail = Self {
            rfc_message_id: message.message_id().map(|id| format!("<{id}>")).unwrap_or_default(),
            subject: message.subject().unwrap_or_default().to_owned(),
            to: addresses(message.to()),
            cc: addresses(message.cc()),
            ..Self::default()
        };
        if let Some(from) = message.from().and_then(Address::first) {
            mail.from = from.address().unwrap_or_default().to_owned();
            mail.from_name = from.name().unwrap_or_default().to_owned();
        }
        mail.headers = message.headers_raw().map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
        // A part that exists only as markup is offered by the parser as text too, by its own conversion; ours is wanted.
        mail.text = joined(message.text_bodies(), |part| matches!(part.body, PartType::Text(_)));
        mail.html = joined(message.html_bodies(), |part| matches!(part.body, PartType::Html(_)));
        mail.enclosures = message.attachments().map(enclosure).collect();
        Some(mail)
    }
}

fn addresses(list: Option<&Address<'_>>) -> Vec<String> {
    list.map(|list| list.iter().filter_map(|one| one.address().map(str::to_owned)).collect()).unwrap_or_default()
}

fn joined<'a>(parts: impl Iterator<Item = &'a MessagePart<'a>>, wanted: impl Fn(&MessagePart<'_>) -> bool) -> String {
    let texts: Vec<_> = parts.filter(|part| wanted(part)).filter_map(|part| part.text_contents()).collect();
    texts.join("\n")
}

fn enclosure(part: &MessagePart<'_>) -> Enclosure {
    let kind = part.content_type().map(|kind| match kind.subtype() {
        Some(subtype) => format!("{}/{subtype}", kind.ctype()),
        None => kind.ctype().to_owned(),
    });
    Enclosure {
        name: part.attachment_name().unwrap_or_default().to_owned(),
        content_type: kind.unwrap_or_else(|| "application/octet-stream".to_owned()).to_ascii_lowercase(),
        content_id: part.content_id().map(str::to_owned),
        length: part.contents().len() as u64,
        bytes: Some(part.contents().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    proptest! {
        #[test]
        fn any_bytes_are_a_mail_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Some(mail) = Mail::parse(&bytes) {
                mail.into_event();
            }
        }
    }
}
