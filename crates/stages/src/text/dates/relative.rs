//! Relative days: `tomorrow`, `in zwei Wochen`, `next Friday`, `Ende des Monats`.

use chrono::{Datelike as _, Days, Months, NaiveDate, Weekday};
use regex::Captures;

use super::super::numerals::small;
use super::{Day, Read};

pub(super) const WEEKDAY: &str = r"(?P<weekday>monday|tuesday|wednesday|thursday|friday|saturday|sunday|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag)(?:s|abend|morgen|nachmittag|vormittag)?";

pub(super) const PATTERNS: &[(&str, Read)] = &[
    (r"(?i)\b(?P<date>day after tomorrow|übermorgen)\b", |_, today| ahead(today, 2)),
    (r"(?i)\b(?P<date>day before yesterday|vorgestern)\b", |_, today| back(today, 2)),
    (r"(?i)\b(?P<date>tomorrow)\b", |_, today| ahead(today, 1)),
    // Capitalized, it means the morning: `guten Morgen`, `am Morgen`. At the start of a sentence it is ambiguous, and the day is
    // likelier.
    (r"(?:^|[.!?]\s+|[^\p{L}])(?P<date>morgen)(?:\s+(?:früh|vormittag|mittag|nachmittag|abend))?\b", |_, today| ahead(today, 1)),
    (r"(?m)(?:^|[.!?]\s+)(?P<date>Morgen)\s+(?:früh|um|gegen|vormittag|nachmittag|abend|werde|ist|haben|kommt)\b", |_, today| {
        ahead(today, 1)
    }),
    (r"(?i)\b(?P<date>yesterday|gestern)\b", |_, today| back(today, 1)),
    (r"(?i)\b(?P<date>today|tonight|this (?:morning|afternoon|evening)|heute(?:\s+(?:abend|nachmittag|mittag))?)\b", |_, today| {
        ahead(today, 0)
    }),
    (r"(?i)\b(?P<date>in (?P<n>\p{L}+|\d{1,3})(?: of)? (?P<unit>days?|weeks?|months?|tag(?:en)?|wochen?|monat(?:en)?))\b", later),
    (r"(?i)\b(?P<date>(?P<n>\p{L}+|\d{1,3}) (?P<unit>days?|weeks?|months?) (?:ago))\b", earlier),
    (r"(?i)\b(?P<date>vor (?P<n>\p{L}+|\d{1,3}) (?P<unit>tag(?:en)?|wochen?|monat(?:en)?))\b", earlier),
    (r"(?i)\b(?P<date>(?P<which>next|this|last|coming|nächste[nrs]?|kommende[nrs]?|diese[nrs]?|letzte[nrs]?)\s+WEEKDAY)\b", weekday),
    (r"(?i)\b(?:on|by|until|before|am|bis|vor|ab|since|seit)\s+(?P<date>WEEKDAY)\b", weekday),
    (r"(?i)\b(?P<date>(?P<which>next|this|nächste[nr]?|kommende[nr]?|diese[nr]?)\s+(?:week|woche))\b", week),
    (r"(?i)\b(?P<date>(?P<which>next|this|nächste[nrs]?|kommende[nrs]?|diese[nrs]?)\s+(?:month|monats?))\b", month),
    (r"(?i)\b(?P<date>(?:the )?end of (?:the|this) week|ende (?:der|dieser) woche)\b", |_, today| {
        on_or_after(today, Weekday::Fri).map(Day::counted)
    }),
    (r"(?i)\b(?P<date>(?:the )?end of (?:the|this) month|ende (?:des|dieses) monats|monatsende)\b", |_, today| {
        today.with_day(1)?.checked_add_months(Months::new(1))?.pred_opt().map(Day::counted)
    }),
];

fn ahead(today: NaiveDate, days: u64) -> Option<Day> {
    today.checked_add_days(Days::new(days)).map(Day::counted)
}

fn back(today: NaiveDate, days: u64) -> Option<Day> {
    today.checked_sub_days(Days::new(days)).map(Day::counted)
}

fn span(captures: &Captures<'_>) -> Option<(u32, char)> {
    let n = small(captures.name("n")?.as_str()).and_then(|n| u32::try_from(n).ok())?;
    // The first letter identifies the unit: day or Tag, week or Woche, month or Monat.
    Some((n, captures.name("unit")?.as_str().chars().next()?.to_ascii_lowercase()))
}

fn later(captures: &Captures<'_>, today: NaiveDate) -> Option<Day> {
    match span(captures)? {
        (n, 'd' | 't') => ahead(today, n.into()),
        (n, 'w') => ahead(today, u64::from(n) * 7),
        (n, _) => today.checked_add_months(Months::new(n)).map(Day::counted),
    }
}

fn earlier(captures: &Captures<'_>, today: NaiveDate) -> Option<Day> {
    match span(captures)? {
        (n, 'd' | 't') => back(today, n.into()),
        (n, 'w') => back(today, u64::from(n) * 7),
        (n, _) => today.checked_sub_months(Months::new(n)).map(Day::counted),
    }
}

/// The next such weekday after today; `last` looks back. `Next Friday` said on a Monday means the one of next week, and so does
/// `nächsten Freitag`. People do not agree on this, so the other reading is returned as well.
fn weekday(captures: &Captures<'_>, today: NaiveDate) -> Option<Day> {
    let named = by_name(captures.name("weekday")?.as_str())?;
    let which = captures.name("which").map_or("", |which| which.as_str()).to_lowercase();
    let coming = on_or_after(today.succ_opt()?, named)?;
    if which.starts_with("la") || which.starts_with("le") {
        return on_or_after(today.checked_sub_days(Days::new(7))?, named).map(Day::counted);
    }
    if !(which.starts_with("next") || which.starts_with("näch")) || coming.iso_week() != today.iso_week() {
        return Some(Day::counted(coming));
    }
    let date = coming.checked_add_days(Days::new(7))?;
    Some(Day { or: Some(coming), ..Day::counted(date) })
}

fn is_this(captures: &Captures<'_>) -> bool {
    captures.name("which").is_some_and(|which| ["this", "dies"].iter().any(|this| which.as_str().to_lowercase().starts_with(this)))
}

fn week(captures: &Captures<'_>, today: NaiveDate) -> Option<Day> {
    let monday = today.checked_sub_days(Days::new(today.weekday().num_days_from_monday().into()))?;
    let days = if is_this(captures) { 0 } else { 7 };
    monday.checked_add_days(Days::new(days)).map(|date| Day::counted(date).within("week"))
}

fn month(captures: &Captures<'_>, today: NaiveDate) -> Option<Day> {
    let months = if is_this(captures) { 0 } else { 1 };
    today.with_day(1)?.checked_add_months(Months::new(months)).map(|date| Day::counted(date).within("month"))
}

fn on_or_after(from: NaiveDate, named: Weekday) -> Option<NaiveDate> {
    from.checked_add_days(Days::new(named.days_since(from.weekday()).into()))
}

fn by_name(name: &str) -> Option<Weekday> {
    let start: String = name.to_lowercase().chars().take(2).collect();
    Some(match start.as_str() {
        "mo" => Weekday::Mon,
        "tu" | "di" => Weekday::Tue,
        "we" | "mi" => Weekday::Wed,
        "th" | "do" => Weekday::Thu,
        "fr" => Weekday::Fri,
        "sa" => Weekday::Sat,
        "su" => Weekday::Sun,
        // Sonnabend (Saturday) must not be read as Sonntag (Sunday).
        "so" if name.to_lowercase().starts_with("sonnabend") => Weekday::Sat,
        "so" => Weekday::Sun,
        _ => return None,
    })
}
