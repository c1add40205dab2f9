//! The claim gate: a claim that must be empty is answered without a query.
//!
//! "Empty" is stored only if no bell rang since before the look that found nothing; a ring ends it, and so does the time
//! the database said until something comes due, or a few seconds, whichever is first. A lost bell costs that long.
//!
//! A bell may be heard a moment before its row can be seen (the log is ahead of visibility). A look that began within that
//! moment proves little, so what it found holds only until the moment is over, and then somebody looks again.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::key::Key;

/// However sure we are: a row put in by a program that rings no bell, on a server whose log we cannot read, is found then.
const AT_MOST: Duration = Duration::from_secs(5);
/// How long after its bell a row may still be invisible.
const SETTLE: Duration = Duration::from_millis(20);
/// More is not remembered: claims beyond that ask the database, as they would without a gate.
const MOST_ENTRIES: usize = 10_000;

#[derive(Debug, Default)]
pub struct Gate {
    empty: Mutex<HashMap<Key, Empty>>,
    /// Per queue, the latest number of rings seen, and when it was first seen.
    rung: Mutex<HashMap<String, (u64, Instant)>>,
    spared: AtomicU64,
}

/// A look that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub rings: u64,
    /// When everything that was rung for before the look can be seen; none when that is so already.
    settled: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
pub struct Empty {
    pub rings: u64,
    pub until: Instant,
    /// By the database's own word: how long from the look until something is due.
    due: Option<Instant>,
}

impl Empty {
    pub fn next_due_in(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(Instant::now()))
    }
}

impl Gate {
    /// Begins to look: the bell of `queue` has rung `rings` times. Call it before [`Self::known`].
    pub fn look(&self, queue: &str, rings: u64) -> Look {
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

    /// What is known of claims like this one: nothing, or that they are empty.
    pub fn known(&self, key: &Key, look: Look) -> Option<Empty> {
        let known = self.remembered(key)?;
        let holds = known.rings == look.rings && known.until > Instant::now();
        if holds {
            self.spared.fetch_add(1, Ordering::Relaxed);
        }
        holds.then_some(known)
    }

    /// What the last look in vain was told, whether it still holds or not.
    pub fn remembered(&self, key: &Key) -> Option<Empty> {
        self.empty.lock().expect("no panic holds it").get(key).copied()
    }

    /// The look found nothing, and the next row is due that long from now.
    pub fn remember(&self, key: Key, look: Look, next_due_in: Option<Duration>) -> Empty {
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

    pub fn spared(&self) -> u64 {
        self.spared.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::of(&serde_json::json!([name]))
    }

    /// A look at a time when what was rung for can be seen.
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
        // The bell rings. Somebody else's look finds nothing yet: the row is on its way.
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
