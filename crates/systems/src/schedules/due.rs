//! Which occurrences of a schedule become follow-ups now, and when to look again.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

use super::recurrence::Recurrence;

/// A schedule that was not looked at for longer is not made up for beyond this.
const LOOK_BACK: TimeDelta = TimeDelta::days(366);

/// What becomes of occurrences that are noticed too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Missed {
    Skip,
    /// The latest is made up for.
    Latest,
    /// All are, the latest up to a limit.
    All,
}

/// The answer of `gleaner.prepare_schedule`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Prepared {
    pub now: DateTime<Utc>,
    pub cron: String,
    pub time_zone: String,
    pub missed: Missed,
    pub missed_limit: usize,
    pub tolerance_seconds: f64,
    pub seen_until: DateTime<Utc>,
    pub ends_at: Option<DateTime<Utc>>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Due {
    pub occurrences: Vec<DateTime<Utc>>,
    /// How many were missed and are not made up for.
    pub missed: usize,
    pub seen_until: DateTime<Utc>,
    /// None if there will be no more.
    pub next: Option<DateTime<Utc>>,
}

impl Due {
    /// Occurrences after `seen_until` and up to `early` from now.
    pub(super) fn of(prepared: &Prepared, recurrence: &Recurrence, early: TimeDelta) -> Self {
        let until = prepared.now + early;
        let tolerance = TimeDelta::try_milliseconds((prepared.tolerance_seconds * 1000.0) as i64).unwrap_or(LOOK_BACK);
        let wanted = |at: &DateTime<Utc>| prepared.ends_at.is_none_or(|end| *at <= end);
        let mut missed = Vec::new();
        let mut occurrences = Vec::new();
        let mut seen_until = prepared.seen_until;
        let mut next = None;
        for at in recurrence.after(prepared.seen_until.max(prepared.now - LOOK_BACK)).take_while(wanted) {
            if at > until {
                next = Some(at);
                break;
            }
            seen_until = at;
            if prepared.now - at > tolerance { missed.push(at) } else { occurrences.push(at) }
        }
        let made_up = match prepared.missed {
            Missed::Skip => 0,
            // One that is on time already says what the latest would.
            Missed::Latest => usize::from(occurrences.is_empty()),
            Missed::All => prepared.missed_limit,
        };
        let skipped = missed.len().saturating_sub(made_up);
        occurrences.splice(0..0, missed.drain(skipped..));
        Self { occurrences, missed: skipped, seen_until, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hourly, last seen at 06:00, looked at at 09:59:57 with a window of five seconds: 07, 08 and 09 were missed, 10 is due.
    fn late(missed: Missed, limit: usize) -> Due {
        let at = |text: &str| text.parse().expect("a time");
        let prepared = Prepared {
            now: at("2026-11-18T09:59:57Z"),
            cron: "0 * * * *".into(),
            time_zone: "UTC".into(),
            missed,
            missed_limit: limit,
            tolerance_seconds: 300.0,
            seen_until: at("2026-11-18T06:00:00Z"),
            ends_at: None,
        };
        Due::of(&prepared, &Recurrence::read("0 * * * *", "UTC").expect("readable"), TimeDelta::seconds(5))
    }

    fn hours(due: &Due) -> Vec<String> {
        due.occurrences.iter().map(|at| at.format("%H").to_string()).collect()
    }

    #[test]
    fn missed_occurrences_are_skipped_or_made_up_for_by_policy() {
        let skip = late(Missed::Skip, 10);
        assert_eq!((hours(&skip), skip.missed), (vec!["10".to_owned()], 3));
        assert_eq!(skip.next, Some("2026-11-18T11:00:00Z".parse().expect("a time")));
        let latest = late(Missed::Latest, 10);
        assert_eq!((hours(&latest), latest.missed), (vec!["10".to_owned()], 3), "the one on time is the latest");
        let all = late(Missed::All, 2);
        assert_eq!((hours(&all), all.missed), (vec!["08".to_owned(), "09".to_owned(), "10".to_owned()], 1));
    }

    #[test]
    fn of_missed_ones_alone_the_latest_is_made_up_for() {
        let at = |text: &str| text.parse().expect("a time");
        let mut prepared = Prepared {
            now: at("2026-11-18T09:30:00Z"),
            cron: String::new(),
            time_zone: String::new(),
            missed: Missed::Latest,
            missed_limit: 10,
            tolerance_seconds: 300.0,
            seen_until: at("2026-11-18T06:00:00Z"),
            ends_at: None,
        };
        let hourly = Recurrence::read("0 * * * *", "UTC").expect("readable");
        let due = Due::of(&prepared, &hourly, TimeDelta::zero());
        assert_eq!((hours(&due), due.missed), (vec!["09".to_owned()], 2));
        prepared.tolerance_seconds = 3600.0;
        prepared.missed = Missed::Skip;
        assert_eq!(hours(&Due::of(&prepared, &hourly, TimeDelta::zero())), ["09"], "within the tolerance it is late and not missed");
        prepared.ends_at = Some(at("2026-11-18T08:00:00Z"));
        let ended = Due::of(&prepared, &hourly, TimeDelta::zero());
        assert_eq!((ended.occurrences, ended.next), (vec![], None), "there is no occurrence after the end");
    }
}
