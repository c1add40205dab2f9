//! The current time in the database, for servers that answer with timestamps where our own answers with durations.
//!
//! A lease is the time of its claim by the database's clock, so every claim also gives the time. From there on our own monotonic
//! clock counts. It may stop while a laptop sleeps; the `Date` of the next response reveals that.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chrono::DateTime;

#[derive(Debug, Default)]
pub(super) struct Clock {
    known: Mutex<Option<Reading>>,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    /// The database's time when the call was sent, at the earliest.
    micros: i64,
    at: Instant,
    /// The `Date` of the server in front of it at that moment, in seconds.
    date: Option<i64>,
}

impl Clock {
    /// Records a fresh lease from a call that was sent at that moment.
    pub(super) fn saw_lease(&self, lease: i64, sent: Instant, date: Option<i64>) {
        *self.known.lock().expect("no panic holds it") = Some(Reading { micros: lease, at: sent, date });
    }

    /// Records a response with this date.
    pub(super) fn saw_date(&self, date: Option<i64>) {
        let (Some(date), Ok(mut known)) = (date, self.known.lock()) else { return };
        match &mut *known {
            None => *known = Some(Reading { micros: date * 1_000_000 + 500_000, at: Instant::now(), date: Some(date) }),
            Some(known) => {
                // Dates are whole seconds, so a difference of one second may mean nothing.
                let passed = known.date.map_or(0, |before| date - before - 1).max(0) * 1_000_000;
                if passed > micros(known.at.elapsed()) {
                    *known = Reading { micros: known.micros + passed, at: Instant::now(), date: Some(date) };
                }
            }
        }
    }

    /// The current time in microseconds. It errs on the late side: a lease must not be taken to last longer than it does.
    pub(super) fn now(&self) -> i64 {
        let known = *self.known.lock().expect("no panic holds it");
        known.map_or_else(
            || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros),
            |known| known.micros + micros(known.at.elapsed()),
        )
    }

    /// The time from now until a timestamp in PostgREST's format. Zero for a time in the past and for text that is not a
    /// timestamp.
    pub(super) fn until(&self, time: Option<&str>) -> Duration {
        let at = time.and_then(|time| DateTime::parse_from_rfc3339(time).ok()).map_or(0, |time| time.timestamp_micros());
        Duration::from_micros(u64::try_from(at - self.now()).unwrap_or(0))
    }

    /// The timestamp that is this far from now.
    pub(super) fn after(&self, wait: Duration) -> String {
        let at = self.now().saturating_add(micros(wait));
        DateTime::from_timestamp_micros(at).map_or_else(|| "infinity".to_owned(), |at| at.to_rfc3339())
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: i64 = 1_794_813_373_693_315;

    #[test]
    fn a_lease_contains_the_time() {
        let clock = Clock::default();
        clock.saw_lease(LEASE, Instant::now(), Some(5_000));
        let left = clock.until(Some("2026-11-16T07:21:13.693315+00:00"));
        let whole = Duration::from_micros(
            (DateTime::parse_from_rfc3339("2026-11-16T07:21:13.693315+00:00").unwrap().timestamp_micros() - LEASE) as u64,
        );
        assert!(left <= whole && left > whole - Duration::from_secs(1), "{left:?} of {whole:?}");
        assert_eq!(clock.until(Some("2020-01-01T00:00:00+00:00")), Duration::ZERO);
        assert_eq!(clock.until(None), Duration::ZERO);
    }

    #[test]
    fn a_sleep_that_our_own_clock_did_not_see_is_seen_in_the_date() {
        let clock = Clock::default();
        clock.saw_lease(LEASE, Instant::now(), Some(5_000));
        clock.saw_date(Some(5_001));
        assert!(clock.now() < LEASE + 500_000, "a second of difference may be nothing");
        clock.saw_date(Some(5_301));
        assert!(clock.now() >= LEASE + 300_000_000);
    }
}
