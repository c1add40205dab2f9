//! E-mail addresses.

use mail_parser::HeaderValue;
use mail_parser::parsers::MessageStream;

/// No address is longer (RFC 5321).
const LONGEST: usize = 254;

/// The bare address in what a sender wrote, in lower case, with its domain in ASCII; the first of a list.
///
/// Display forms (`"Doe, John" <J@X.com>`), comments (`j@x.com (John)`) and encoded words are parsed.
pub fn normalise(text: &str) -> Option<String> {
    let (address, name) = first(text)?;
    // Some mailers encode the whole field. Then the address is where a name would be.
    let found = address.or_else(|| first(&name?)?.0)?;
    bare(&found)
}

/// The first address of a header's value, and the name beside it.
fn first(text: &str) -> Option<(Option<String>, Option<String>)> {
    // The parser stops at a line that is not folded, so line breaks in the value are replaced.
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).chain(['\n']).collect();
    let HeaderValue::Address(list) = MessageStream::new(line.as_bytes()).parse_address() else {
        return None;
    };
    let owned = |text: &std::borrow::Cow<'_, str>| text.clone().into_owned();
    // A list may begin with an empty member. A name alone is kept, because it may contain the address.
    let address = list.iter().find(|one| one.address.as_deref().is_some_and(|address| address.contains('@')));
    let one = address.or_else(|| list.iter().find(|one| one.name.is_some()))?;
    Some((address.and_then(|one| one.address.as_ref().map(owned)), one.name.as_ref().map(owned)))
}

fn bare(address: &str) -> Option<String> {
    let (mailbox, domain) = address.trim().rsplit_once('@')?;
    let unfit = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '@' | '<' | '>' | '"' | ',' | ';');
    if mailbox.is_empty() || mailbox.contains(unfit) || domain.contains(unfit) {
        return None;
    }
    let domain = if domain.starts_with('[') {
        domain.to_ascii_lowercase() // An address literal, [192.0.2.1]: not a name.
    } else {
        // A character that looks like a letter may become a space or a colon here, and then it is not a host name.
        let ascii = idna::domain_to_ascii(domain.trim_end_matches('.')).ok()?;
        Some(ascii).filter(|ascii| ascii.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)))?
    };
    let whole = format!("{}@{domain}", mailbox.to_lowercase());
    (!domain.is_empty() && whole.len() <= LONGEST).then_some(whole)
}

/// The mailbox of a normalised address, for the second, looser match: without `+tag`, and at Google, where dots are ignored and two
/// domains are one, without dots. Equal to `gleaner.loose_email`.
pub fn without_tag(address: &str) -> String {
    let Some((mailbox, domain)) = address.rsplit_once('@') else {
        return address.to_owned();
    };
    // A tag needs a name before it.
    let mailbox = mailbox.split_once('+').map_or(mailbox, |(name, _)| if name.is_empty() { mailbox } else { name });
    match domain {
        "gmail.com" | "googlemail.com" => format!("{}@gmail.com", mailbox.replace('.', "")),
        _ => format!("{mailbox}@{domain}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_that_no_host_can_have_is_none() {
        for text in ["a@:", "<A@:", "a@\u{1fbd}", "a@b c", "a@b/c"] {
            assert_eq!(normalise(text), None, "{text}");
        }
    }

    #[test]
    fn every_written_form_gives_the_bare_address() {
        for (written, expected) in [
            ("john@example.com", "john@example.com"),
            ("  JOHN@Example.COM \r\n", "john@example.com"),
            ("John Q <JOHN@example.com>", "john@example.com"),
            ("\"Doe, John\" <j@x.com>", "j@x.com"),
            ("\"a@b.com\" <j@x.com>", "j@x.com"),
            ("j@x.com (John)", "j@x.com"),
            ("(John) j@x.com", "j@x.com"),
            ("<j@x.com>", "j@x.com"),
            ("=?UTF-8?B?SsO2cmc=?= <joerg@x.com>", "joerg@x.com"),
            ("=?UTF-8?Q?J=C3=B6rg_=3Cjoerg=40x.com=3E?=", "joerg@x.com"),
            ("a@x.com, b@y.com", "a@x.com"),
            ("Team: a@x.com, b@y.com;", "a@x.com"),
            ("josé@Bücher.example", "josé@xn--bcher-kva.example"),
            ("j@xn--bcher-kva.example", "j@xn--bcher-kva.example"),
            ("j@x.com.", "j@x.com"),
            ("j+tag@x.com", "j+tag@x.com"),
            ("j@[192.0.2.1]", "j@[192.0.2.1]"),
        ] {
            assert_eq!(normalise(written).as_deref(), Some(expected), "{written}");
        }
    }

    #[test]
    fn what_is_no_address_is_none() {
        let long = format!("{}@x.com", "a".repeat(300));
        for written in ["", " ", "john", "@x.com", "john@", "+14158675309", "undisclosed-recipients:;", "<>", "a b@", long.as_str(), "\0"] {
            assert_eq!(normalise(written), None, "{written}");
        }
    }

    #[test]
    fn the_mailbox_is_what_remains_without_tag() {
        for (address, expected) in [
            ("john+news@example.com", "john@example.com"),
            ("john+a+b@example.com", "john@example.com"),
            ("+tag@example.com", "+tag@example.com"),
            ("j.o.hn@example.com", "j.o.hn@example.com"),
            ("j.o.hn+x@gmail.com", "john@gmail.com"),
            ("john@googlemail.com", "john@gmail.com"),
        ] {
            assert_eq!(without_tag(address), expected);
        }
    }
}
