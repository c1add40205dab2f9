//! Calendar dates: `2026-11-17`, `17.11.`, `17. November`, `Nov 17th`, `11/17/2026`.

use chrono::NaiveDate;
use regex::Captures;

use super::{Day, Read, nearest};

pub(super) const MONTH: &str = r"(?P<month>jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|mär|mrz|apr(?:il)?|may|mai|jun[ei]?|jul[yi]?|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\b\.?";

pub(super) const PATTERNS: &[(&str, Read)] = &[
    (r"\b(?P<date>(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2}))(?:\b|T)", whole),
    (r"\b(?P<date>(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4}|\d{2}))\b", whole),
    (r"\b(?P<date>(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<y>\d{4}|\d{2}))\b", slashes),
    (r"(?i)\b(?P<date>(?P<d>\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?MONTH(?:,?\s+(?P<y>\d{4}))?)", by_name),
    (r"(?i)\b(?P<date>MONTH\s+(?P<d>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<y>\d{4}))?)\b", by_name),
    (r"\b(?P<date>(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.)(?:\s|$|,|\))", without_year),
];

fn number(captures: &Captures<'_>, name: &str) -> Option<u32> {
    captures.name(name)?.as_str().parse().ok()
}

fn year(captures: &Captures<'_>) -> Option<i32> {
    let text = captures.name("y")?.as_str();
    let year: i32 = text.parse().ok()?;
    Some(if text.len() == 2 { 2000 + year } else { year })
}

fn whole(captures: &Captures<'_>, _: NaiveDate) -> Option<Day> {
    NaiveDate::from_ymd_opt(year(captures)?, number(captures, "m")?, number(captures, "d")?).map(Day::named)
}

/// Month first, as in American dates. The other reading is also returned if there is one.
fn slashes(captures: &Captures<'_>, _: NaiveDate) -> Option<Day> {
    let (a, b, year) = (number(captures, "a")?, number(captures, "b")?, year(captures)?);
    let (american, other) = (NaiveDate::from_ymd_opt(year, a, b), NaiveDate::from_ymd_opt(year, b, a));
    let date = american.or(other)?;
    Some(Day { or: other.filter(|other| american.is_some() && *other != date), ..Day::named(date) })
}

fn by_name(captures: &Captures<'_>, today: NaiveDate) -> Option<Day> {
    let (month, day) = (month(captures.name("month")?.as_str())?, number(captures, "d")?);
    match year(captures) {
        Some(year) => NaiveDate::from_ymd_opt(year, month, day).map(Day::named),
        None => nearest(today, month, day).map(Day::counted),
    }
}

fn without_year(captures: &Captures<'_>, today: NaiveDate) -> Option<Day> {
    nearest(today, number(captures, "m")?, number(captures, "d")?).map(Day::counted)
}

/// The month by its first three letters, in English or German.
fn month(name: &str) -> Option<u32> {
    let start: String = name.to_lowercase().chars().take(3).collect();
    Some(match start.as_str() {
        "jan" => 1,
        "feb" => 2,
        "mar" | "mär" | "mrz" => 3,
        "apr" => 4,
        "may" | "mai" => 5,
        "jun" => 6,
        "jul" => 7,
        "aug" => 8,
        "sep" => 9,
        "oct" | "okt" => 10,
        "nov" => 11,
        "dec" | "dez" => 12,
        _ => return None,
    })
}
