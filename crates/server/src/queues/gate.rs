//! The claim gate: a claim that must be empty is answered without a query.
//!
//! "Empty" is stored only if no bell rang since before the look that found nothing; a ring ends it, and so does the time
//! the database said until something comes due, or a few seconds, whichever is first. A lost bell costs that long.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// However sure we are: a row put in by a program that rings no bell, on a server whose log we cannot read, is found then.
const AT_MOST: Duration = Duration::from_secs(5);
/// Beyond that many, what has lapsed is forgotten.
const MOST_ENTRIES: usize = 10_000;

#[derive(Debug, Default)]
pub struct Gate {
    empty: Mutex<HashMap<String, Empty>>,
    spared: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
pub struct Empty {
    rings: u64,
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
    /// What is known of claims like this one: nothing, or that they are empty.
    pub fn look(&self, key: &str, rings: u64) -> Option<Empty> {
        let known = self.empty.lock().expect("no panic holds it").get(key).copied()?;
        let holds = known.rings == rings && known.until > Instant::now();
        if holds {
            self.spared.fetch_add(1, Ordering::Relaxed);
        }
        holds.then_some(known)
    }

    /// A look that began when the bell had rung `rings` times found nothing, and the next row is due that long from now.
    pub fn remember(&self, key: &str, rings: u64, next_due_in: Option<Duration>) -> Empty {
        let now = Instant::now();
        let due = next_due_in.and_then(|wait| now.checked_add(wait));
        let empty = Empty { rings, until: due.map_or(now + AT_MOST, |due| due.min(now + AT_MOST)), due };
        let mut known = self.empty.lock().expect("no panic holds it");
        if known.len() >= MOST_ENTRIES {
            known.retain(|_, empty| empty.until > now);
        }
        known.insert(key.to_owned(), empty);
        empty
    }

    pub fn spared(&self) -> u64 {
        self.spared.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_holds_until_the_bell_rings_or_something_is_due() {
        let gate = Gate::default();
        assert!(gate.look("a", 3).is_none());
        gate.remember("a", 3, None);
        assert!(gate.look("a", 3).is_some(), "nothing has happened");
        assert!(gate.look("a", 4).is_none(), "the bell rang");
        assert!(gate.look("b", 3).is_none(), "another claim");
        gate.remember("a", 3, Some(Duration::ZERO));
        assert!(gate.look("a", 3).is_none(), "a row is due");
        assert_eq!(gate.spared(), 1);
    }
}
