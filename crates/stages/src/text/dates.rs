//! Finds dates and times as people write them, and resolves them relative to the day they were written.

mod calendar;
mod relative;

use std::ops::Range;
use std::sync::LazyLock;

use chrono::{DateTime, Datelike as _, FixedOffset, NaiveDate, NaiveTime};
use regex::{Captures, Regex};
use serde::Serialize;

use super::pattern;

/// A date as written, and its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct When {
    pub text: String,
    /// The day, or the first day of the span.
    pub date: NaiveDate,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "minutes")]
    pub time: Option<NaiveTime>,
    /// Its precision: `minute`, `day`, `week` or `month`.
    pub precision: &'static str,
    /// The day it is relative to. None when the text names the day in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_from: Option<NaiveDate>,
    /// The other possible day, if day and month could be swapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub or: Option<NaiveDate>,
}

fn minutes<S: serde::Serializer>(time: &Option<NaiveTime>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&time.map(|time| time.format("%H:%M").to_string()).unwrap_or_default())
}

/// A day that was found, before its time is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Day {
    date: NaiveDate,
    precision: &'static str,
    counted: bool,
    or: Option<NaiveDate>,
}

impl Day {
    fn named(date: NaiveDate) -> Self {
        Self { date, precision: "day", counted: false, or: None }
    }

    fn counted(date: NaiveDate) -> Self {
        Self { date, precision: "day", counted: true, or: None }
    }

    fn within(self, precision: &'static str) -> Self {
        Self { precision, ..self }
    }
}

/// Converts the match of a pattern to a day.
type Read = fn(&Captures<'_>, NaiveDate) -> Option<Day>;

static PATTERNS: LazyLock<Vec<(Regex, Read)>> = LazyLock::new(|| {
    let all = calendar::PATTERNS.iter().chain(relative::PATTERNS);
    all.map(|(text, read)| (pattern(&text.replace("MONTH", calendar::MONTH).replace("WEEKDAY", relative::WEEKDAY)), *read)).collect()
});

/// A time directly after a date, or directly before it.
const TIME: &str = r"(?:(?P<h>\d{1,2})(?:[:.](?P<m>\d{2}))?\s?(?P<half>a\.?m\.?|p\.?m\.?)|(?P<h2>\d{1,2})[:.](?P<m2>\d{2})(?:\s?uhr)?|(?P<h3>\d{1,2})(?:\s?uhr|\s?o'clock)|(?P<noon>noon|midday|mittags?|midnight|mitternacht))";
static TIME_AFTER: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"(?i)^,?\s*(?:at|um|gegen|around|ab|from|@)?\s*{TIME}(?:\b|$)")));
static TIME_BEFORE: LazyLock<Regex> =
    LazyLock::new(|| pattern(&format!(r"(?i)(?:\b(?:at|um|gegen|around)\s+)?\b{TIME},?\s*(?:on|am)?\s*$")));

/// Dates in the order of the text, with their positions. `written` is when the text was written, in the writer's own time zone.
pub fn find(text: &str, written: DateTime<FixedOffset>) -> Vec<(Range<usize>, When)> {
    let today = written.date_naive();
    let mut found: Vec<(Range<usize>, When)> = Vec::new();
    for (pattern, read) in PATTERNS.iter() {
        for captures in pattern.captures_iter(text) {
            let Some(place) = captures.name("date").or_else(|| captures.get(0)).map(|whole| whole.range()) else { continue };
            if found.iter().any(|(other, _)| other.start < place.end && place.start < other.end) {
                continue;
            }
            let Some(day) = read(&captures, today) else { continue };
            found.push(with_time(text, place, day, today));
        }
    }
    found.sort_by_key(|(place, _)| place.start);
    found
}

fn with_time(text: &str, mut place: Range<usize>, day: Day, today: NaiveDate) -> (Range<usize>, When) {
    let mut time = None;
    if let Some(captures) = TIME_AFTER.captures(&text[place.end..]) {
        time = clock(&captures);
        place.end += time.and(captures.get(0)).map_or(0, |whole| whole.end());
    }
    if time.is_none()
        && let Some(captures) = TIME_BEFORE.captures(&text[..place.start])
    {
        time = clock(&captures);
        place.start = time.and(captures.get(0)).map_or(place.start, |whole| whole.start());
    }
    let precision = if time.is_some() { "minute" } else { day.precision };
    let text = text[place.clone()].trim().to_owned();
    (place, When { text, date: day.date, time, precision, counted_from: day.counted.then_some(today), or: day.or })
}

fn clock(captures: &Captures<'_>) -> Option<NaiveTime> {
    let number = |name: &str| captures.name(name).and_then(|part| part.as_str().parse::<u32>().ok());
    if let Some(word) = captures.name("noon") {
        let hour = if word.as_str().to_lowercase().starts_with("mid") && !word.as_str().eq_ignore_ascii_case("midday") { 0 } else { 12 };
        return NaiveTime::from_hms_opt(if word.as_str().eq_ignore_ascii_case("mitternacht") { 0 } else { hour }, 0, 0);
    }
    let hour = number("h").or_else(|| number("h2")).or_else(|| number("h3"))?;
    let minute = number("m").or_else(|| number("m2")).unwrap_or(0);
    let hour = match captures.name("half").map(|half| half.as_str().to_lowercase().starts_with('p')) {
        Some(true) if hour < 12 => hour + 12,
        Some(false) if hour == 12 => 0,
        _ => hour,
    };
    NaiveTime::from_hms_opt(hour, minute, 0)
}

/// The day for a date without a year: the nearest one in the future, or one in the recent past.
fn nearest(today: NaiveDate, month: u32, day: u32) -> Option<NaiveDate> {
    let in_year = |year: i32| NaiveDate::from_ymd_opt(year, month, day);
    let this = in_year(today.year());
    match this {
        // Three months back is more likely than nine months ahead.
        Some(date) if (today - date).num_days() > 90 => in_year(today.year() + 1).or(this),
        Some(date) => Some(date),
        None => in_year(today.year() + 1),
    }
}

#[cfg(test)]
mod tests;
