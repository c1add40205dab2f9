//! Address headers and encoded words, as mail programs write them.

use mail_parser::{HeaderValue, MessageParser};

/// One address of a header, as written, and its display name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mailbox {
    pub name: Option<String>,
    pub address: String,
}

/// The addresses of a `From`, `To` or `Cc`: display names, comments, groups, encoded words, lists.
pub fn mailboxes(text: &str) -> Vec<Mailbox> {
    let Some(HeaderValue::Address(list)) = read("To", text) else { return Vec::new() };
    let known = |text: &&str| !text.trim().is_empty();
    list.iter()
        .filter_map(|one| {
            let address = one.address().filter(known)?.trim().to_owned();
            Some(Mailbox { name: one.name().filter(known).map(|name| name.trim().to_owned()), address })
        })
        .collect()
}

/// Decodes `=?utf-8?q?…?=` words; text without them stays as it is.
pub fn decode_words(text: &str) -> String {
    if !text.contains("=?") {
        return text.to_owned();
    }
    match read("Subject", text) {
        Some(HeaderValue::Text(decoded)) => decoded.into_owned(),
        _ => text.to_owned(),
    }
}

fn read(name: &'static str, text: &str) -> Option<HeaderValue<'static>> {
    // One line only, or the rest would be parsed as further headers.
    let line = format!("{name}: {}\r\n\r\n", text.replace(['\r', '\n', '\0'], " "));
    let mut message = MessageParser::default().parse_headers(line.as_bytes())?;
    message.remove_header(name).map(HeaderValue::into_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<(Option<String>, String)> {
        mailboxes(text).into_iter().map(|mailbox| (mailbox.name, mailbox.address)).collect()
    }

    fn one(name: Option<&str>, address: &str) -> Vec<(Option<String>, String)> {
        vec![(name.map(str::to_owned), address.to_owned())]
    }

    #[test]
    fn addresses_are_found_in_every_form_people_write() {
        assert_eq!(found("j@x.org"), one(None, "j@x.org"));
        assert_eq!(found(" <J@x.org> "), one(None, "J@x.org"));
        assert_eq!(found("\"Doe, John\" <j@x.org>"), one(Some("Doe, John"), "j@x.org"));
        assert_eq!(found("=?utf-8?q?J=C3=B6rg?= <j@x.org>"), one(Some("Jörg"), "j@x.org"));
        assert_eq!(found("Jörg <j@x.org>"), one(Some("Jörg"), "j@x.org"));
        assert_eq!(found("a@x.org, B <b@x.org>").len(), 2);
        assert_eq!(found("team: a@x.org, b@x.org;").len(), 2);
        assert_eq!(found("undisclosed-recipients:;"), vec![]);
        assert_eq!(found(""), vec![]);
        assert_eq!(found("a@x.org,\r\n b@x.org").len(), 2);
        assert_eq!(found("a@x.org\r\n\r\nb").len(), 1, "a line break adds no header and no body");
    }

    #[test]
    fn encoded_words_are_read() {
        assert_eq!(decode_words("=?UTF-8?B?R3LDvMOfZQ==?= all"), "Grüße all");
        assert_eq!(decode_words("a =? b"), "a =? b");
        assert_eq!(decode_words("2 + 2 = 4\nx"), "2 + 2 = 4\nx");
    }

    #[test]
    fn hostile_lists_cost_what_their_length_costs() {
        let began = std::time::Instant::now();
        for piece in ["<", "a@b,", "(", "\"", ":;", "=?utf-8?q?a?= ", "\\", "a <"] {
            mailboxes(&piece.repeat(100_000));
            decode_words(&piece.repeat(100_000));
        }
        // Takes a second or two unoptimised; a quadratic algorithm would take hours.
        assert!(began.elapsed() < std::time::Duration::from_secs(60));
    }

    proptest! {
        #[test]
        fn no_text_upsets_the_parser(text in "\\PC{0,80}|[<>@,;:\"() =?a-zQB\\r\\n]{0,80}") {
            let _ = mailboxes(&text);
            let _ = decode_words(&text);
        }
    }
}
