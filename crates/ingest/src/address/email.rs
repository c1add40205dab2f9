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
mod tests;
