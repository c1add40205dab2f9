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
mod tests {
    use super::*;

    fn is(text: &str, region: &str, expected: &str) {
        assert_eq!(normalise(text, region).as_deref(), Some(expected), "{text} [{region}]");
    }

    #[test]
    fn numbers_are_read_as_in_the_table_of_formats() {
        is("(415) 867-5309", "US", "+14158675309");
        is("4158675309 x123", "US", "+14158675309");
        is("011 44 20 7946 0958", "US", "+442079460958");
        is("+44 (0)20 7946 0958", "US", "+442079460958");
        is("06 6982", "IT", "+39066982");
        is("8 (495) 123-45-67", "RU", "+74951234567");
        is("011 15 2345-6789", "AR", "+5491123456789");
        is("+1234567890", "US", "1234567890");
        is("0044 20 7946 0958", "US", "00442079460958");
    }

    /// The numbers that another library parses wrongly when it is given a region.
    #[test]
    fn a_plus_does_not_need_the_region() {
        for region in ["US", "DE", "", "nonsense"] {
            is("+33123456789", region, "+33123456789");
            is("+5511987654321", region, "+5511987654321");
            is("+14158675309", region, "+14158675309");
        }
    }

    #[test]
    fn channels_extensions_and_ornaments_are_not_part_of_the_number() {
        for text in [
            "whatsapp:+14158675309",
            "WhatsApp: +1 415 867 5309",
            "tel:+1-415-867-5309;ext=22",
            "sms:4158675309",
            "+1 (415) 867-5309 ext. 4",
            "+1.415.867.5309 extension 12",
            "415-867-5309 #7",
            " 1-415-867-5309 ",
            "(+1) 415 8675309",
            "４１５-８６７-５３０９",
        ] {
            is(text, "us", "+14158675309");
        }
    }

    #[test]
    fn possible_is_enough() {
        is("+1 555 010 0199", "US", "+15550100199");
        is("+15005550006", "US", "+15005550006");
        is("whatsapp:+5215512345678", "US", "+5215512345678");
        // A number to be dialled within one town does not identify a subscriber.
        is("867-5309", "US", "8675309");
    }

    #[test]
    fn short_codes_stay_as_they_are_written() {
        for region in ["US", "DE", "IT"] {
            is("384387", region, "384387");
            is("12345", region, "12345");
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "",
            " ",
            "-",
            "john@example.com",
            "123@example.com",
            "whatsapp:US.1349ABCDEF",
            "US.1349",
            "1-800-FLOWERS",
            "Mobile",
            "(415) 867-5309 mobile",
            "telegram:12345",
        ] {
            assert_eq!(normalise(text, "US"), None, "{text}");
        }
    }

    #[test]
    fn withheld_callers_match_no_contact() {
        let numbers = ["+266696687", "+7378742833", "+2562533", "+8656696", "+86282452253", "whatsapp:+266696687", "+737 874 2833"];
        let words = ["anonymous", "Restricted", "unknown", "UNAVAILABLE", "private", "blocked"];
        for text in numbers.into_iter().chain(words) {
            assert!(is_withheld(text), "{text}");
            assert_eq!(normalise(text, "US"), None, "{text}");
        }
        // A real line in Austin, Texas.
        assert!(!is_withheld("737-874-2833"));
        is("737-874-2833", "US", "+17378742833");
        is("+1 737 874 2833", "US", "+17378742833");
    }

    #[test]
    fn ten_digits_are_compared_only_where_they_may_mean_something() {
        let loose = |text: &str, region: &str| read(text, region).and_then(|number| number.loose);
        assert_eq!(loose("(415) 867-5309", "US").as_deref(), Some("4158675309"));
        assert_eq!(loose("(415) 867-5309", "GB").as_deref(), Some("4158675309"));
        assert_eq!(loose("+44 4158675309", "US"), None);
        assert_eq!(loose("+33415867530", "US"), None);
        // An impossible number never gets a loose match. And these digits include their country.
        assert_eq!(loose("0044 20 7946 0958", "US"), None);
        assert_eq!(loose("011 44 20 7946 0958", "US"), None);
        assert_eq!(loose("+1234567890", "US"), None);
    }
}
