use super::*;

/// A Monday.
fn monday() -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339("2026-11-16T09:00:00+01:00").expect("a time")
}

fn one(text: &str) -> When {
    let mut found = find(text, monday());
    assert_eq!(found.len(), 1, "{text}: {found:?}");
    found.remove(0).1
}

fn day(text: &str) -> String {
    one(text).date.to_string()
}

#[test]
fn days_of_the_calendar_are_read() {
    for (text, date) in [
        ("due 2026-12-01.", "2026-12-01"),
        ("am 17.11.2026 in Bonn", "2026-11-17"),
        ("bis zum 3.12. bitte", "2026-12-03"),
        ("am 3. Dezember", "2026-12-03"),
        ("on December 3rd, 2027", "2027-12-03"),
        ("the 3rd of March", "2027-03-03"),
        ("seit dem 1. Oktober", "2026-10-01"),
        ("11/17/2026", "2026-11-17"),
        ("17/11/2026", "2026-11-17"),
    ] {
        assert_eq!(day(text), date, "{text}");
    }
}

#[test]
fn days_are_counted_from_the_day_of_writing() {
    for (text, date) in [
        ("see you tomorrow", "2026-11-17"),
        ("wir sehen uns morgen", "2026-11-17"),
        ("Übermorgen passt", "2026-11-18"),
        ("in two weeks", "2026-11-30"),
        ("in drei Tagen", "2026-11-19"),
        ("vor zwei Wochen", "2026-11-02"),
        ("3 days ago", "2026-11-13"),
        ("by Friday", "2026-11-20"),
        ("am Mittwoch", "2026-11-18"),
        ("on Monday", "2026-11-23"),
        ("letzten Freitag", "2026-11-13"),
        ("next week", "2026-11-23"),
        ("nächsten Monat", "2026-12-01"),
        ("by the end of the month", "2026-11-30"),
        ("Ende der Woche", "2026-11-20"),
    ] {
        let when = one(text);
        assert_eq!((when.date.to_string().as_str(), when.counted_from), (date, Some(monday().date_naive())), "{text}");
    }
    assert_eq!(one("next week").precision, "week");
}

#[test]
fn the_time_belongs_to_its_day() {
    for (text, written, time) in [
        ("Call me tomorrow at 3 pm please", "tomorrow at 3 pm", "15:00"),
        ("morgen um 15 Uhr im Büro", "morgen um 15 Uhr", "15:00"),
        ("am 17.11.2026, 9:30 Uhr", "17.11.2026, 9:30 Uhr", "09:30"),
        ("at 10:15 on Friday", "at 10:15 on Friday", "10:15"),
        ("tomorrow at noon", "tomorrow at noon", "12:00"),
    ] {
        let when = one(text);
        assert_eq!(when.text, written, "{text}");
        assert_eq!((when.time.map(|t| t.format("%H:%M").to_string()).as_deref(), when.precision), (Some(time), "minute"), "{text}");
    }
}

#[test]
fn a_date_with_two_readings_has_both() {
    assert_eq!(one("3/4/2026").or.map(|d| d.to_string()).as_deref(), Some("2026-04-03"));
    let friday = one("next Friday");
    assert_eq!((friday.date.to_string().as_str(), friday.or.map(|d| d.to_string()).as_deref()), ("2026-11-27", Some("2026-11-20")));
}

#[test]
fn what_is_no_date_is_none() {
    for text in ["Guten Morgen zusammen", "am Morgen", "version 1.2.3", "may I ask", "room 31", "99.99.2026", "call 030 1234567"] {
        assert_eq!(find(text, monday()), [], "{text}");
    }
}
