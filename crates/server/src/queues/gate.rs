//! The claim gate: a claim that must be empty is answered without a query.
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
/// The most entries that are stored. Further claims query the database, as they would without a gate.
const MOST_ENTRIES: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Gate {
    empty: Mutex<HashMap<Key, Empty>>,
    /// Per queue, the latest number of notifications seen, and when it was first seen.
    rung: Mutex<HashMap<String, (u64, Instant)>>,
    spared: AtomicU64,
}

/// A query that is about to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub rings: u64,
    /// When every row notified before the query is visible. None when that is already so.
    settled: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Empty {
    pub rings: u64,
    pub until: Instant,
    /// When the next row is due, according to the database.
    due: Option<Instant>,
}

impl Empty {
    pub(super) fn next_due_in(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(Instant::now()))
    }
}

impl Gate {
    /// Begins a query, when `queue` has had `rings` notifications. Call it before [`Self::known`].
    pub(super) fn look(&self, queue: &str, rings: u64) -> Look {
        let now = Instant::now();
        let mut rung = self.rung.lock().expect("no panic holds it");
        let first_seen = match rung.get_mut(queue) {
            Some((known, first_seen)) => {
                if *known < rings {
                    (*known, *first_seen) = (rings, now);
                }
                *first_seen
            }
            None => rung.entry(queue.to_owned()).or_insert((rings, now)).1,
        };
        Look { rings, settled: Some(first_seen + SETTLE).filter(|settled| *settled > now) }
    }

    /// Returns the stored "empty" for claims like this one, if it still holds.
    pub(super) fn known(&self, key: &Key, look: Look) -> Option<Empty> {
        let known = self.remembered(key)?;
        let holds = known.rings == look.rings && known.until > Instant::now();
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
    pub(super) fn remember(&self, key: Key, look: Look, next_due_in: Option<Duration>) -> Empty {
        let now = Instant::now();
        let due = next_due_in.and_then(|wait| now.checked_add(wait));
        let until = [due, look.settled].into_iter().flatten().fold(now + AT_MOST, Instant::min);
        let empty = Empty { rings: look.rings, until, due };
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
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::of(&serde_json::json!([name]))
    }

    /// A query made when every notified row is visible.
    fn settled(gate: &Gate, rings: u64) -> Look {
        gate.look("jobs", rings);
        std::thread::sleep(SETTLE);
        gate.look("jobs", rings)
    }

    #[test]
    fn empty_holds_until_the_bell_rings_or_something_is_due() {
        let gate = Gate::default();
        let look = settled(&gate, 3);
        assert!(gate.known(&key("a"), look).is_none());
        gate.remember(key("a"), look, None);
        assert!(gate.known(&key("a"), gate.look("jobs", 3)).is_some(), "nothing has happened");
        assert!(gate.known(&key("b"), gate.look("jobs", 3)).is_none(), "another claim");
        assert!(gate.known(&key("a"), gate.look("jobs", 4)).is_none(), "the bell rang");
        gate.remember(key("a"), look, Some(Duration::ZERO));
        assert!(gate.known(&key("a"), gate.look("jobs", 3)).is_none(), "a row is due");
        assert_eq!(gate.spared(), 1);
    }

    #[test]
    fn a_look_right_after_the_bell_does_not_close_the_gate_for_long() {
        let gate = Gate::default();
        gate.remember(key("a"), settled(&gate, 1), None);
        // A notification arrives. Another client's query finds nothing yet, because the row is not visible yet.
        let early = gate.look("jobs", 2);
        let empty = gate.remember(key("a"), early, None);
        assert!(empty.until <= Instant::now() + SETTLE, "whoever waits looks again in a moment");
        std::thread::sleep(SETTLE);
        let late = gate.look("jobs", 2);
        assert!(gate.known(&key("a"), late).is_none());
        assert!(gate.remember(key("a"), late, None).until > Instant::now() + SETTLE);
    }

    #[test]
    fn no_more_than_its_measure_is_remembered() {
        let gate = Gate::default();
        let look = settled(&gate, 1);
        for n in 0..MOST_ENTRIES + 10 {
            gate.remember(key(&n.to_string()), look, None);
        }
        assert_eq!(gate.empty.lock().expect("no panic holds it").len(), MOST_ENTRIES);
        gate.remember(key("0"), look, Some(Duration::ZERO));
        assert!(gate.known(&key("0"), look).is_none(), "what is remembered is still kept up");
    }
}
