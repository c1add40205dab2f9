//! The cache of empty claims: a claim that must be empty is answered without a query.
//!
//! "Empty" is stored only if no notification arrived since before the query that found nothing. It ends with the next
//! notification, when the next row is due according to the database, or after a few seconds, whichever comes first. A lost
//! notification delays a claim by that long at most.
//!
//! A notification may arrive a moment before its row is visible, because the log is ahead of visibility. A query that began
//! within that moment proves little. Its result holds only until the moment is over, and then the next claim queries again.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::key::Key;

/// The longest an "empty" may hold. It bounds the delay for a row inserted by a program that sends no notification, on a
/// database whose log we cannot read.
const AT_MOST: Duration = Duration::from_secs(5);
/// How long a row may stay invisible after its notification.
const SETTLE: Duration = Duration::from_millis(20);
/// The most entries that are stored. Further claims query the database, as they would without a empty_cache.
const MOST_ENTRIES: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct EmptyCache {
    empty: Mutex<HashMap<Key, Empty>>,
    /// Per queue, the latest number of notifications seen, and when it was first seen.
    seen: Mutex<HashMap<String, (u64, Instant)>>,
    spared: AtomicU64,
}

/// A query that is about to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Query {
    pub notifications: u64,
    /// When every row notified before the query is visible. None when that is already so.
    settled: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Empty {
    pub notifications: u64,
    pub until: Instant,
    /// When the next row is due, according to the database.
    due: Option<Instant>,
}

impl Empty {
    pub(super) fn next_due_in(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(Instant::now()))
    }
}

impl EmptyCache {
    /// Begins a query, when `queue` has had `notifications` notifications. Call it before [`Self::known`].
    pub(super) fn begin_query(&self, queue: &str, notifications: u64) -> Query {
        let now = Instant::now();
        let mut seen = self.seen.lock().expect("no panic holds it");
        let first_seen = match seen.get_mut(queue) {
            Some((known, first_seen)) => {
                if *known < notifications {
                    (*known, *first_seen) = (notifications, now);
                }
                *first_seen
            }
            None => seen.entry(queue.to_owned()).or_insert((notifications, now)).1,
        };
        Query { notifications, settled: Some(first_seen + SETTLE).filter(|settled| *settled > now) }
    }

    /// Returns the stored "empty" for claims like this one, if it still holds.
    pub(super) fn known(&self, key: &Key, query: Query) -> Option<Empty> {
        let known = self.remembered(key)?;
        let holds = known.notifications == query.notifications && known.until > Instant::now();
        if holds {
            self.spared.fetch_add(1, Ordering::Relaxed);
        }
        holds.then_some(known)
    }

    /// The result of the last query that found nothing, whether it still holds or not.
    pub(super) fn remembered(&self, key: &Key) -> Option<Empty> {
        self.empty.lock().expect("no panic holds it").get(key).copied()
    }

    /// Stores that the query found nothing, and that the next row is due in `next_due_in`.
    pub(super) fn remember(&self, key: Key, query: Query, next_due_in: Option<Duration>) -> Empty {
        let now = Instant::now();
        let due = next_due_in.and_then(|wait| now.checked_add(wait));
        let until = [due, query.settled].into_iter().flatten().fold(now + AT_MOST, Instant::min);
        let empty = Empty { notifications: query.notifications, until, due };
        let mut known = self.empty.lock().expect("no panic holds it");
        if known.len() >= MOST_ENTRIES && !known.contains_key(&key) {
            known.retain(|_, empty| empty.until > now);
            if known.len() >= MOST_ENTRIES {
                return empty;
            }
        }
        known.insert(key, empty);
        empty
    }

    pub(super) fn spared(&self) -> u64 {
        self.spared.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
