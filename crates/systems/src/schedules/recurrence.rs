//! When a schedule has its occurrences: a cron expression in a time zone.

use chrono::{DateTime, LocalResult, TimeZone as _, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

/// A cron expression with its time zone.
#[derive(Debug, Clone)]
pub struct Recurrence {
    cron: Cron,
    zone: Tz,
    /// The hours are a list and not `*`: an hour that the clock shows twice counts once.
    hours_named: bool,
}

impl Recurrence {
    /// The error says what to write instead.
    pub fn read(cron: &str, zone: &str) -> Result<Self, String> {
        let instead = "write minute, hour, day of month, month and day of week, such as \"0 9 * * MON-FRI\", or @daily";
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let read = parser.parse(cron.trim()).map_err(|error| format!("{cron:?} is no cron expression ({error}); {instead}"))?;
        let zone = zone.parse().map_err(|_| format!("{zone:?} is no time zone; write one such as Europe/Berlin"))?;
        let hours_named =
            read.pattern.hours.values().len() < 24 && !cron.split_whitespace().nth(1).is_some_and(|hours| hours.starts_with('*'));
        let recurrence = Self { cron: read, zone, hours_named };
        let happens = recurrence.after(Utc::now()).next().is_some();
        if happens { Ok(recurrence) } else { Err(format!("{cron:?} never happens; {instead}")) }
    }

    /// The occurrences after a time, in order. A time that the clock skips is the first moment after the gap.
    pub fn after(&self, time: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> + '_ {
        let mut last = time.with_timezone(&self.zone);
        let next = move || {
            last = self.cron.find_next_occurrence(&last, false).ok()?;
            Some(last)
        };
        std::iter::from_fn(next).filter(|at| !(self.hours_named && self.is_second(at))).map(|at| at.with_timezone(&Utc))
    }

    /// Whether the clock has shown this time before, an hour ago as a rule.
    fn is_second(&self, at: &DateTime<Tz>) -> bool {
        matches!(self.zone.from_local_datetime(&at.naive_local()), LocalResult::Ambiguous(first, _) if first < *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The occurrences between two times, as the clock of the zone shows them.
    fn between(cron: &str, zone: &str, from: &str, until: &str) -> Vec<String> {
        let (from, until): (DateTime<Utc>, DateTime<Utc>) = (from.parse().expect("a time"), until.parse().expect("a time"));
        let recurrence = Recurrence::read(cron, zone).expect("readable");
        let local = |at: DateTime<Utc>| at.with_timezone(&recurrence.zone).format("%d %H:%M%:z").to_string();
        recurrence.after(from).take_while(|at| *at < until).map(local).collect()
    }

    #[test]
    fn a_time_in_the_gap_of_spring_happens_once_right_after_it() {
        let berlin = between("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", "2027-03-29T12:00:00Z");
        assert_eq!(berlin, ["28 03:00+02:00", "29 02:30+02:00"]);
        let santiago = between("0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", "2026-09-07T12:00:00Z");
        assert_eq!(santiago, ["06 01:00-03:00", "07 00:00-03:00"]);
        let cairo = between("0 0 * * *", "Africa/Cairo", "2027-04-29T12:00:00Z", "2027-05-01T12:00:00Z");
        assert_eq!(cairo, ["30 01:00+03:00", "01 00:00+03:00"]);
        let lord_howe = between("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-05T00:00:00Z");
        assert_eq!(lord_howe, ["04 02:30+11:00", "05 02:15+11:00"]);
        assert_eq!(between("0 2,3 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", "2027-03-28T12:00:00Z"), ["28 03:00+02:00"]);
    }

    #[test]
    fn a_time_that_autumn_shows_twice_happens_once() {
        let daily = between("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
        assert_eq!(daily, ["25 02:30+02:00", "26 02:30+01:00"]);
        let listed = between("0 2,3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z");
        assert_eq!(listed, ["25 02:00+02:00", "25 03:00+01:00"]);
    }

    #[test]
    fn an_interval_goes_on_through_the_hour_that_autumn_shows_twice() {
        let every = between("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:59:00Z", "2026-10-25T02:01:00Z");
        assert_eq!(every, ["25 02:00+02:00", "25 02:30+02:00", "25 02:00+01:00", "25 02:30+01:00", "25 03:00+01:00"]);
    }

    #[test]
    fn monday_is_one_sunday_zero_and_day_of_month_or_week_is_enough() {
        let either = between("0 9 1 * 1", "UTC", "2026-11-18T00:00:00Z", "2026-12-02T00:00:00Z");
        assert_eq!(either, ["23 09:00+00:00", "30 09:00+00:00", "01 09:00+00:00"]);
        assert_eq!(between("0 9 * * 0", "UTC", "2026-11-18T00:00:00Z", "2026-11-23T00:00:00Z"), ["22 09:00+00:00"]);
    }

    #[test]
    fn what_cannot_be_read_or_never_happens_is_refused_with_what_to_write() {
        for (cron, zone, says) in [
            ("0 9 31 2 *", "UTC", "never happens"),
            ("every day", "UTC", "MON-FRI"),
            ("* * * * * *", "UTC", "no cron expression"),
            ("@daily", "Berlin", "Europe/Berlin"),
        ] {
            let error = Recurrence::read(cron, zone).expect_err(cron);
            assert!(error.contains(says), "{error}");
        }
    }
}
