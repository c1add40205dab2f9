//! Telephone numbers.

use rlibphonenumber::{CountryCodeSource, NumberLengthType, PHONE_NUMBER_UTIL, PhoneNumberFormat, Region};

/// Channel prefixes that may be written before a number.
const CHANNELS: &[&str] = &["whatsapp:", "tel:", "sms:"];

/// Withheld callers, as Twilio spells them on a keypad: ANONYMOUS, RESTRICTED, BLOCKED, UNKNOWN, UNAVAILABLE. An explicit list,
/// because some look like real numbers: without the plus one is a line in Austin, Texas.
const WITHHELD_NUMBERS: &[&str] = &["266696687", "7378742833", "2562533", "8656696", "86282452253"];
const WITHHELD_WORDS: &[&str] = &["anonymous", "restricted", "blocked", "unknown", "unavailable", "private"];

/// The most digits of a short code, which networks use as it is written.
const SHORT_CODE: usize = 6;
/// The fewest digits before what is taken as an extension.
const BEFORE_EXTENSION: usize = 7;
const EXTENSION_WORDS: &[&str] = &["", "x", "ext", "extn", "extension"];

/// A number in the form in which it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    /// E.164 without extension; the plain digits of an impossible number; a short code as written.
    pub address: String,
    /// The last ten digits, where comparing them is meaningful: in country code 1, or for a number written without a country.
    pub loose: Option<String>,
}

/// The form in which a number is compared; `None` for what is not a number, withheld callers included. `region` (`US`) is the
/// country of numbers written without one; `+…` does not need it.
pub fn normalise(text: &str, region: &str) -> Option<String> {
    read(text, region).map(|number| number.address)
}

/// As [`normalise`], with the digits for a second, looser match.
pub fn read(text: &str, region: &str) -> Option<Number> {
    if is_withheld(text) {
        return None;
    }
    let number = without_extension(without_channel(text))?;
    let digits = PHONE_NUMBER_UTIL.normalize_digits_only(number);
    if digits.is_empty() {
        return None;
    }
    let exactly = |address: &str| Some(Number { address: address.to_owned(), loose: None });
    // Networks use a short code as it is. Parsed with a country it would become another subscriber's number.
    if digits.len() <= SHORT_CODE && number == digits && !digits.starts_with('0') {
        return exactly(number);
    }
    if let Some(possible) = possible(number, &digits, region) {
        return Some(possible);
    }
    if is_old_mexican_mobile(number, &digits) {
        return exactly(&format!("+{digits}"));
    }
    exactly(if digits.len() <= SHORT_CODE { number } else { &digits })
}

/// Checks for possible, not valid numbers: many genuine numbers, and all those reserved for tests, are not valid by the numbering
/// plan.
fn possible(number: &str, digits: &str, region: &str) -> Option<Number> {
    let region: Option<Region> = region.trim().to_ascii_uppercase().parse().ok();
    let parsed = PHONE_NUMBER_UTIL.parse_and_keep_raw_input(number, region).ok()?;
    if !matches!(PHONE_NUMBER_UTIL.is_possible_number_with_reason(&parsed), Ok(NumberLengthType::IsPossible)) {
        return None;
    }
    let address = parsed.format_as(PhoneNumberFormat::E164).into_owned();
    let here = parsed.country_code_source() == CountryCodeSource::FromDefaultCountry;
    let loose = match (parsed.country_code, digits.as_bytes()) {
        (1, _) => address.strip_prefix("+1").map(str::to_owned),
        // Ten digits written without a country, in the form that country code 1 has.
        (_, [b'2'..=b'9', rest @ ..]) if here && rest.len() == 9 => Some(digits.to_owned()),
        (_, [b'1', b'2'..=b'9', rest @ ..]) if here && rest.len() == 9 => Some(digits[1..].to_owned()),
        _ => None,
    };
    Some(Number { address, loose })
}

/// `+52 1` before ten digits: no longer possible by the numbering plan, but some networks still send it. Matching knows both forms
/// (`gleaner.phone_aliases`).
fn is_old_mexican_mobile(number: &str, digits: &str) -> bool {
    number.trim_start_matches('(').starts_with('+') && digits.len() == 13 && digits.starts_with("521")
}

/// Whether the caller's number is withheld.
pub fn is_withheld(text: &str) -> bool {
    let bare = without_channel(text);
    match bare.strip_prefix('+') {
        Some(rest) => {
            let digits: String = rest.chars().filter(char::is_ascii_digit).collect();
            WITHHELD_NUMBERS.contains(&digits.as_str()) || is_withheld_word(rest)
        }
        None => is_withheld_word(bare),
    }
}

fn is_withheld_word(text: &str) -> bool {
    WITHHELD_WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Removes the channel prefix, `whatsapp:+1…`. Providers are not consistent about its case.
fn without_channel(text: &str) -> &str {
    let text = text.trim();
    let channel = CHANNELS.iter().find(|channel| text.get(..channel.len()).is_some_and(|start| start.eq_ignore_ascii_case(channel)));
    channel.map_or(text, |channel| text[channel.len()..].trim_start())
}

/// The number before `x123`, `ext. 123`, `;ext=123` or `#123`; `None` where letters mean anything else: a word, a business-scoped
/// id, a number spelt in letters.
fn without_extension(text: &str) -> Option<&str> {
    let Some(at) = text.find(|c: char| c.is_alphabetic() || matches!(c, '#' | ';' | '@')) else {
        return Some(text);
    };
    let (number, tail) = text.split_at(at);
    let word: String = tail.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).count();
    let is_extension = EXTENSION_WORDS.contains(&word.as_str()) && !tail.contains('@') && digits(number) >= BEFORE_EXTENSION;
    is_extension.then(|| number.trim_end())
}

#[cfg(test)]
mod tests;
