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
mod tests;
