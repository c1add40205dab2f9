//! Finds addresses, prices and dates by their form.

use std::ops::Range;
use std::sync::LazyLock;

use chrono::{DateTime, FixedOffset};
use linkify::{LinkFinder, LinkKind};
use regex::Regex;
use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumberFormat, Region};
use serde::Serialize;

use super::dates::{self, When};
use super::money::{self, Money};
use super::pattern;

/// The entities, each listed once, in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Entities {
    pub emails: Vec<String>,
    pub phones: Vec<Phone>,
    pub links: Vec<String>,
    pub money: Vec<Money>,
    pub dates: Vec<When>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Phone {
    pub text: String,
    /// In international format (E.164).
    pub number: String,
}

/// Digits with the usual separators. The library decides whether they are a telephone number.
static PHONE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:\+|\b00|\(0|\(\+|\b0|\b\(?[2-9]\d{2}\)?[ .\-]?)[\d(][\d \u{a0}()/.\-]{4,20}\d\b"));

/// `region` is the country of numbers without a country code (`DE`); `written` is when the text was written.
pub fn find(text: &str, region: Option<&str>, written: DateTime<FixedOffset>) -> Entities {
    let mut found = Entities::default();
    let mut taken: Vec<Range<usize>> = Vec::new();
    for link in LinkFinder::new().links(text) {
        taken.push(link.start()..link.end());
        match link.kind() {
            LinkKind::Email => once(&mut found.emails, link.as_str().to_lowercase()),
            _ => once(&mut found.links, link.as_str().to_owned()),
        }
    }
    let free = |place: &Range<usize>, taken: &[Range<usize>]| !taken.iter().any(|t| t.start < place.end && place.start < t.end);
    for (place, amount) in money::find(text) {
        if free(&place, &taken) {
            taken.push(place);
            once(&mut found.money, amount);
        }
    }
    for (place, when) in dates::find(text, written) {
        if free(&place, &taken) {
            taken.push(place);
            once(&mut found.dates, when);
        }
    }
    for candidate in PHONE.find_iter(text).filter(|candidate| free(&candidate.range(), &taken)) {
        if let Some(number) = phone(candidate.as_str(), region) {
            let phone = Phone { text: candidate.as_str().trim().to_owned(), number };
            if !found.phones.iter().any(|known| known.number == phone.number) {
                found.phones.push(phone);
            }
        }
    }
    found
}

fn once<T: PartialEq>(all: &mut Vec<T>, new: T) {
    if !all.contains(&new) {
        all.push(new);
    }
}

/// Requires a valid number if a country is known, because order numbers have as many digits.
fn phone(text: &str, region: Option<&str>) -> Option<String> {
    let region: Option<Region> = region.and_then(|region| region.trim().to_ascii_uppercase().parse().ok());
    let international = text.trim_start_matches('(').starts_with('+') || text.starts_with("00");
    let text = text.strip_prefix("00").map_or_else(|| text.to_owned(), |rest| format!("+{rest}"));
    if !international && region.is_none() {
        return None;
    }
    let parsed = PHONE_NUMBER_UTIL.parse(&text, region).ok()?;
    PHONE_NUMBER_UTIL.is_valid_number(&parsed).then(|| parsed.format_as(PhoneNumberFormat::E164).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> DateTime<FixedOffset> {
        DateTime::parse_from_rfc3339("2026-11-16T09:00:00+00:00").expect("a time")
    }

    #[test]
    fn an_english_mail_gives_up_what_is_in_it() {
        let text = "Hi, I'm Ann.Lee@Example.com, reach me on (415) 555-2671 or +44 20 7946 0018. \
            The offer at https://example.com/offer?id=7 was $1,200; can we talk tomorrow at 3 pm?";
        let found = find(text, Some("US"), at());
        assert_eq!(found.emails, ["ann.lee@example.com"]);
        assert_eq!(found.links, ["https://example.com/offer?id=7"]);
        assert_eq!(found.phones.iter().map(|p| p.number.as_str()).collect::<Vec<_>>(), ["+14155552671", "+442079460018"]);
        assert_eq!(found.money[0].amount, "1200");
        assert_eq!(found.dates[0].date.to_string(), "2026-11-17");
    }

    #[test]
    fn a_german_mail_as_well() {
        let text = "Bitte um Rückruf unter 030 23125 111 oder 0049 89 2180 0 bis Freitag. Das Angebot über 2.500,00 € gilt bis 30.11.2026.";
        let found = find(text, Some("DE"), at());
        assert_eq!(found.phones.iter().map(|p| p.number.as_str()).collect::<Vec<_>>(), ["+493023125111", "+498921800"]);
        assert_eq!((found.money[0].amount.as_str(), found.money[0].currency), ("2500.00", "EUR"));
        assert_eq!(found.dates.iter().map(|d| d.date.to_string()).collect::<Vec<_>>(), ["2026-11-20", "2026-11-30"]);
    }

    #[test]
    fn a_number_without_country_is_no_phone_unless_a_region_is_set() {
        assert_eq!(find("order 4155552671", None, at()).phones, []);
        assert_eq!(find("order 1234567890123", Some("US"), at()).phones, []);
    }
}
